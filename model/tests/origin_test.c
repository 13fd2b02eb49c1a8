/* Tests that a model on disk is cut into any number of stages without a change of a weight or a
 * moment. Also tests that a model that has changed since the cut is refused. */
#include "model/files/origin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/tests/test.h"
#include "model/files/checkpoint.h"
#include "model/files/huggingface.h"
#include "model/tensor.h"
#include "model/trainer.h"

enum { VOCAB = 31, T = 8 };

struct fixture {
	char folder[64], source[96], run[96];
	struct model_config config;
	struct hyperparameters hyper;
};

static int make_folder(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->folder, "/tmp/origin_test.XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	snprintf(f->source, sizeof(f->source), "%s/source", f->folder);
	snprintf(f->run, sizeof(f->run), "%s/run", f->folder);
	f->config = (struct model_config){ .vocab = VOCAB,
					   .dim = 16,
					   .n_layers = 4,
					   .n_heads = 2,
					   .n_kv_heads = 2,
					   .ffn_dim = 24,
					   .context = 16,
					   .n_stages = 2,
					   .rope_theta = 10000,
					   .norm_eps = 1e-5f,
					   .init_std = 0.1f };
	model_preset("tiny", NULL, &f->hyper, NULL);
	f->hyper.batch = 1;
	f->hyper.sequence = T;
	*state = f;
	return 0;
}

static int remove_folder(void **state)
{
	struct fixture *f = *state;

	file_remove_folder(f->folder);
	free(f);
	return 0;
}

static struct trainer *make_trainer(struct fixture *f, uint32_t n_stages)
{
	struct model_config c = f->config;
	struct stage_options o = { .batch = 1, .sequence = T, .threads = 1, .seed = 4 };
	struct trainer *t;

	c.n_stages = n_stages;
	assert_int_equal(trainer_new(&t, &c, &f->hyper, &o, NULL), 0);
	return t;
}

/* Trains two steps, so that the moments are not zeros. */
static struct trainer *make_trained(struct fixture *f)
{
	static const uint32_t all[] = { 1 };
	struct trainer *t = make_trainer(f, 2);
	int32_t tokens[T] = { 1, 2, 3, 4, 5, 6, 7, 8 }, targets[T] = { 2, 3, 4, 5, 6, 7, 8, 9 };
	double norm;
	float loss;

	for (uint64_t i = 0; i < 2; i++) {
		assert_int_equal(trainer_microbatch(t, all, 1, tokens, targets, &loss), 0);
		assert_int_equal(trainer_step(t, i + 1, GRAD_NORM_MICROBATCHES, &norm), 0);
	}
	return t;
}

/* Returns a tensor's values in one of the three arrays, from whichever stage has the tensor. */
static const float *find(struct trainer *t, uint32_t n_stages, const char *name, int kind,
			 size_t *count)
{
	for (uint32_t s = 0; s < n_stages; s++) {
		struct stage *stage = trainer_stages(t)[s];
		size_t n;
		const struct tensor *tensors = stage_tensors(stage, &n);
		const float *arrays[] = { stage_weights(stage), stage_moment1(stage),
					  stage_moment2(stage) };

		for (size_t i = 0; i < n; i++)
			if (strcmp(tensors[i].name, name) == 0) {
				*count = tensors[i].count;
				return arrays[kind] + tensors[i].offset;
			}
	}
	return NULL;
}

static void assert_same_model(struct fixture *f, struct trainer *a, struct trainer *b,
			      uint32_t n_b, bool moments)
{
	struct tensor_table table;

	assert_int_equal(tensor_table_new(&table, &f->config, NULL), 0);
	for (size_t i = 0; i < table.n; i++)
		for (int kind = 0; kind < 3; kind++) {
			size_t n, m;
			const float *x = find(a, 2, table.tensors[i].name, kind, &n);
			const float *y = find(b, n_b, table.tensors[i].name, kind, &m);

			assert_int_equal(n, m);
			for (size_t k = 0; k < n; k++)
				assert_true(y[k] == (kind > 0 && !moments ? 0 : x[k]));
		}
	tensor_table_free(&table);
}

/* Reads the configuration, cuts the model, and loads the stages as an agent does. */
static struct trainer *cut_and_load(struct fixture *f, uint32_t n_stages, struct origin *o)
{
	struct trainer *t = make_trainer(f, n_stages);
	struct model_config c;
	struct hyperparameters r;
	struct error err = { "" };
	bool trained;

	if (origin_read(o, f->source, &c, &r, &trained, &err) != 0)
		fail_msg("%s", err.text);
	c.n_stages = n_stages;
	if (origin_cut(o, &c, f->run, &err) != 0)
		fail_msg("%s", err.text);
	for (uint32_t s = 0; s < n_stages; s++)
		if (checkpoint_load_stage(f->run, trainer_stages(t)[s], 0, o->hashes[s], &err) != 0)
			fail_msg("%s", err.text);
	return t;
}

static void save(struct fixture *f, struct trainer *t)
{
	struct checkpoint k = { .config = f->config,
				.hyper = f->hyper,
				.iteration = 2,
				.seed = 4,
				.position = 6,
				.corpus = 0x123 };

	assert_int_equal(checkpoint_write(f->source, &k, trainer_stages(t), NULL), 0);
}

#define FIXTURE_TEST(name) TEST_WITH(name, make_folder, remove_folder)

FIXTURE_TEST(a_checkpoint_is_cut_with_its_moments)
{
	struct fixture *f = *state;
	struct trainer *t = make_trained(f);

	save(f, t);
	for (uint32_t n = 1; n <= 5; n++) {
		struct origin o, back;
		struct trainer *cut = cut_and_load(f, n, &o);
		char *text = origin_print(&o);

		assert_same_model(f, t, cut, n, true);
		assert_true(o.steps == 2 && o.position == 6 && o.corpus == 0x123 && o.seed == 4);
		assert_int_equal(origin_parse(&back, text, NULL), 0);
		assert_memory_equal(&back, &o, sizeof(o));
		free(text);
		trainer_free(cut);
	}
	trainer_free(t);
}

FIXTURE_TEST(another_tools_model_begins_with_zero_moments)
{
	struct fixture *f = *state;
	struct trainer *t = make_trained(f), *cut;
	struct origin o;

	assert_int_equal(huggingface_export(f->source, trainer_stages(t), NULL, NULL), 0);
	cut = cut_and_load(f, 3, &o);
	assert_same_model(f, t, cut, 3, false);
	assert_true(o.steps == 0 && o.position == 0 && o.corpus == 0);
	trainer_free(cut);
	trainer_free(t);
}

FIXTURE_TEST(a_changed_source_is_refused)
{
	struct fixture *f = *state;
	struct trainer *t = make_trained(f);
	struct model_config c = f->config;
	struct origin o;
	struct error err = { "" };

	save(f, t);
	trainer_free(cut_and_load(f, 2, &o));
	assert_int_equal(origin_cut_again(&o, &c, f->run, &err), 0);
	stage_weights(trainer_stages(t)[1])[0] += 1;
	save(f, t);
	assert_int_equal(origin_cut_again(&o, &c, f->run, &err), -ESTALE);
	assert_non_null(strstr(err.text, "has changed since the run began: stage 1"));
	file_remove_folder(f->source);
	assert_true(origin_cut_again(&o, &c, f->run, &err) < 0);
	trainer_free(t);
}

FIXTURE_TEST(a_folder_without_a_model_is_named)
{
	struct fixture *f = *state;
	struct model_config c;
	struct hyperparameters r;
	struct origin o = { .steps = 5 };
	struct error err = { "" };
	bool trained;

	assert_int_equal(origin_read(&o, f->source, &c, &r, &trained, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/source"));
	assert_int_equal(origin_read(&o, f->folder, &c, &r, &trained, &err), -ENOENT);
	assert_non_null(strstr(err.text, "neither a checkpoint (manifest.json) nor"));
	assert_int_equal(o.steps, 5);
	assert_int_equal(origin_parse(&o, "{\"folder\": \"x\"}", &err), -EINVAL);
	assert_int_equal(origin_parse(&o, "[", &err), -EINVAL);
}
