/* Tests checkpoints and safetensors: written files are read back unchanged. A damaged file is
 * refused with the names of file and tensor, and changes nothing. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/file.h"
#include "base/tests/test.h"
#include "model/files/checkpoint.h"
#include "model/cpu/decoder.h"
#include "model/files/huggingface.h"
#include "model/files/safetensors.h"
#include "model/tensor.h"
#include "model/trainer.h"

enum { STAGES = 3, T = 12, VOCAB = 31 };

static const struct model_config config = { .vocab = VOCAB,
					    .dim = 16,
					    .n_layers = 3,
					    .n_heads = 4,
					    .n_kv_heads = 2,
					    .ffn_dim = 24,
					    .context = 16,
					    .n_stages = STAGES,
					    .rope_theta = 10000,
					    .norm_eps = 1e-5f,
					    .init_std = 0.1f };

struct fixture {
	char folder[64];
	struct hyperparameters hyper;
	struct trainer *trainer;
	int32_t tokens[T], targets[T];
};

static struct trainer *trainer_of(const struct model_config *c, struct hyperparameters *r,
				  uint64_t seed)
{
	struct stage_options o = { .batch = 1, .sequence = T, .threads = 1, .seed = seed };
	struct trainer *t;

	model_preset("tiny", NULL, r, NULL);
	r->batch = 1;
	r->sequence = T;
	assert_int_equal(trainer_new(&t, c, r, &o, NULL), 0);
	return t;
}

static const uint32_t all[] = { 1, 2 };

static void train(struct fixture *f, struct trainer *t, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++) {
		double norm;
		float loss;

		f->tokens[0] = (int32_t)(i % VOCAB);
		assert_int_equal(trainer_microbatch(t, all, 2, f->tokens, f->targets, &loss),
				 0);
		assert_int_equal(trainer_step(t, i + 1, GRAD_NORM_MICROBATCHES, &norm), 0);
	}
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->folder, "/tmp/checkpoint_test.XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	f->trainer = trainer_of(&config, &f->hyper, 4);
	for (int i = 0; i < T; i++) {
		f->tokens[i] = i * 7 % VOCAB;
		f->targets[i] = i * 5 % VOCAB;
	}
	train(f, f->trainer, 0, 3);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", f->folder);
	assert_int_equal(system(command), 0);
	trainer_free(f->trainer);
	free(f);
	return 0;
}

static void save(struct fixture *f, uint64_t iteration)
{
	struct checkpoint c = { config, f->hyper, iteration, 0, 4, 99, 0xfedcba9876543210u };
	struct error err = { "" };

	if (checkpoint_write(f->folder, &c, trainer_stages(f->trainer), &err))
		fail_msg("%s", err.text);
}

static void same_weights(struct trainer *a, struct trainer *b)
{
	for (int i = 0; i < STAGES; i++)
		assert_true(stage_hash(trainer_stages(a)[i]) ==
			    stage_hash(trainer_stages(b)[i]));
}

#define FIXTURE_TEST(name) TEST_WITH(name, setup, teardown)

FIXTURE_TEST(resumed_training_gives_the_same_weights)
{
	struct fixture *f = *state;
	struct trainer *other = trainer_of(&config, &f->hyper, 77);
	struct checkpoint c;
	struct error err = { "" };
	char *was, *is;

	save(f, 3);
	assert_int_equal(checkpoint_read(f->folder, &c, &err), 0);
	assert_int_equal(c.iteration, 3);
	assert_int_equal(c.position, 99);
	assert_true(c.corpus == 0xfedcba9876543210u);
	was = model_config_print(&config, &f->hyper);
	is = model_config_print(&c.config, &c.hyper);
	assert_string_equal(was, is);
	free(was);
	free(is);
	for (int i = 0; i < STAGES; i++)
		if (checkpoint_read_stage(f->folder, trainer_stages(other)[i], &err))
			fail_msg("%s", err.text);
	same_weights(f->trainer, other);
	train(f, f->trainer, 3, 6);
	train(f, other, 3, 6);
	same_weights(f->trainer, other);
	trainer_free(other);
}

/* Compares the weights and moments of two models by the names of tensors. */
static void same_tensors(struct trainer *a, struct trainer *b, const struct model_config *of_a,
			 const struct model_config *of_b)
{
	float *(*const arrays[])(struct stage *) = { stage_weights, stage_moment1, stage_moment2 };
	struct tensor_table in_a, in_b;

	assert_int_equal(tensor_table_new(&in_a, of_a, NULL), 0);
	assert_int_equal(tensor_table_new(&in_b, of_b, NULL), 0);
	assert_int_equal(in_a.n, in_b.n);
	for (size_t i = 0; i < in_a.n; i++) {
		const struct tensor *x = &in_a.tensors[i], *y = in_b.tensors;

		while (strcmp(y->name, x->name) != 0)
			y++;
		for (int k = 0; k < 3; k++)
			assert_memory_equal(arrays[k](trainer_stages(a)[x->stage]) + x->offset,
					    arrays[k](trainer_stages(b)[y->stage]) + y->offset,
					    x->count * sizeof(float));
	}
	tensor_table_free(&in_a);
	tensor_table_free(&in_b);
}

/* A checkpoint continues under other cuts with the same weights and moments. The steps are the same
 * too, because sums are made in the same order in any cut. Clipping is off, because the norm for
 * clipping is summed stage by stage. */
FIXTURE_TEST(a_checkpoint_continues_under_another_cut)
{
	static const struct stage_layers cuts[] = { { 2, { 0, 3 } },
						    { 2, { 2, 1 } },
						    { 4, { 0, 1, 1, 1 } },
						    { 1, { 3 } } };
	static const uint32_t path[] = { 1, 2, 3 };
	struct fixture *f = *state;
	struct error err = { "" };

	save(f, 3);
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		struct model_config c = config;
		struct hyperparameters r;
		struct trainer *whole = trainer_of(&config, &r, 1), *t;
		float loss[2];
		double norm;

		assert_int_equal(model_cut(&c, &cuts[i], "cut", &err), 0);
		r.clip = 0;
		t = trainer_of(&c, &r, 77);
		for (uint32_t s = 0; s < STAGES; s++)
			assert_int_equal(checkpoint_read_stage(f->folder, trainer_stages(whole)[s],
							       &err), 0);
		for (uint32_t s = 0; s < c.n_stages; s++)
			if (checkpoint_read_stage(f->folder, trainer_stages(t)[s], &err))
				fail_msg("%s", err.text);
		same_tensors(whole, t, &config, &c);
		assert_int_equal(trainer_microbatch(whole, all, 2, f->tokens, f->targets, &loss[0]),
				 0);
		assert_int_equal(trainer_microbatch(t, path, c.n_stages - 1, f->tokens, f->targets,
						    &loss[1]), 0);
		assert_true(loss[0] == loss[1]);
		assert_int_equal(trainer_step(whole, 4, GRAD_NORM_MICROBATCHES, &norm), 0);
		assert_int_equal(trainer_step(t, 4, GRAD_NORM_MICROBATCHES, &norm), 0);
		same_tensors(whole, t, &config, &c);
		trainer_free(whole);
		trainer_free(t);
	}
}

/* A layer that the checkpoint lacks, or that the model would lose, is refused. */
FIXTURE_TEST(a_checkpoint_of_other_layers_is_refused)
{
	struct fixture *f = *state;
	struct model_config c = config;
	struct error err = { "" };
	struct hyperparameters r;
	struct trainer *t;
	uint64_t before;

	save(f, 3);
	c.n_layers = 2;
	c.n_stages = 2;
	t = trainer_of(&c, &r, 77);
	before = stage_hash(trainer_stages(t)[1]);
	assert_int_equal(checkpoint_read_stage(f->folder, trainer_stages(t)[1], &err), -EINVAL);
	assert_non_null(strstr(err.text, "n_layers is 3, the model has 2"));
	assert_true(stage_hash(trainer_stages(t)[1]) == before);
	trainer_free(t);
}

static size_t files_in(const char *folder)
{
	char command[128], line[16] = "";
	FILE *p;

	snprintf(command, sizeof(command), "ls -A %s | wc -l", folder);
	p = popen(command, "r");
	assert_non_null(fgets(line, sizeof(line), p));
	pclose(p);
	return strtoul(line, NULL, 10);
}

FIXTURE_TEST(old_shards_are_removed)
{
	struct fixture *f = *state;

	save(f, 3);
	train(f, f->trainer, 3, 4);
	save(f, 4);
	assert_int_equal(files_in(f->folder), STAGES + 1);
}

/* If a checkpoint could not be completed, its shards are removed. If the folder's manifest cannot
 * be read, the shards stay, because the manifest may name them. */
FIXTURE_TEST(shards_of_a_failed_checkpoint_are_removed)
{
	struct fixture *f = *state;
	struct checkpoint c = { config, f->hyper, 3, 0, 4, 99, 0 };
	struct error err = { "" };
	char shard[128], manifest[128];

	snprintf(shard, sizeof(shard), "%s/stage-%03d.00000003.safetensors", f->folder, STAGES - 1);
	snprintf(manifest, sizeof(manifest), "%s/manifest.json", f->folder);
	assert_int_equal(mkdir(shard, 0700), 0); /* the last shard cannot be written */
	assert_true(checkpoint_write(f->folder, &c, trainer_stages(f->trainer), &err) < 0);
	assert_int_equal(files_in(f->folder), 1);
	assert_int_equal(rmdir(shard), 0);
	assert_int_equal(mkdir(manifest, 0700), 0);
	assert_true(checkpoint_write(f->folder, &c, trainer_stages(f->trainer), &err) < 0);
	assert_int_equal(files_in(f->folder), STAGES + 1);
}

static void make_file(const struct fixture *f, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", f->folder, name);
	assert_int_equal(file_write(path, "x", 1, 0644, NULL), 0);
}

/* The folder may have files of the user. Only the names of shards, and the temporary files of a
 * process that was killed, are removed. */
FIXTURE_TEST(files_of_other_names_stay)
{
	static const char *const users[] = { "stage-backup.safetensors",
					     "stage-0.safetensors.bak",
					     "stage-000.00000003.safetensors.bak",
					     "stage-000.00000003.safetensors.tmp.x",
					     "stage-000.00000003.safetensors.tmp.17",
					     "stage-0.00000003.safetensors" };
	struct fixture *f = *state;

	save(f, 3);
	make_file(f, "stage-001.00000002.safetensors");
	make_file(f, "stage-001.00000002.safetensors.tmp.0123456789abcdef");
	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++)
		make_file(f, users[i]);
	train(f, f->trainer, 3, 4);
	save(f, 4);
	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++)
		assert_true(file_exists(f->folder, users[i]));
	assert_int_equal(files_in(f->folder), STAGES + 1 + sizeof(users) / sizeof(users[0]));
}

/* The files of the old checkpoint must stay until the new manifest is complete
 * (tests/crash_points_test.sh), so the new files have other names. */
FIXTURE_TEST(a_checkpoint_of_the_same_iteration_has_other_names)
{
	struct fixture *f = *state;
	struct trainer *other = trainer_of(&config, &f->hyper, 77);
	struct error err = { "" };

	save(f, 3);
	train(f, f->trainer, 3, 4);
	save(f, 3);
	assert_true(file_exists(f->folder, "stage-001.00000003.b.safetensors"));
	assert_int_equal(files_in(f->folder), STAGES + 1);
	for (int i = 0; i < STAGES; i++)
		if (checkpoint_read_stage(f->folder, trainer_stages(other)[i], &err))
			fail_msg("%s", err.text);
	same_weights(f->trainer, other);
	trainer_free(other);
	save(f, 3);
	assert_true(file_exists(f->folder, "stage-001.00000003.safetensors"));
	assert_int_equal(files_in(f->folder), STAGES + 1);
}

static char *shard_path(const struct fixture *f, char path[128])
{
	snprintf(path, 128, "%s/stage-001.00000003.safetensors", f->folder);
	return path;
}

/* Saves one stage as an agent does, from its arrays alone. */
static void save_one(struct fixture *f, uint32_t stage, uint64_t iteration, uint64_t *hash)
{
	struct stage *s = trainer_stages(f->trainer)[stage];
	size_t n = stage_parameters(s);
	float *state = malloc(3 * n * sizeof(*state));
	uint64_t bytes = 0;
	struct error err = { "" };

	memcpy(state, stage_weights(s), n * sizeof(*state));
	memcpy(state + n, stage_moment1(s), n * sizeof(*state));
	memcpy(state + 2 * n, stage_moment2(s), n * sizeof(*state));
	if (checkpoint_save_stage(f->folder, &config, stage, iteration, state, true, hash, &bytes,
				  &err))
		fail_msg("%s", err.text);
	assert_true(bytes > 3 * n * sizeof(*state));
	free(state);
}

static bool there(struct fixture *f, const char *rest)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/checkpoints/%s", f->folder, rest);
	return access(path, F_OK) == 0;
}

/* Stages that are saved one by one become an ordinary checkpoint when the manifest is written.
 * Older checkpoints are removed on request. */
FIXTURE_TEST(a_run_is_saved_by_stages)
{
	struct fixture *f = *state;
	struct checkpoint c = { config, f->hyper, 40, 0, 4, 99, 7 };
	uint64_t hashes[STAGES], other;
	char folder[128];
	struct hyperparameters r;
	struct trainer *t = trainer_of(&config, &r, 5);
	struct error err = { "" };

	for (uint32_t i = 0; i < STAGES; i++)
		save_one(f, i, 40, &hashes[i]);
	save_one(f, 0, 20, &other);
	assert_int_equal(checkpoint_save_manifest(f->folder, &c, hashes, &err), 0);
	snprintf(folder, sizeof(folder), "%s/checkpoints/00000040", f->folder);
	for (uint32_t i = 0; i < STAGES; i++)
		if (checkpoint_read_stage(folder, trainer_stages(t)[i], &err))
			fail_msg("%s", err.text);
	same_weights(f->trainer, t);
	checkpoint_prune(f->folder, 0, 20);
	assert_true(there(f, "00000020/stage-000.00000020.safetensors"));
	checkpoint_prune(f->folder, 0, 40);
	assert_false(there(f, "00000020"));
	assert_true(there(f, "00000040/manifest.json"));
	save_one(f, 0, 50, &other);
	save_one(f, 0, 60, &other);
	checkpoint_prune(f->folder, 40, 60);
	assert_true(there(f, "00000040/manifest.json"));
	assert_false(there(f, "00000050"));
	assert_true(there(f, "00000060/stage-000.00000060.safetensors"));
	trainer_free(t);
}

/* The hash of a file was reported when the file was written. A file with another hash is refused as
 * a whole. */
FIXTURE_TEST(another_file_is_refused)
{
	struct fixture *f = *state;
	struct hyperparameters r;
	struct trainer *t = trainer_of(&config, &r, 5);
	struct stage *s = trainer_stages(t)[1];
	uint64_t hash, before = stage_hash(s);
	char path[160];
	struct error err = { "" };
	FILE *file;

	save_one(f, 1, 40, &hash);
	assert_int_equal(checkpoint_check_stage(f->folder, 1, 40, hash, &err), 0);
	assert_int_equal(checkpoint_check_stage(f->folder, 1, 40, hash + 1, &err), -EINVAL);
	assert_int_equal(checkpoint_check_stage(f->folder, 2, 40, hash, &err), -ENOENT);
	assert_int_equal(checkpoint_load_stage(f->folder, s, 40, hash + 1, &err), -EINVAL);
	assert_int_equal(checkpoint_load_stage(f->folder, s, 41, hash, &err), -ENOENT);
	snprintf(path, sizeof(path), "%s/checkpoints/00000040/stage-001.00000040.safetensors",
		 f->folder);
	file = fopen(path, "r+b");
	assert_non_null(file);
	assert_int_equal(fseek(file, -100, SEEK_END), 0);
	assert_true(fputc(0x55, file) != EOF);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(checkpoint_load_stage(f->folder, s, 40, hash, &err), -EINVAL);
	assert_non_null(strstr(err.text, "damaged"));
	assert_true(stage_hash(s) == before);
	save_one(f, 1, 40, &hash);
	assert_int_equal(checkpoint_load_stage(f->folder, s, 40, hash, &err), 0);
	assert_true(stage_hash(s) == stage_hash(trainer_stages(f->trainer)[1]));
	trainer_free(t);
}

static json_t *read_manifest(const struct fixture *f, char path[128])
{
	json_t *root;

	snprintf(path, 128, "%s/manifest.json", f->folder);
	root = json_load_file(path, 0, NULL);
	assert_non_null(root);
	return root;
}

/* An old manifest does not name its kind of hash, and has checksums. Such a manifest is still read,
 * and its files are checked. */
FIXTURE_TEST(manifests_without_the_hashs_name_are_read)
{
	struct fixture *f = *state;
	struct stage *s = trainer_stages(f->trainer)[1];
	char path[128], shard[128], text[20];
	struct safetensors *file;
	struct error err = { "" };
	json_t *root, *row;
	uint64_t sum;

	save(f, 3);
	root = read_manifest(f, path);
	json_object_set_new(root, "hash", json_string("md5"));
	assert_int_equal(json_dump_file(root, path, 0), 0);
	assert_int_equal(checkpoint_read_stage(f->folder, s, &err), -EPROTONOSUPPORT);
	json_object_del(root, "hash");
	assert_int_equal(json_dump_file(root, path, 0), 0);
	assert_int_equal(checkpoint_read_stage(f->folder, s, &err), -EINVAL);
	assert_non_null(strstr(err.text, "damaged"));
	assert_int_equal(safetensors_open(&file, shard_path(f, shard), &err), 0);
	assert_int_equal(safetensors_checksum(file, &sum, &err), 0);
	safetensors_close(file);
	snprintf(text, sizeof(text), "%016" PRIx64, sum);
	row = json_array_get(json_object_get(root, "shards"), 1);
	json_object_set_new(row, "hash", json_string(text));
	assert_int_equal(json_dump_file(root, path, 0), 0);
	assert_int_equal(checkpoint_read_stage(f->folder, s, &err), 0);
	json_decref(root);
}

FIXTURE_TEST(damage_is_refused)
{
	struct fixture *f = *state;
	struct stage *s = trainer_stages(f->trainer)[1];
	struct safetensors *cut_short;
	uint64_t before = stage_hash(s);
	char path[128], *data;
	size_t size;
	struct error err;

	save(f, 3);
	assert_int_equal(file_read(shard_path(f, path), 1 << 24, &data, &size, &err), 0);
	for (size_t at = 0; at < size; at += at < 4000 ? 1 : 1009) {
		data[at] ^= 1;
		assert_int_equal(file_write(path, data, size, 0644, &err), 0);
		data[at] ^= 1;
		assert_true(checkpoint_read_stage(f->folder, s, &err) < 0);
		assert_non_null(strstr(err.text, "stage-001"));
		at += 16;
	}
	for (size_t cut = 0; cut < size; cut += size / 23) {
		assert_int_equal(file_write(path, data, cut, 0644, &err), 0);
		assert_true(checkpoint_read_stage(f->folder, s, &err) < 0);
		assert_int_equal(safetensors_open(&cut_short, path, &err), -EINVAL);
		assert_non_null(strstr(err.text, path));
	}
	unlink(path);
	assert_int_equal(checkpoint_read_stage(f->folder, s, &err), -ENOENT);
	assert_true(stage_hash(s) == before);
	free(data);
}

static void refuse_manifest(struct fixture *f, const char *text, const char *says)
{
	struct checkpoint c = { .iteration = 5 };
	struct error err = { "" };
	char path[128];

	snprintf(path, sizeof(path), "%s/manifest.json", f->folder);
	assert_int_equal(file_write(path, text, strlen(text), 0644, &err), 0);
	assert_int_equal(checkpoint_read(f->folder, &c, &err), -EINVAL);
	if (!strstr(err.text, says) || !strstr(err.text, "manifest.json"))
		fail_msg("\"%s\" does not say \"%s\"", err.text, says);
	assert_int_equal(c.iteration, 5);
}

FIXTURE_TEST(bad_manifests_are_refused)
{
	struct fixture *f = *state;
	struct checkpoint c;
	struct error err;

	assert_int_equal(checkpoint_read(f->folder, &c, &err), -ENOENT);
	refuse_manifest(f, "{", "manifest");
	refuse_manifest(f, "[]", "object");
	refuse_manifest(f, "{\"format\":\"skippipe.checkpoint/9\"}", "skippipe.checkpoint/1");
	refuse_manifest(f, "{\"format\":\"skippipe.checkpoint/1\",\"wrong\":1}",
			"wrong: unknown");
	refuse_manifest(f, "{\"format\":\"skippipe.checkpoint/1\",\"mod\":1}", "mod: unknown");
	refuse_manifest(f, "{\"format\":\"skippipe.checkpoint/1\"}", "model");
}

static void refuse_file(const char *path, const char *header, size_t data, const char *says)
{
	char bytes[600] = { 0 };
	struct safetensors *s = NULL;
	struct error err = { "" };

	bytes[0] = (char)strlen(header);
	strcpy(bytes + 8, header);
	assert_int_equal(file_write(path, bytes, 8 + strlen(header) + data, 0644, &err), 0);
	assert_int_equal(safetensors_open(&s, path, &err), -EINVAL);
	if (!strstr(err.text, says))
		fail_msg("\"%s\" does not say \"%s\"", err.text, says);
	assert_null(s);
}

FIXTURE_TEST(bad_safetensors_are_refused)
{
	struct fixture *f = *state;
	char path[128];

	snprintf(path, sizeof(path), "%s/x.safetensors", f->folder);
	refuse_file(path, "[]", 0, "object");
	refuse_file(path, "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4,
		    "tensor a: ends beyond");
	refuse_file(path, "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
		    "tensor a: data_offsets and shape");
	refuse_file(path, "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8,
		    "tensor a: overlaps another, or leaves a hole");
	refuse_file(path, "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 9,
		    "after the last tensor");
	refuse_file(path, "{\"a\":{\"dtype\":8,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "dtype");
	refuse_file(path, "{\"a\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,2]}}", 1,
		    "cut short");
	refuse_file(path, "{\"a\":{\"dtype\":\"F4\",\"shape\":[8],\"data_offsets\":[0,4]},"
			  "\"b\":{\"dtype\":\"F4\",\"shape\":[8],\"data_offsets\":[0,4]}}",
		    4, "overlaps another");
	refuse_file(path, "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}",
		    4, "shape");
	refuse_file(path,
		    "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],"
		    "\"data_offsets\":[0,4]}}",
		    4, "shape: too large");
}

static void put_file(const char *path, const char *header, const void *data, size_t size)
{
	char bytes[600] = { 0 };
	struct error err = { "" };

	bytes[0] = (char)strlen(header);
	strcpy(bytes + 8, header);
	memcpy(bytes + 8 + strlen(header), data, size);
	assert_int_equal(file_write(path, bytes, 8 + strlen(header) + size, 0644, &err), 0);
}

FIXTURE_TEST(halves_are_read)
{
	static const uint16_t both[] = { 0x3c00, 0xc000, 0x0001, 0x7bff, 0x8000, 0x3555,
					 0x3f80, 0xc000, 0x0000, 0x4049 };
	struct fixture *f = *state;
	struct safetensors *s;
	struct error err = { "" };
	char path[128];
	float v[6];

	snprintf(path, sizeof(path), "%s/x.safetensors", f->folder);
	put_file(path, "{\"a\":{\"dtype\":\"F16\",\"shape\":[6],\"data_offsets\":[0,12]},"
		       "\"b\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[12,20]}}",
		 both, sizeof(both));
	assert_int_equal(safetensors_open(&s, path, &err), 0);
	assert_int_equal(safetensors_read(s, safetensors_find(s, "a"), v, &err), 0);
	assert_true(v[0] == 1 && v[1] == -2 && v[2] == 0x1p-24f && v[3] == 65504);
	assert_true(v[4] == 0 && signbit(v[4]) && fabsf(v[5] - 1.0f / 3) < 1e-4f);
	assert_int_equal(safetensors_read(s, safetensors_find(s, "b"), v, &err), 0);
	assert_true(v[0] == 1 && v[1] == -2 && v[2] == 0 && v[3] == 3.140625f);
	safetensors_close(s);
}

/* A file is cut after it was opened. Whichever function reads the file, it gives an error with the
 * file's name. With a mapped file, a signal would end this process. */
FIXTURE_TEST(a_file_that_shrinks_is_an_error)
{
	static const char *const headers[] = {
		"{\"a\":{\"dtype\":\"F32\",\"shape\":[4096],\"data_offsets\":[0,16384]}}",
		"{\"a\":{\"dtype\":\"BF16\",\"shape\":[8192],\"data_offsets\":[0,16384]}}",
	};
	struct fixture *f = *state;
	char path[128];

	snprintf(path, sizeof(path), "%s/x.safetensors", f->folder);
	for (int i = 0; i < 2; i++) {
		static float values[8192];
		struct safetensors *s;
		struct error err = { "" };
		uint64_t hash = 7;

		put_file(path, headers[i], "", 0);
		assert_int_equal(truncate(path, 8 + (off_t)strlen(headers[i]) + 16384), 0);
		assert_int_equal(safetensors_open(&s, path, &err), 0);
		assert_int_equal(safetensors_hash(s, &hash, &err), 0);
		assert_int_equal(truncate(path, 100), 0);
		assert_int_equal(safetensors_read(s, safetensors_at(s, 0), values, &err), -EINVAL);
		assert_non_null(strstr(err.text, path));
		err.text[0] = '\0';
		assert_int_equal(safetensors_check_finite(s, safetensors_at(s, 0), &err), -EINVAL);
		assert_non_null(strstr(err.text, path));
		err.text[0] = '\0';
		hash = 7;
		assert_int_equal(safetensors_hash(s, &hash, &err), -EINVAL);
		assert_non_null(strstr(err.text, path));
		assert_int_equal(hash, 7);
		safetensors_close(s);
	}
}

/* Another process cuts the file at a random moment while a stage is loaded. The stage is then
 * either loaded completely or unchanged. */
FIXTURE_TEST(a_stage_is_loaded_whole_or_not_at_all)
{
	struct fixture *f = *state;
	struct hyperparameters r;
	struct trainer *t = trainer_of(&config, &r, 5);
	struct stage *s = trainer_stages(t)[1];
	uint64_t hash, before, after = stage_hash(trainer_stages(f->trainer)[1]);
	char path[160];

	snprintf(path, sizeof(path), "%s/checkpoints/00000040/stage-001.00000040.safetensors",
		 f->folder);
	for (int round = 0; round < 60; round++) {
		struct error err = { "" };
		pid_t child;
		int rc;

		for (size_t i = 0; i < stage_parameters(s); i++)
			stage_weights(s)[i] = (float)round;
		stage_changed(s);
		before = stage_hash(s);
		save_one(f, 1, 40, &hash);
		child = fork();
		if (child == 0) {
			for (volatile int spin = 0; spin < round * 20000; spin++)
				;
			_exit(truncate(path, 3000) != 0);
		}
		rc = checkpoint_load_stage(f->folder, s, 40, hash, &err);
		assert_int_equal(waitpid(child, NULL, 0), child);
		if (rc) {
			assert_int_equal(rc, -EINVAL);
			assert_non_null(strstr(err.text, path));
			assert_true(stage_hash(s) == before);
		} else {
			assert_true(stage_hash(s) == after);
		}
	}
	trainer_free(t);
}

FIXTURE_TEST(huggingface_keeps_the_model)
{
	struct fixture *f = *state;
	struct model_config c;
	struct trainer *other;
	struct hyperparameters r;
	struct error err = { "" };
	float a, b;

	if (huggingface_export(f->folder, trainer_stages(f->trainer), NULL, &err) ||
	    huggingface_read_config(f->folder, &c, &err))
		fail_msg("%s", err.text);
	assert_int_equal(c.n_stages, 1);
	c.n_stages = 2;
	other = trainer_of(&c, &r, 9);
	assert_int_equal(huggingface_read_weights(f->folder, trainer_stages(other), &err), 0);
	trainer_evaluate(f->trainer, all, 2, f->tokens, f->targets, &a);
	trainer_evaluate(other, all, 1, f->tokens, f->targets, &b);
	assert_true(a == b);
	trainer_free(other);
	c.ffn_dim = 25;
	other = trainer_of(&c, &r, 9);
	assert_int_equal(huggingface_read_weights(f->folder, trainer_stages(other), &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "gate_proj"));
	trainer_free(other);
}

/* Decoding one token at a time, with kept keys and values, gives the same logits as computing all
 * tokens at once. */
FIXTURE_TEST(decoding_agrees_with_the_whole)
{
	struct fixture *f = *state;
	float *whole = calloc(T * VOCAB, sizeof(*whole));
	const float *logits;
	struct decoder *d;

	for (int twice = 0; twice < 2; twice++) {
		size_t n = twice ? 1 : 2;

		assert_int_equal(trainer_logits(f->trainer, all, n, f->tokens, whole), 0);
		assert_int_equal(decoder_new(&d, trainer_stages(f->trainer), all, n, T, NULL),
				 0);
		for (int t = 0; t < T + 3; t++) {
			if (t == T)
				decoder_rewind(d, T - 3);
			assert_int_equal(decoder_next(d, f->tokens[t < T ? t : t - 3], &logits),
					 0);
			for (int v = 0; v < VOCAB; v++)
				assert_true(fabsf(logits[v] -
						  whole[(t < T ? t : t - 3) * VOCAB + v]) <
					    1e-5f);
		}
		assert_int_equal(decoder_next(d, 0, &logits), -ENOSPC);
		decoder_free(d);
	}
	free(whole);
}
