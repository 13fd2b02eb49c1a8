/* A checkpoint is a folder: a file of tensors for each stage and a manifest with their
 * hashes. Stages may be saved on different machines. The manifest is written last, when all files
 * are complete, so a folder without a manifest is no checkpoint. A reader compares every file with
 * its hash before it uses the file. */
#include "model/files/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/file.h"
#include "base/json.h"
#include "model/hash.h"
#include "model/files/safetensors.h"
#include "model/tensor.h"

enum { KINDS = 3, NAME = 96, PATH = 4096, MANIFEST_MOST = 1 << 20 };

/* A shard of a trained model has each tensor three times: the weights, the first and the second
 * moment. The shard of a model that was not trained here has only the weights. */
static const char *const prefixes[KINDS] = { "", "optimizer.moment1.", "optimizer.moment2." };

/* ---- shards ---- */

/* Where a tensor's numbers are: in arrays in memory, or in a stage, whose device may have memory of
 * its own. */
struct place {
	const float *arrays[KINDS];
	struct stage *stage; /* the stage that has the numbers; NULL: `arrays` has them */
	int kind;
	size_t offset;
};

static int give_numbers(const void *context, size_t first, size_t n, float *to, struct error *err)
{
	const struct place *p = context;
	float *state[KINDS] = { NULL };

	state[p->kind] = to;
	stage_get_state(p->stage, p->offset + first, n, state);
	if (stage_failure(p->stage)[0]) /* after a failure the numbers are outdated */
		return error_set(err, -EIO, "the device failed (%s)", stage_failure(p->stage));
	return 0;
}

/* Writes the weights. With kinds = KINDS also writes both moments, whose names are the weights'
 * names with a prefix. kinds = 1: only the weights. */
static int write_arrays(const char *path, const struct tensor *tensors, size_t n, int kinds,
			const struct place *from, struct error *err)
{
	size_t at = 0;
	struct safetensors_entry *entries = calloc(KINDS * n, sizeof(*entries));
	struct place *places = calloc(KINDS * n, sizeof(*places));
	char(*names)[NAME] = calloc(KINDS * n, sizeof(*names));
	int rc = -ENOMEM;

	if (!entries || !places || !names) {
		error_set(err, rc, "%s: no memory", path);
		goto free_all;
	}
	for (int kind = 0; kind < kinds; kind++)
		for (size_t i = 0; i < n; i++, at++) {
			const struct tensor *t = &tensors[i];

			snprintf(names[at], NAME, "%s%s", prefixes[kind], t->name);
			places[at] = *from;
			places[at].kind = kind;
			places[at].offset = t->offset;
			entries[at] = (struct safetensors_entry){
				.name = names[at],
				.type = SAFETENSORS_F32,
				.dims = t->dims,
				.shape = { t->rows, t->cols },
				.count = t->count,
				.data = from->stage ? NULL : from->arrays[kind] + t->offset,
				.give = give_numbers,
				.context = &places[at],
			};
		}
	rc = safetensors_write(path, entries, at, NULL, err);
free_all:
	free(names);
	free(places);
	free(entries);
	return rc;
}

static int write_shard(const char *path, struct stage *s, struct error *err)
{
	size_t n;
	const struct tensor *tensors = stage_tensors(s, &n);
	int rc = write_arrays(path, tensors, n, KINDS, &(struct place){ .stage = s }, err);

	return rc == -EIO ? error_prefix(err, rc, "%s", path) : rc;
}

static int check_entry(const struct safetensors *file, const char *path, const char *name,
		       const struct tensor *t, const struct safetensors_entry **out,
		       struct error *err)
{
	const struct safetensors_entry *e = safetensors_find(file, name);

	if (!e)
		return error_set(err, -EINVAL, "%s: tensor %s is missing", path, name);
	*out = e;
	return tensor_check_shape(t, path, name, e->dims, e->shape, err);
}

/* Reads the tensors [first, first + n) of the stage from a shard to `to` (3, P): weights and both
 * moments, in the order of the stage's arrays. `whole`: number of the shard's tensors, not counting
 * moments. If the file has no moments, the moments become zeros. */
static int read_arrays(const struct safetensors *file, const char *path, struct stage *s,
		       size_t first, size_t n, size_t whole, float *to, struct error *err)
{
	const struct tensor *tensors = stage_tensors(s, &(size_t){ 0 });
	size_t kinds = safetensors_count(file) == whole ? 1 : KINDS;

	for (size_t kind = 0; kind < KINDS; kind++)
		for (size_t i = first; i < first + n; i++) {
			float *at = to + kind * stage_parameters(s) + tensors[i].offset;
			const struct safetensors_entry *e = NULL;
			char name[NAME];
			int rc;

			if (kind >= kinds) {
				memset(at, 0, tensors[i].count * sizeof(*at));
				continue;
			}
			snprintf(name, sizeof(name), "%s%s", prefixes[kind], tensors[i].name);
			rc = check_entry(file, path, name, &tensors[i], &e, err);
			if (!rc)
				rc = safetensors_read(file, e, at, err);
			if (rc)
				return rc;
		}
	return 0;
}

/* Sets the weights and moments (3, P) of the stage. */
static void set_arrays(struct stage *s, const float *read)
{
	size_t n = stage_parameters(s);
	const float *state[KINDS] = { read, read + n, read + 2 * n };

	stage_put_state(s, 0, n, state);
}

/* Reads a shard into a stage. Reads into separate memory first, so that the stage changes only if
 * the whole file was read.
 */
static int read_shard(const struct safetensors *file, const char *path, struct stage *s,
		      struct error *err)
{
	float *read = malloc(KINDS * stage_parameters(s) * sizeof(*read));
	size_t n;
	int rc;

	stage_tensors(s, &n);
	rc = read ? read_arrays(file, path, s, 0, n, n, read, err)
		  : error_set(err, -ENOMEM, "%s: no memory to read it", path);
	if (!rc)
		set_arrays(s, read);
	free(read);
	return rc;
}

/* ---- the manifest ---- */

static void manifest_path(char path[PATH], const char *folder)
{
	snprintf(path, PATH, "%s/manifest.json", folder);
}

static void format_hex(char text[20], uint64_t v)
{
	snprintf(text, 20, "%016" PRIx64, v);
}

static int shard_hash(const char *path, uint64_t *hash, struct error *err)
{
	struct safetensors *file;
	int rc = safetensors_open(&file, path, err);

	if (rc)
		return rc;
	rc = safetensors_hash(file, hash, err);
	safetensors_close(file);
	return rc;
}

static json_t *manifest_json(const struct checkpoint *c, json_t *shards)
{
	char *model = model_config_print(&c->config, &c->hyper), corpus[20];
	json_t *document = model ? json_loads(model, 0, NULL) : NULL;

	free(model);
	format_hex(corpus, c->corpus);
	return json_pack("{s:s, s:o, s:I, s:I, s:I, s:s, s:s, s:O}", "format",
			 "skippipe.checkpoint/1", "model", document, "iteration",
			 (json_int_t)(c->before + c->iteration), "seed",
			 (json_int_t)c->seed, "position", (json_int_t)c->position,
			 "corpus", corpus, "hash", HASH_NAME, "shards", shards);
}

static int write_manifest(const char *folder, const struct checkpoint *c, json_t *shards,
			  struct error *err)
{
	char path[PATH], *text;
	json_t *json = manifest_json(c, shards);
	int rc;

	manifest_path(path, folder);
	text = json ? json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : NULL;
	json_decref(json);
	if (!text)
		return error_set(err, -ENOMEM, "%s: no memory", path);
	rc = file_replace(path, text, strlen(text), FILE_RESULT, err);
	free(text);
	return rc;
}

/* ---- names of shards ---- */

/* Writes the name of a shard. second: another form of the name, for a checkpoint that replaces a
 * checkpoint of the same iteration. The old files then stay until the new manifest is complete. */
static void shard_name(char name[NAME], uint32_t stage, uint64_t iteration, bool second)
{
	snprintf(name, NAME, "stage-%03" PRIu32 ".%08" PRIu64 "%s.safetensors", stage, iteration,
		 second ? ".b" : "");
}

/* If this name begins with the name of a shard, returns the length of the shard's name; otherwise
 * 0. The names are compared in full, because the folder may have files of the user, such as
 * stage-backup.safetensors. */
static size_t shard_prefix(const char *name)
{
	unsigned long long iteration;
	unsigned stage;
	char same[NAME];

	if (sscanf(name, "stage-%u.%llu", &stage, &iteration) != 2)
		return 0;
	for (int second = 0; second < 2; second++) {
		shard_name(same, stage, iteration, second);
		if (strncmp(name, same, strlen(same)) == 0)
			return strlen(same);
	}
	return 0;
}

static bool names_file(const json_t *shards, const char *name)
{
	for (size_t i = 0; i < json_array_size(shards); i++) {
		const json_t *file = json_object_get(json_array_get(shards, i), "file");

		if (json_is_string(file) && strcmp(json_string_value(file), name) == 0)
			return true;
	}
	return false;
}

/* Returns true if the folder's manifest names a shard of this iteration in the first form of the
 * name. A new checkpoint of the iteration must then use the second form (shard_name). */
static bool names_are_taken(const char *folder, uint64_t iteration)
{
	char path[PATH], name[NAME];
	json_t *root = NULL;
	bool taken;

	manifest_path(path, folder);
	shard_name(name, 0, iteration, false);
	taken = json_read_object(path, MANIFEST_MOST, &root, NULL) == 0 &&
		names_file(json_object_get(root, "shards"), name);
	json_decref(root);
	return taken;
}

/* Removes the shards that the manifest does not name, and the temporary files of shards whose
 * writers were killed. Removes nothing else. */
static void remove_old(const char *folder, const json_t *shards)
{
	DIR *d = opendir(folder);

	for (struct dirent *e; d && (e = readdir(d));) {
		size_t n = shard_prefix(e->d_name);
		char path[PATH + 256];

		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		if (n && file_is_aside(e->d_name + n))
			file_remove_aside(path);
		else if (n && !e->d_name[n] && !names_file(shards, e->d_name))
			unlink(path);
	}
	if (d)
		closedir(d);
}

/* Removes the shards of a checkpoint that could not be completed, because on a full disk they would
 * take the room that other programs need. Keeps shards that the folder's manifest names. Keeps all
 * shards if the manifest cannot be read, because it may be the new manifest, which names the new
 * shards. */
static void remove_shards(const char *folder, const json_t *shards)
{
	char path[PATH];
	json_t *root = NULL;

	manifest_path(path, folder);
	if (access(path, F_OK) == 0 && json_read_object(path, MANIFEST_MOST, &root, NULL) != 0)
		return;
	for (size_t i = 0; i < json_array_size(shards); i++) {
		const char *file = json_string_value(
			json_object_get(json_array_get(shards, i), "file"));

		snprintf(path, sizeof(path), "%s/%s", folder, file);
		if (!names_file(json_object_get(root, "shards"), file))
			unlink(path);
	}
	json_decref(root);
}

static int note_shard(json_t *shards, const char *name, uint64_t hash)
{
	char text[20];

	format_hex(text, hash);
	return json_array_append_new(shards,
				     json_pack("{s:s, s:s}", "file", name, "hash", text));
}

int checkpoint_write(const char *folder, const struct checkpoint *c,
		     struct stage *const *stages, struct error *err)
{
	bool second = names_are_taken(folder, c->iteration);
	json_t *shards = json_array();
	int rc = shards ? file_make_folder(folder, err)
			: error_set(err, -ENOMEM, "%s: no memory", folder);

	for (uint32_t i = 0; i < c->config.n_stages && !rc; i++) {
		char name[NAME], path[PATH];
		uint64_t hash = 0;

		shard_name(name, i, c->iteration, second);
		snprintf(path, sizeof(path), "%s/%s", folder, name);
		rc = write_shard(path, stages[i], err);
		if (!rc)
			rc = shard_hash(path, &hash, err);
		if (!rc && note_shard(shards, name, hash) < 0)
			rc = error_set(err, -ENOMEM, "%s: no memory", folder);
	}
	if (!rc)
		rc = write_manifest(folder, c, shards, err);
	if (!rc)
		remove_old(folder, shards);
	else
		remove_shards(folder, shards);
	json_decref(shards);
	return rc;
}

static int parse_manifest(const json_t *root, struct checkpoint *c, struct error *err)
{
	static const char *const keys[] = { "format", "model", "iteration", "seed", "position",
					    "corpus", "hash",  "shards",    NULL };
	const char *corpus = json_string_value(json_object_get(root, "corpus"));
	const json_t *model = json_object_get(root, "model"), *shards;
	int rc = json_check(root, "skippipe.checkpoint/1", keys, err);

	if (!rc && !json_is_object(model))
		rc = json_expected(model, "", "model", "an object", err);
	if (!rc)
		rc = model_config_read(&c->config, &c->hyper, model, err);
	if (!rc && c->config.rehearsal)
		rc = error_set(err, -EINVAL, "a checkpoint of a rehearsal, which trains nothing");
	if (!rc)
		rc = json_u64(root, "", "iteration", &c->iteration, err);
	if (!rc)
		rc = json_u64(root, "", "seed", &c->seed, err);
	if (!rc)
		rc = json_u64(root, "", "position", &c->position, err);
	if (!rc && !corpus)
		rc = error_set(err, -EINVAL, "corpus: expected a hash");
	if (!rc)
		c->corpus = strtoull(corpus, NULL, 16);
	return rc ? rc : json_list(root, "", "shards", (int)c->config.n_stages, &shards, err);
}

static int load_manifest(const char *folder, json_t **root, struct checkpoint *c,
			 struct error *err)
{
	char path[PATH];
	int rc;

	manifest_path(path, folder);
	rc = json_read_object(path, MANIFEST_MOST, root, err);
	if (rc)
		return rc;
	rc = parse_manifest(*root, c, err);
	if (!rc)
		return 0;
	json_decref(*root);
	return error_prefix(err, rc, "%s", path);
}

int checkpoint_read(const char *folder, struct checkpoint *c, struct error *err)
{
	struct checkpoint read = { 0 };
	json_t *root;
	int rc = load_manifest(folder, &root, &read, err);

	if (rc)
		return rc;
	json_decref(root);
	*c = read;
	return 0;
}

/* Computes the file's hash, of the kind that the manifest names. Older manifests name no kind and
 * have a checksum, which detects only accidental damage. */
static int named_hash(const struct safetensors *file, const json_t *root, const char *path,
		      uint64_t *is, struct error *err)
{
	const json_t *name = json_object_get(root, "hash");

	if (!name)
		return safetensors_checksum(file, is, err);
	if (!json_is_string(name) || strcmp(json_string_value(name), HASH_NAME) != 0)
		return error_set(err, -EPROTONOSUPPORT,
				 "%s: its manifest has another kind of hashes than " HASH_NAME
				 ", the kind that this program computes",
				 path);
	return safetensors_hash(file, is, err);
}

/* Opens the shard that the manifest names, and compares its hash with the manifest's. */
static int open_named(const char *folder, const json_t *root, uint32_t stage,
		      struct safetensors **file, char path[PATH], struct error *err)
{
	const json_t *shard = json_array_get(json_object_get(root, "shards"), stage);
	const char *name = json_string_value(json_object_get(shard, "file"));
	const char *hash = json_string_value(json_object_get(shard, "hash"));
	char found[20];
	uint64_t is = 0;
	int rc;

	if (!name || !hash || strchr(name, '/'))
		return error_set(err, -EINVAL, "%s/manifest.json: shards: expected file and hash",
				 folder);
	snprintf(path, PATH, "%s/%s", folder, name);
	rc = safetensors_open(file, path, err);
	if (rc)
		return rc;
	rc = named_hash(*file, root, path, &is, err);
	format_hex(found, is);
	if (!rc && strcmp(found, hash) != 0)
		rc = error_set(err, -EINVAL,
			       "%s: damaged: its hash is %s, the manifest says %s", path, found,
			       hash);
	if (rc)
		safetensors_close(*file);
	return rc;
}

int checkpoint_open_stage(const char *folder, uint32_t stage, struct safetensors **file,
			  struct error *err)
{
	struct checkpoint c = { 0 };
	char path[PATH];
	json_t *root;
	int rc = load_manifest(folder, &root, &c, err);

	if (rc)
		return rc;
	rc = open_named(folder, root, stage, file, path, err);
	json_decref(root);
	return rc;
}

/* Returns the stage of the config c that has the tensor. */
static uint32_t stage_of_tensor(const struct model_config *c, const struct tensor *t)
{
	uint32_t stage = 0;
	bool is_in_layer = t->role >= TENSOR_NORM1 && t->role <= TENSOR_DOWN;

	while (is_in_layer &&
	       t->layer >= model_first_layer(c, stage) + model_layer_count(c, stage))
		stage++;
	return stage;
}

/* Reads the tensors [first, first + n) of s, which must all be in the checkpoint's shard of stage
 * `from`. */
static int read_part(const char *folder, const json_t *root, const struct tensor_table *saved,
		     uint32_t from, struct stage *s, size_t first, size_t n, float *to,
		     struct error *err)
{
	struct safetensors *file;
	char path[PATH];
	size_t whole = 0;
	int rc = open_named(folder, root, from, &file, path, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < saved->n; i++)
		whole += saved->tensors[i].stage == from;
	rc = read_arrays(file, path, s, first, n, whole, to, err);
	safetensors_close(file);
	return rc;
}

/* Reads the tensors of s in groups, each from one shard. If the checkpoint has the same stages as
 * the model of s, there is one group: the shard of the same stage. */
static int read_parts(const char *folder, const json_t *root, const struct checkpoint *c,
		      struct stage *s, float *to, struct error *err)
{
	struct tensor_table saved = { 0 };
	size_t n, end;
	const struct tensor *tensors = stage_tensors(s, &n);
	int rc = tensor_table_new(&saved, &c->config, err);

	for (size_t i = 0; i < n && !rc; i = end) {
		uint32_t from = stage_of_tensor(&c->config, &tensors[i]);

		for (end = i + 1; end < n; end++)
			if (stage_of_tensor(&c->config, &tensors[end]) != from)
				break;
		rc = read_part(folder, root, &saved, from, s, i, end - i, to, err);
	}
	tensor_table_free(&saved);
	return rc;
}

/* Reads a stage. Compares each shard's hash with the manifest's, and changes nothing before all
 * shards are read. */
int checkpoint_read_stage(const char *folder, struct stage *s, struct error *err)
{
	struct checkpoint c = { 0 };
	uint32_t n_layers = stage_config(s)->n_layers;
	json_t *root;
	float *read;
	int rc = load_manifest(folder, &root, &c, err);

	if (rc)
		return rc;
	read = malloc(KINDS * stage_parameters(s) * sizeof(*read));
	if (c.config.n_layers != n_layers)
		rc = error_set(err, -EINVAL,
			       "%s/manifest.json: n_layers is %" PRIu32 ", the model has %" PRIu32,
			       folder, c.config.n_layers, n_layers);
	else if (!read)
		rc = error_set(err, -ENOMEM, "%s: no memory to read it", folder);
	else
		rc = read_parts(folder, root, &c, s, read, err);
	if (!rc)
		set_arrays(s, read);
	free(read);
	json_decref(root);
	return rc;
}

/* ---- checkpoints of a run: agents write the shards, the controller writes the manifest ---- */

static void save_folder(char path[PATH], const char *run, uint64_t iteration)
{
	snprintf(path, PATH, "%s/checkpoints/%08" PRIu64, run, iteration);
}

int checkpoint_stage_path(char *path, size_t room, const char *run, uint32_t stage,
			  uint64_t iteration)
{
	char name[NAME];
	int n;

	shard_name(name, stage, iteration, false);
	n = snprintf(path, room, "%s/checkpoints/%08" PRIu64 "/%s", run, iteration, name);
	return n < 0 || (size_t)n >= room ? -ENAMETOOLONG : 0;
}

/* Writes one stage's shard. The stage's tensors are consecutive in the model's table, and `state`
 * has their weights, then the moments. */
int checkpoint_save_stage(const char *run, const struct model_config *c, uint32_t stage,
			  uint64_t iteration, const float *state, bool moments, uint64_t *hash,
			  uint64_t *bytes, struct error *err)
{
	struct tensor_table table;
	char folder[PATH], name[NAME], path[PATH + NAME];
	struct place from = { .kind = 0 };
	size_t first = 0, n = 0, parameters;
	struct stat st;
	int rc = tensor_table_new(&table, c, err);

	if (rc)
		return rc;
	save_folder(folder, run, iteration);
	shard_name(name, stage, iteration, false);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	parameters = tensor_table_parameters(&table, stage);
	for (size_t k = 0; k < KINDS; k++)
		from.arrays[k] = moments ? state + k * parameters : state;
	while (table.tensors[first].stage != stage)
		first++;
	while (first + n < table.n && table.tensors[first + n].stage == stage)
		n++;
	rc = file_make_folder(folder, err);
	if (!rc)
		rc = write_arrays(path, &table.tensors[first], n, moments ? KINDS : 1, &from,
				  err);
	if (!rc)
		rc = shard_hash(path, hash, err);
	if (!rc && stat(path, &st) != 0)
		rc = error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!rc)
		*bytes = (uint64_t)st.st_size;
	tensor_table_free(&table);
	return rc;
}

static int open_shard(struct safetensors **file, char path[PATH + NAME], const char *run,
		      uint32_t stage, uint64_t iteration, uint64_t hash, struct error *err)
{
	char folder[PATH], name[NAME];
	uint64_t is = 0;
	int rc;

	save_folder(folder, run, iteration);
	shard_name(name, stage, iteration, false);
	snprintf(path, PATH + NAME, "%s/%s", folder, name);
	rc = safetensors_open(file, path, err);
	if (rc)
		return rc;
	rc = safetensors_hash(*file, &is, err);
	if (!rc && is != hash)
		rc = error_set(err, -EINVAL,
			       "%s: damaged, or of other stages: its hash differs from the "
			       "recorded one",
			       path);
	if (rc)
		safetensors_close(*file);
	return rc;
}

int checkpoint_check_stage(const char *run, uint32_t stage, uint64_t iteration, uint64_t hash,
			   struct error *err)
{
	struct safetensors *file;
	char path[PATH + NAME];
	int rc = open_shard(&file, path, run, stage, iteration, hash, err);

	if (!rc)
		safetensors_close(file);
	return rc;
}

int checkpoint_load_stage(const char *run, struct stage *s, uint64_t iteration, uint64_t hash,
			  struct error *err)
{
	struct safetensors *file;
	char path[PATH + NAME];
	int rc = open_shard(&file, path, run, stage_index(s), iteration, hash, err);

	if (rc)
		return rc;
	rc = read_shard(file, path, s, err);
	safetensors_close(file);
	return rc;
}

int checkpoint_save_manifest(const char *run, const struct checkpoint *c,
			     const uint64_t *hashes, struct error *err)
{
	json_t *shards = json_array();
	char folder[PATH], name[NAME];
	int rc = shards ? 0 : -ENOMEM;

	save_folder(folder, run, c->iteration);
	for (uint32_t i = 0; i < c->config.n_stages && !rc; i++) {
		shard_name(name, i, c->iteration, false);
		if (note_shard(shards, name, hashes[i]) < 0)
			rc = -ENOMEM;
	}
	if (rc)
		error_set(err, rc, "%s: no memory", folder);
	if (!rc)
		rc = file_make_folder(folder, err);
	if (!rc)
		rc = write_manifest(folder, c, shards, err);
	json_decref(shards);
	return rc;
}

/* Removes a checkpoint's shards, their temporary files and the manifest. Removes the folder if
 * nothing else is in it. */
static void remove_saved(const char *folder)
{
	DIR *d = opendir(folder);
	char path[PATH + 256];

	for (struct dirent *e; d && (e = readdir(d));) {
		size_t n = shard_prefix(e->d_name);

		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		if (n && file_is_aside(e->d_name + n))
			file_remove_aside(path);
		else if ((n && !e->d_name[n]) || strcmp(e->d_name, "manifest.json") == 0)
			unlink(path);
	}
	if (d)
		closedir(d);
	rmdir(folder);
}

void checkpoint_prune(const char *run, uint64_t after, uint64_t before)
{
	char folder[PATH], path[PATH];
	DIR *d;

	snprintf(folder, sizeof(folder), "%s/checkpoints", run);
	d = opendir(folder);
	for (struct dirent *e; d && (e = readdir(d));) {
		char *end;
		unsigned long long iteration = strtoull(e->d_name, &end, 10);

		if (e->d_name[0] < '0' || e->d_name[0] > '9' || *end || iteration <= after ||
		    iteration >= before)
			continue;
		save_folder(path, run, iteration);
		remove_saved(path);
	}
	if (d)
		closedir(d);
}
