/* Tests that wrong configurations are refused with the name of the field, and that a configuration
 * that was printed is read back unchanged. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "model/config.h"
#include "model/tensor.h"

TEST(presets_are_valid)
{
	struct model_config c;
	struct hyperparameters r;
	struct error err;

	for (size_t i = 0; model_preset_name(i); i++) {
		assert_int_equal(model_preset(model_preset_name(i), &c, &r, &err), 0);
		if (model_config_check(&c, &err) || hyper_check(&r, &c, &err))
			fail_msg("%s: %s", model_preset_name(i), err.text);
		assert_int_equal(r.schedule, LR_WSD);
	}
	assert_int_equal(model_preset("huge", &c, &r, &err), -ENOENT);
	assert_non_null(strstr(err.text, "huge"));
	assert_non_null(strstr(err.text, "tiny"));
}

TEST(fields_are_checked_by_name)
{
	static const struct {
		size_t offset;
		uint32_t value;
		const char *says;
	} bad[] = {
		{ offsetof(struct model_config, vocab), 1, "vocab" },
		{ offsetof(struct model_config, dim), 0, "dim" },
		{ offsetof(struct model_config, dim), 97, "n_heads" },
		{ offsetof(struct model_config, n_heads), 0, "n_heads" },
		{ offsetof(struct model_config, n_heads), 96, "even head size" },
		{ offsetof(struct model_config, n_kv_heads), 4, "n_kv_heads" },
		{ offsetof(struct model_config, n_stages), 14, "n_stages" },
		{ offsetof(struct model_config, n_stages), 0, "n_stages" },
		{ offsetof(struct model_config, ffn_dim), 0, "ffn_dim" },
		{ offsetof(struct model_config, context), 0, "context" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct model_config c;
		struct error err = { "" };

		model_preset("tiny", &c, NULL, NULL);
		memcpy((char *)&c + bad[i].offset, &bad[i].value, sizeof(bad[i].value));
		assert_int_equal(model_config_check(&c, &err), -EINVAL);
		if (!strstr(err.text, bad[i].says))
			fail_msg("\"%s\" does not say \"%s\"", err.text, bad[i].says);
	}
}

TEST(printed_models_read_back)
{
	for (size_t i = 0; model_preset_name(i); i++) {
		struct model_config c, back = { 0 };
		struct hyperparameters r, r_back = { 0 };
		struct error err;
		char *text, *again;

		model_preset(model_preset_name(i), &c, &r, NULL);
		r.adamw.lr = 0.1f / 3;
		text = model_config_print(&c, &r);
		assert_non_null(text);
		assert_int_equal(
			model_config_parse(&back, &r_back, text, strlen(text), "t", &err), 0);
		again = model_config_print(&back, &r_back);
		assert_string_equal(text, again);
		assert_true(r_back.adamw.lr == r.adamw.lr);
		free(text);
		free(again);
	}
}

/* A model without RoPE scaling is printed without the fields for RoPE scaling, as by earlier
 * versions of this program. */
TEST(scaled_positions_read_back)
{
	struct model_config c, back;
	struct error err;
	char *text;

	model_preset("tiny", &c, NULL, NULL);
	text = model_config_print(&c, NULL);
	assert_null(strstr(text, "rope_factor"));
	free(text);
	c.rope_factor = 8;
	c.rope_low_freq_factor = 1;
	c.rope_high_freq_factor = 4.5f;
	c.rope_original_context = 128;
	text = model_config_print(&c, NULL);
	assert_int_equal(model_config_parse(&back, NULL, text, strlen(text), "t", &err), 0);
	assert_true(back.rope_factor == 8 && back.rope_low_freq_factor == 1 &&
		    back.rope_high_freq_factor == 4.5f && back.rope_original_context == 128);
	free(text);
}

TEST(incomplete_scaling_is_refused)
{
	static const struct {
		float factor, low, high;
		uint32_t context;
		const char *says;
	} bad[] = {
		{ 0.5f, 0, 0, 0, "rope_factor is 0.5" },
		{ -2, 0, 0, 0, "rope_factor is -2" },
		{ 0, 1, 4, 128, "expected all four" },
		{ 8, 1, 4, 0, "expected all four" },
		{ 8, 0, 4, 128, "expected all four" },
		{ 8, 1, 0, 128, "rope_high_freq_factor is 0" },
		{ 8, 4, 4, 128, "rope_high_freq_factor is 4" },
		{ 8, 1, (float)INFINITY, 128, "rope_high_freq_factor is inf" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct error err = { "" };
		struct model_config c;

		model_preset("tiny", &c, NULL, NULL);
		c.rope_factor = bad[i].factor;
		c.rope_low_freq_factor = bad[i].low;
		c.rope_high_freq_factor = bad[i].high;
		c.rope_original_context = bad[i].context;
		assert_int_equal(model_config_check(&c, &err), -EINVAL);
		if (!strstr(err.text, bad[i].says))
			fail_msg("\"%s\" does not say \"%s\"", err.text, bad[i].says);
	}
}

static void refused(const char *text, const char *says)
{
	struct model_config c = { .dim = 5 };
	struct error err = { "" };

	assert_int_equal(model_config_parse(&c, NULL, text, strlen(text), "file.json", &err),
			 -EINVAL);
	if (!strstr(err.text, says) || strncmp(err.text, "file.json: ", 11) != 0)
		fail_msg("\"%s\" does not say \"%s\"", err.text, says);
	assert_int_equal(c.dim, 5);
}

TEST(bad_documents_are_refused_by_key)
{
	struct model_config c;
	char *good, *at;

	refused("", "is empty");
	refused("[]", "object");
	refused("{}", "format");
	refused("{\"format\":\"skippipe.model/2\"}", "skippipe.model/1");
	refused("{\"format\":\"skippipe.model/1\"}", "model");
	refused("{\"format\":\"skippipe.model/1\",\"modle\":{}}", "modle: unknown key");
	refused("{\"format\":\"skippipe.model/1\",\"model\":{\"dims\":4}}",
		"model.dims: unknown");
	refused("{\"format\":\"skippipe.model/1\",\"model\":{\"vocab\":4}}",
		"model.dim: missing");
	refused("{\"format\":\"skippipe.model/1\",\"model\":{\"vocab\":4.5}}",
		"vocab: expected");
	refused("{\"format\":\"skippipe.model/1\",\"model\":{\"vocab\":4,\"vocab\":5}}",
		"line");
	model_preset("tiny", &c, NULL, NULL);
	good = model_config_print(&c, NULL);
	at = strstr(good, "\"dim\":96");
	memcpy(at, "\"dim\":95", 8);
	refused(good, "dim is 95");
	free(good);
}

static void cut_refused(const char *list, const char *says)
{
	struct model_config c, before;
	struct stage_layers cut;
	struct error err = { "" };

	model_preset("tiny", &c, NULL, NULL);
	before = c;
	if (stage_layers_parse(&cut, "--cut", list, &err) == 0)
		assert_int_equal(model_cut(&c, &cut, "--cut", &err), -EINVAL);
	if (!strstr(err.text, says))
		fail_msg("\"%s\" does not say \"%s\"", err.text, says);
	assert_memory_equal(&c, &before, sizeof(c));
}

TEST(cuts_that_do_not_fit_are_refused)
{
	struct model_config c;
	struct error err = { "" };
	char list[STAGE_LAYERS_TEXT] = "1";

	cut_refused("", "--cut : expected the number of layers of each stage");
	cut_refused("3,,9", "--cut 3,,9: expected");
	cut_refused("3, 9", "--cut 3, 9: expected");
	cut_refused("3,9x", "--cut 3,9x: expected");
	cut_refused("-3,15", "--cut -3,15: expected");
	cut_refused("12,4294967296", "expected the number of layers");
	cut_refused("0,5,3", "--cut: 0 + 5 + 3 is 8 layers, but the model has 12 (n_layers)");
	cut_refused("4,0,8", "--cut: stage 1 has no layers: only stage 0 may have none");
	for (int i = 0; i < ROUTE_HOPS; i++)
		strcat(list, ",1");
	cut_refused(list, "at most 64 stages");
	/* A cut that contradicts n_stages is refused. */
	model_preset("tiny", &c, NULL, NULL);
	assert_int_equal(model_cut(&c, &(struct stage_layers){ 2, { 2, 10 } }, "--cut", &err), 0);
	c.n_stages = 3;
	assert_int_equal(model_config_check(&c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "stage_layers has 2 stages, n_stages is 3"));
}

/* Replaces the stages of a document by a list of the same length, and checks that the document is
 * refused. */
static void refuse_cut(const char *list, const char *says)
{
	struct model_config c;
	char *text;

	model_preset("tiny", &c, NULL, NULL);
	model_cut(&c, &(struct stage_layers){ 3, { 0, 7, 5 } }, "cut", NULL);
	text = model_config_print(&c, NULL);
	memcpy(strstr(text, "[0,7,5]"), list, 7);
	refused(text, says);
	free(text);
}

/* An equal cut is written as n_stages alone. */
TEST(cuts_read_back)
{
	static const struct {
		const char *list, *key;
	} cuts[] = { { "0,7,5", "\"stage_layers\":[0,7,5]" },
		     { "12", NULL },
		     { "2,2,2,2,2,2", NULL },
		     { "0,1,1,1,1,1,1,1,1,1,1,1,1", NULL },
		     { "2,2,3,2,3", NULL },
		     { "3,2,3,2,2", "\"stage_layers\":[3,2,3,2,2]" } };

	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		struct model_config c, equal, back = { 0 };
		struct stage_layers cut;
		struct error err = { "" };
		char *text, *plain, list[STAGE_LAYERS_TEXT];
		uint32_t sum = 0;

		model_preset("tiny", &c, NULL, NULL);
		assert_int_equal(stage_layers_parse(&cut, "--cut", cuts[i].list, &err), 0);
		assert_int_equal(model_cut(&c, &cut, "--cut", &err), 0);
		assert_int_equal(model_config_check(&c, &err), 0);
		for (uint32_t s = 0; s < c.n_stages; s++) {
			assert_int_equal(model_first_layer(&c, s), sum);
			sum += model_layer_count(&c, s);
		}
		assert_int_equal(sum, 12);
		model_cut_format(&c, list);
		assert_string_equal(list, cuts[i].list);
		model_preset("tiny", &equal, NULL, NULL);
		equal.n_stages = cut.n;
		text = model_config_print(&c, NULL);
		plain = model_config_print(&equal, NULL);
		if (cuts[i].key)
			assert_non_null(strstr(text, cuts[i].key));
		else
			assert_string_equal(text, plain);
		assert_int_equal(model_config_parse(&back, NULL, text, strlen(text), "t", &err), 0);
		assert_memory_equal(&back.stage_layers, &c.stage_layers, sizeof(c.stage_layers));
		free(text);
		free(plain);
	}
	refuse_cut("[     ]", "model: stage_layers: expected an array of 1 to 64");
	refuse_cut("[1, -1]", "model: stage_layers[1]: expected a whole number");
	refuse_cut("[5,6,3]", "stage_layers: 5 + 6 + 3 is 14 layers, but the model has 12");
	refuse_cut("\"0,7,5\"", "model: stage_layers: expected an array");
}

TEST(rates_follow_the_hyperparameters)
{
	struct hyperparameters r = {
		.adamw.lr = 1, .warmup = 4, .iterations = 12, .final_lr = 0.1f
	};

	assert_float_equal(hyper_lr(&r, 1), 0.25, 1e-6);
	assert_float_equal(hyper_lr(&r, 4), 1, 1e-6);
	assert_float_equal(hyper_lr(&r, 8), 0.55, 1e-6);
	assert_float_equal(hyper_lr(&r, 12), 0.1, 1e-6);
	assert_float_equal(hyper_lr(&r, 99), 0.1, 1e-6);
	r.iterations = 0;
	assert_float_equal(hyper_lr(&r, 99), 1, 1e-6);
}

TEST(each_schedule_has_its_rates)
{
	/* The iterations at which the rows list their rates. Iteration 2 is the last of the
	 * warm-up. */
	static const uint64_t at[] = { 2, 6, 8, 10, 12, 99 };
	static const struct {
		uint32_t schedule;
		float decay;
		double rates[6];
	} rows[] = {
		{ LR_COSINE, 0, { 1, 0.689058, 0.410942, 0.185942, 0.1, 0.1 } },
		{ LR_LINEAR, 0, { 1, 0.64, 0.46, 0.28, 0.1, 0.1 } },
		/* Decay 0: the rate falls in the last fifth of the 12 iterations, which is 2 of
		 * them. */
		{ LR_WSD, 0, { 1, 1, 1, 1, 0.1, 0.1 } },
		{ LR_WSD, 0.5f, { 1, 1, 0.7, 0.4, 0.1, 0.1 } },
		{ LR_WSD, 6, { 1, 1, 0.7, 0.4, 0.1, 0.1 } },
		{ LR_WSD,
		  500,
		  /* The decay cannot begin before the end of the warm-up. */
		  { 1, 0.64, 0.46, 0.28, 0.1, 0.1 } },
		{ LR_WSD_SQRT, 4, { 1, 1, 1, 0.363604, 0.1, 0.1 } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hyperparameters r = { .adamw.lr = 1,
					     .warmup = 2,
					     .iterations = 12,
					     .final_lr = 0.1f,
					     .schedule = rows[i].schedule,
					     .decay = rows[i].decay };

		assert_float_equal(hyper_lr(&r, 1), 0.5, 1e-6);
		for (size_t k = 0; k < 6; k++)
			if (fabs((double)hyper_lr(&r, at[k]) - rows[i].rates[k]) > 1e-6)
				fail_msg("row %zu, iteration %d: %g", i, (int)at[k],
					 (double)hyper_lr(&r, at[k]));
		r.iterations = 0;
		assert_float_equal(hyper_lr(&r, 99), 1, 1e-6);
		assert_true(hyper_decay_begin(&r) == UINT64_MAX);
	}
}

/* A training that is continued, perhaps with another length, must not raise its rate again. The
 * rates of iterations that are done must stay the same. */
TEST(a_schedule_ends_with_its_training)
{
	static const struct {
		uint32_t schedule, was;
		float decay;
		uint64_t done, length;
		/* Expected values: the hyperparameter `iterations`, and the last iteration before
		 * the decay. */
		uint32_t iterations;
		uint64_t begin;
	} rows[] = {
		{ LR_COSINE, 0, 0, 0, 100, 100, 10 },
		{ LR_LINEAR, 0, 0, 0, 100, 100, 10 },
		{ LR_COSINE, 100, 0, 50, 200, 100, 10 }, /* a begun cosine keeps its end */
		{ LR_COSINE, 0, 0, 50, 200, 0, UINT64_MAX },
		{ LR_WSD, 0, 0, 0, 100, 100, 80 },
		/* The decay has not begun, so the end changes. */
		{ LR_WSD, 100, 0, 80, 200, 200, 160 },
		{ LR_WSD, 100, 0, 81, 200, 100, 80 }, /* the decay has begun, so the end stays */
		/* The decay takes the iterations that are left. */
		{ LR_WSD, 100, 0, 70, 75, 75, 70 },
		{ LR_WSD, 0, 0, 70, 75, 75, 70 },
		{ LR_WSD, 100, 20, 70, 120, 120, 100 },
		/* An unknown length: the rate stays until the training is stopped. */
		{ LR_WSD, 100, 0, 70, 0, 0, UINT64_MAX },
		/* No iterations are left, so the end stays. */
		{ LR_WSD, 100, 0, 70, 60, 100, 80 },
		{ LR_WSD, 100, 0, 70, UINT64_MAX, 0, UINT64_MAX },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hyperparameters r = { .adamw.lr = 1,
					     .warmup = 10,
					     .iterations = rows[i].was,
					     .schedule = rows[i].schedule,
					     .decay = rows[i].decay };

		hyper_end_with(&r, rows[i].done, rows[i].length);
		if (r.iterations != rows[i].iterations || hyper_decay_begin(&r) != rows[i].begin)
			fail_msg("row %zu: %u, begin %lld", i, r.iterations,
				 (long long)hyper_decay_begin(&r));
	}
}

TEST(a_schedule_is_set_and_printed_by_name)
{
	struct model_config c;
	struct hyperparameters r, back = { 0 };
	struct error err;
	char *text;

	model_preset("tiny", &c, &r, NULL);
	assert_int_equal(model_config_set(&c, &r, "schedule", "wsd-sqrt", &err), 0);
	assert_int_equal(model_config_set(NULL, &r, "decay", "0.35", &err), 0);
	assert_true(r.schedule == LR_WSD_SQRT && r.decay == 0.35f);
	text = model_config_print(&c, &r);
	assert_non_null(strstr(text, "\"schedule\":\"wsd-sqrt\""));
	assert_int_equal(model_config_parse(&c, &back, text, strlen(text), "t", &err), 0);
	assert_memory_equal(&r, &back, sizeof(r));
	free(text);

	assert_int_equal(model_config_set(&c, &r, "schedule", "step", &err), -EINVAL);
	assert_string_equal(err.text, "schedule: expected cosine, linear, wsd or wsd-sqrt");
	assert_int_equal(model_config_set(NULL, &r, "dim", "64", &err), -EINVAL);
	assert_string_equal(err.text, "dim: no such field of hyperparameters");
	assert_int_equal(model_config_set(&c, &r, "schedule", "linear", &err), 0);
	assert_int_equal(hyper_check(&r, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "decay is 0.35"));
}

/* Documents that were written before schedules had names have a cosine. */
TEST(hyperparameters_without_a_schedule_are_a_cosine)
{
	struct model_config c;
	struct hyperparameters r;
	struct error err;
	char *text;

	model_preset("tiny", &c, &r, NULL);
	r.schedule = LR_COSINE;
	r.decay = 0;
	text = model_config_print(&c, &r);
	assert_null(strstr(text, "schedule"));
	r.schedule = LR_WSD;
	assert_int_equal(model_config_parse(&c, &r, text, strlen(text), "t", &err), 0);
	assert_int_equal(r.schedule, LR_COSINE);
	free(text);
}

TEST(a_position_counts_microbatches_of_its_run)
{
	struct hyperparameters was = { .batch = 4, .sequence = 64 },
			       now = { .batch = 1, .sequence = 256 };

	assert_int_equal(hyper_position(&was, &now, UINT64_MAX / 2), UINT64_MAX / 2);
	now.batch = 3;
	assert_int_equal(hyper_position(&was, &now, 10), 4); /* 3.3, rounded up */
	assert_int_equal(hyper_position(&now, &was, 10), 30);
	assert_int_equal(hyper_position(&now, &was, INT64_MAX), INT64_MAX);
}

TEST(the_clip_bounds_the_norm)
{
	struct hyperparameters r = { .clip = 1 };

	/* A sum of norm 6 over 3 microbatches is an average of norm 2, which is clipped to half. */
	assert_float_equal(hyper_scale(&r, 36, 3), 1.0 / 6, 1e-7);
	assert_float_equal(hyper_scale(&r, 4, 3), 1.0 / 3, 1e-7);
	r.clip = 0;
	assert_float_equal(hyper_scale(&r, 36, 3), 1.0 / 3, 1e-7);
}

TEST(the_visits_of_a_stage_divide_its_gradient)
{
	const struct stage_visits visits = { 3, { 30, 0, 7 } }, none = { 0 };

	assert_true(hyper_stage_scale(0.5f, &visits, 0) == (float)(0.5 / 30));
	/* No microbatch visits this stage, so its sum is 0. */
	assert_true(hyper_stage_scale(0.5f, &visits, 1) == 0.5f);
	assert_true(hyper_stage_scale(0.5f, &visits, 2) == (float)(0.5 / 7));
	assert_true(hyper_stage_scale(0.5f, &visits, 3) == 0.5f);
	assert_true(hyper_stage_scale(0.5f, &none, 2) == 0.5f);
}

/* With any number of stages, the table has the same tensors: each once, without gaps, with the same
 * initial values.
 */
TEST(the_table_covers_the_model)
{
	struct model_config c;
	size_t count = 0;

	model_preset("tiny", &c, NULL, NULL);
	c.n_layers = 7;
	for (c.n_stages = 1; c.n_stages <= 8; c.n_stages++) {
		struct tensor_table t;
		size_t sum = 0, end = 0;

		assert_int_equal(tensor_table_new(&t, &c, NULL), 0);
		assert_int_equal(t.n, 7 * 9 + 3);
		for (size_t i = 0; i < t.n; i++) {
			if (i == 0 || t.tensors[i].stage != t.tensors[i - 1].stage)
				end = 0;
			assert_int_equal(t.tensors[i].offset, end);
			end += t.tensors[i].count;
			for (size_t k = 0; k < i; k++)
				assert_string_not_equal(t.tensors[k].name, t.tensors[i].name);
		}
		for (uint32_t s = 0; s < c.n_stages; s++)
			sum += tensor_table_parameters(&t, s);
		assert_true(count == 0 || count == sum);
		count = sum;
		tensor_table_free(&t);
	}
}

TEST(initial_weights_are_normal)
{
	struct tensor t = { .name = "a", .dims = 2, .count = 20000 };
	float *w = calloc(t.count, sizeof(*w)), *other = calloc(t.count, sizeof(*w));
	double sum = 0, squares = 0, dots = 0;

	tensor_initialise(&t, 0.02f, 1, w);
	t.name[0] = 'b';
	tensor_initialise(&t, 0.02f, 1, other);
	for (size_t i = 0; i < t.count; i++) {
		sum += (double)w[i];
		squares += (double)w[i] * (double)w[i];
		dots += (double)w[i] * (double)other[i];
	}
	assert_true(fabs(sum / 20000) < 4 * 0.02 / sqrt(20000));
	assert_true(fabs(sqrt(squares / 20000) - 0.02) < 0.001);
	assert_true(fabs(dots / 20000) < 4 * 0.0004 / sqrt(20000));
	t.dims = 1;
	tensor_initialise(&t, 0.02f, 1, w);
	assert_true(w[0] == 1 && w[19999] == 1);
	free(w);
	free(other);
}
