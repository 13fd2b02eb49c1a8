/* Tests how members are described for the choice of stages, and the choice itself. There are six
 * emulated nodes. The last two take three times as long as the others. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/tests/test.h"
#include "controller/members/member.h"
#include "controller/planning/stage_choice.h"
#include "controller/tests/bare.h"
#include "model/cut.h"
#include "schedule/fleet/holds.h"
#include "schedule/format/request.h"

enum { NODES = 6, FAST = 4, SLOW = 5, MICROBATCHES = 12 };
static const double forward_s = 0.1, slower = 3, delay_s = 0.01, bytes_s = 0.004;

static int begin(void **state)
{
	struct cluster *c = cluster_alloc(NODES, 3, true);
	struct controller *w;

	for (int s = 0; s < 3; s++)
		c->stages[s] = 2;
	c->bytes_s = calloc(NODES * NODES, sizeof(*c->bytes_s));
	for (int i = 0; i < NODES * NODES; i++) {
		c->delay_s[i] = delay_s;
		c->bytes_s[i] = bytes_s;
	}
	for (int i = 0; i < NODES; i++) {
		c->nodes[i].stage = i / 2;
		c->nodes[i].memory = 3;
		c->nodes[i].forward_s = i < FAST ? forward_s : slower * forward_s;
		c->nodes[i].backward_s = 2 * c->nodes[i].forward_s;
	}
	w = bare_controller(c, 3);
	assert_int_equal(model_preset("tiny", &w->run.training.model, &w->run.training.hyper, NULL),
			 0);
	model_cut_equally(&w->run.training.model, 3);
	w->run.wanted.formats = (struct tensor_formats){ FORMAT_FP32, FORMAT_FP32 };
	for (int i = 0; i < NODES; i++)
		strcpy(w->members.list[i].hello.device, "cpu");
	*state = w;
	return 0;
}

static int end(void **state)
{
	bare_free(*state);
	return 0;
}

#define FIXTURE_TEST(name) TEST_WITH(name, begin, end)

static struct stage_question *ask(struct controller *w)
{
	struct stage_question *q;
	struct error err = { "" };

	if (stage_question_new(&w->members, MICROBATCHES, &q, &err) != 0)
		fail_msg("%s", err.text);
	return q;
}

static struct stage_choice *wait_for(struct stage_question *q)
{
	struct stage_choice *c;
	struct error err = { "" };

	if (stage_choice_start(q, 60, 2, &c, &err) != 0)
		fail_msg("%s", err.text);
	while (!stage_choice_is_done(c))
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	return c;
}

static struct stage_choice *choose_for(struct controller *w)
{
	return wait_for(ask(w));
}

FIXTURE_TEST(speeds_and_links_are_those_of_the_cluster)
{
	struct stage_question *q = ask(*state);
	const struct fleet *f = q->fleet;
	double bytes = q->shape.activation_bytes * q->shape.batch;

	assert_int_equal(f->n_nodes, NODES);
	assert_int_equal(f->entries[0].most_slots, 3);
	assert_true(fabs(f->entries[0].flop_per_s / f->entries[SLOW].flop_per_s / slower - 1) <
		    1e-9);
	/* A stage with a third of the layers must need forward_s, the cluster's time for a forward
	 * pass. */
	assert_true(fabs(q->shape.batch * 4 * q->shape.layer_flop / f->entries[0].flop_per_s /
				 forward_s - 1) < 1e-9);
	assert_true(fabs(f->latency_s[1] + bytes / f->bandwidth[1] - delay_s) < 1e-9);
	stage_question_free(q);
}

FIXTURE_TEST(nodes_that_cannot_take_part_are_not_asked_about)
{
	struct controller *w = *state;
	struct member *list = w->members.list;
	struct stage_question *q;

	list[0].state = MEMBER_DEAD;
	list[1].is_marked = true;
	list[2].is_marked = list[2].assigned.is_left_out = true;
	q = ask(w);
	assert_int_equal(q->fleet->n_nodes, NODES - 2);
	assert_int_equal(q->node_of[0], 2);
	assert_int_equal(q->node_of[3], SLOW);
	stage_question_free(q);
}

FIXTURE_TEST(the_choice_is_no_slower_than_equal_stages)
{
	struct stage_choice *c = choose_for(*state);
	const struct stage_question *q = stage_choice_question(c);
	const struct candidate *best = stage_choice_candidate(c, 0);
	struct candidate equal;
	struct error err = { "" };
	char text[STAGE_CHOICE_TEXT];

	assert_int_equal(stage_choice_result(c, &err), 0);
	candidate_init(&equal, &q->frame);
	equal.n_stages = 3;
	equal.sequences = q->shape.batch;
	for (int i = 0; i < NODES; i++)
		equal.stage_of[i] = i / 2;
	for (int s = 0; s < 3; s++)
		equal.layers[s] = 4;
	assert_true(candidate_is_possible(&equal, &q->frame));
	candidate_evaluate(&equal, 5000, &q->frame);
	assert_true(best->seconds <= equal.seconds);
	assert_true(stage_choice_candidate(c, 1) == NULL ||
		    stage_choice_candidate(c, 1)->seconds >= best->seconds);
	stage_choice_describe(c, 0, text);
	assert_non_null(strstr(text, "s an iteration: S0 n0"));
	candidate_fini(&equal);
	stage_choice_free(c);
}

/* An iteration is shorter if one small stage has all slow nodes than if all stages are equal. */
FIXTURE_TEST(stages_are_compared_without_a_choice)
{
	static const int stage_of[NODES] = { 0, 0, 1, 1, 2, 2 };
	struct controller *w = *state;
	struct stage_question *q = ask(w), *same = ask(w);
	struct model_config other = w->run.training.model;
	struct stage_layers layers = { 3, { 5, 5, 2 } };
	struct stage_choice *c;
	struct error err = { "" };
	double equal_s;

	stage_question_compare(same, &w->run.training.model, stage_of);
	c = wait_for(same);
	equal_s = stage_choice_wanted_s(c);
	assert_true(equal_s > 0 && isfinite(equal_s));
	stage_choice_free(c);
	assert_int_equal(model_cut(&other, &layers, "cut", &err), 0);
	stage_question_compare(q, &other, stage_of);
	c = wait_for(q);
	assert_int_equal(stage_choice_result(c, &err), -ENOENT);
	assert_true(stage_choice_wanted_s(c) < equal_s);
	stage_choice_free(c);
}

/* Microbatches of the run skip 1 of its 3 stages. With 6 given stages, they still skip 1. With 2
 * given stages, they skip 1 and visit stage 0 alone. */
FIXTURE_TEST(given_stages_keep_the_number_of_skipped_stages)
{
	static const int stage_of[][NODES] = { { 0, 1, 2, 3, 4, 5 }, { 0, 0, 0, 1, 1, 1 } };
	static const uint32_t n_stages[] = { 6, 2 };

	for (int i = 0; i < 2; i++) {
		struct controller *w = *state;
		struct stage_question *q = ask(w);
		struct model_config other = w->run.training.model;
		const struct plan *plan;
		struct stage_choice *c;

		q->frame.skip = 1;
		q->frame.of_stages = 3;
		model_cut_equally(&other, n_stages[i]);
		stage_question_compare(q, &other, stage_of[i]);
		c = wait_for(q);
		plan = stage_choice_question(c)->wanted.plan;
		assert_non_null(plan);
		assert_int_equal(plan->path_length, (int)n_stages[i] - 1);
		stage_choice_free(c);
	}
}

FIXTURE_TEST(a_distant_node_is_left_out_with_the_reason)
{
	struct controller *w = *state;
	struct stage_choice *c;
	char text[STAGE_CHOICE_TEXT];
	bool found = false;

	for (int i = 0; i < NODES; i++)
		w->run.cluster->delay_s[i * NODES + SLOW] =
			w->run.cluster->delay_s[SLOW * NODES + i] = 100;
	c = choose_for(w);
	for (int i = 0, node; (node = stage_choice_left_out(c, i, text)) >= 0; i++)
		found = found || (node == SLOW && strstr(text, "an iteration takes "));
	assert_true(found);
	stage_choice_free(c);
}

/* Gives every member a machine of its own with this much memory. */
static void limit_memory(struct controller *w, uint64_t mib)
{
	for (int i = 0; i < NODES; i++) {
		struct msg_hello *hello = &w->members.list[i].hello;

		hello->memory_bytes = mib << 20;
		snprintf(hello->host, sizeof(hello->host), "m%d", i);
	}
}

FIXTURE_TEST(missing_memory_is_an_answer)
{
	struct controller *w = *state;
	struct stage_choice *c;
	struct error err = { "" };

	limit_memory(w, 18);
	c = choose_for(w);
	assert_int_equal(stage_choice_result(c, &err), PLAN_INFEASIBLE);
	assert_non_null(strstr(err.text, "are missing"));
	stage_choice_free(c);
}

FIXTURE_TEST(a_choice_that_is_not_wanted_any_more_ends)
{
	struct stage_choice *c;
	struct error err = { "" };

	assert_int_equal(stage_choice_start(ask(*state), 3600, 1, &c, &err), 0);
	stage_choice_free(c);
}

/* Without the cancellation, this evaluation would take days. */
FIXTURE_TEST(an_evaluation_can_be_cancelled)
{
	static const int stage_of[NODES] = { 0, 0, 1, 1, 2, 2 };
	static const atomic_bool cancel = true;
	struct controller *w = *state;
	struct stage_question *q = ask(w);

	stage_question_compare(q, &w->run.training.model, stage_of);
	assert_true(candidate_is_possible(&q->wanted, &q->frame));
	q->frame.cancel = &cancel;
	candidate_evaluate(&q->wanted, INT64_C(1) << 40, &q->frame);
	stage_question_free(q);
}

/* Makes the choice for a run that may change the size of its microbatches. Checks that an iteration
 * keeps its number of sequences, and that the text names the size. Returns the chosen size divided
 * by the configured size. */
static double resize(struct controller *w, const char *reason)
{
	struct stage_question *q = ask(w);
	struct stage_choice *c;
	const struct candidate *best;
	struct error err = { "" };
	char text[STAGE_CHOICE_TEXT], size[64];
	double ratio;

	assert_int_equal(q->frame.least_sequences, q->shape.batch);
	assert_int_equal(q->frame.most_sequences, q->shape.batch);
	stage_question_resize(q);
	c = wait_for(q);
	if (stage_choice_result(c, &err) != 0)
		fail_msg("%s", err.text);
	best = stage_choice_candidate(c, 0);
	for (int i = 1; stage_choice_candidate(c, i); i++)
		assert_true(stage_choice_candidate(c, i)->seconds >= best->seconds);
	ratio = (double)best->sequences / w->run.training.hyper.batch;
	assert_int_equal(stage_choice_question(c)->frame.batch,
			 MICROBATCHES * w->run.training.hyper.batch);
	assert_int_equal(stage_choice_resized(c, text), ratio != 1);
	if (ratio != 1) {
		snprintf(size, sizeof(size), "%g of %d sequences each", MICROBATCHES / ratio,
			 best->sequences);
		assert_non_null(strstr(text, size));
		if (!strstr(text, reason))
			fail_msg("%s", text);
	}
	stage_choice_free(c);
	return ratio;
}

/* A configured microbatch takes half of the bytes that a message may have. Microbatches may
 * therefore become at most twice as large. */
FIXTURE_TEST(an_activation_stays_within_the_limit_of_a_message)
{
	struct stage_question *q = ask(*state);

	q->shape.activation_bytes = (double)(MSG_TENSOR_MOST / 2) / q->shape.batch;
	stage_question_resize(q);
	assert_int_equal(q->frame.most_sequences, 2 * q->shape.batch);
	stage_question_free(q);
}

FIXTURE_TEST(near_nodes_keep_the_size_of_microbatches)
{
	struct controller *w = *state;

	for (int i = 0; i < NODES; i++)
		w->run.cluster->nodes[i].memory = MICROBATCHES;
	for (int i = 0; i < NODES * NODES; i++)
		w->run.cluster->delay_s[i] = bytes_s;
	assert_true(resize(w, "") == 1);
}

/* No node has memory for the whole model, and each holds one microbatch at a time. With larger
 * microbatches, fewer messages cross the slow links. */
FIXTURE_TEST(distant_nodes_get_larger_microbatches)
{
	struct controller *w = *state;

	for (int i = 0; i < NODES; i++)
		w->run.cluster->nodes[i].memory = 1;
	for (int i = 0; i < NODES * NODES; i++)
		w->run.cluster->delay_s[i] = 5;
	limit_memory(w, 40);
	assert_true(resize(w, "because an iteration takes ") > 1);
}

/* Gives every member just enough memory for microbatches of the smallest size. */
static void limit_memory_to_a_smaller_size(struct controller *w)
{
	uint64_t mib = 18;
	struct error ignored;
	bool fits = false;

	while (!fits) {
		struct stage_question *q;

		limit_memory(w, ++mib);
		q = ask(w);
		stage_question_resize(q);
		fits = holds_model(&q->frame, q->frame.least_sequences, CLUSTER_MOST_STAGES,
				   &ignored) == 0;
		stage_question_free(q);
	}
}

FIXTURE_TEST(nodes_with_little_memory_get_smaller_microbatches)
{
	limit_memory_to_a_smaller_size(*state);
	assert_true(resize(*state, "because no memory is free for 12 of ") < 1);
}

FIXTURE_TEST(an_iteration_stays_within_the_limit_of_microbatches)
{
	struct stage_question *q;

	limit_memory_to_a_smaller_size(*state);
	q = ask(*state);
	q->frame.batch = MSG_MICROBATCHES * q->shape.batch;
	stage_question_resize(q);
	assert_int_equal(q->frame.least_sequences, q->shape.batch);
	stage_question_free(q);
}
