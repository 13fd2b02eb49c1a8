/* Repeats the agents' training with the model's code alone: all sums, all steps, and the gradients
 * that an agent counted. Tests compare the agents' hashes and losses with this
 * reference. */
#include "agent/tests/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "model/codec/codec.h"
#include "model/squares.h"

/* The activations and gradients of one microbatch on its route. */
struct pass {
	float *in[CLUSTER_NODES + 1];   /* input of each hop; in[n_hops]: input of the loss */
	float *grad[CLUSTER_NODES + 1]; /* gradient that the B of each hop receives */
	int32_t tokens[CLUSTER_BATCH * CLUSTER_SEQUENCE];
	int32_t targets[CLUSTER_BATCH * CLUSTER_SEQUENCE];
	float loss;
};

static float *activation(const struct cluster *c)
{
	float *f = calloc(stage_activation(c->twins[0]), sizeof(float));

	assert_non_null(f);
	return f;
}

/* Rounds an output as the transfer of this output to another stage does. An output for the same
 * stage is not rounded. */
static void go_to(const struct cluster *c, uint8_t from, uint8_t to, bool forward, float *output)
{
	struct codec codec = forward ? codec_of_activation(c->options.wire, c->config.dim)
				     : codec_of_gradient(c->options.wire);

	if (from != to)
		assert_int_equal(codec_round(&codec, output, stage_activation(c->twins[0])), 0);
}

static struct stage *twin_of(const struct cluster *c, uint8_t stage)
{
	for (uint32_t i = 0; i < c->n_nodes; i++)
		if (c->nodes[i].stage == stage && c->nodes[i].ready)
			return c->twins[i];
	fail_msg("no node of stage %u is left", stage);
	return NULL;
}

/* Computes the inputs, gradients and loss of microbatch m, without adding gradients. */
static void walk(const struct cluster *c, uint32_t m, struct pass *w)
{
	const struct route *r = &c->now.routes[m];
	uint32_t n = r->n_hops;

	corpus_batch(c->corpus, r->shard, c->n_shards,
		     (c->now.iteration - 1) * c->now.per_shard + r->wave, CLUSTER_BATCH, w->tokens,
		     w->targets);
	for (uint32_t i = 0; i < n; i++) {
		w->in[i + 1] = activation(c);
		assert_int_equal(stage_forward(twin_of(c, r->stages[i]), m,
					       i == 0 ? w->tokens : NULL, i == 0 ? NULL : w->in[i],
					       w->in[i + 1], true), 0);
		go_to(c, r->stages[i], i + 1 < n ? r->stages[i + 1] : 0, true, w->in[i + 1]);
	}
	w->grad[n - 1] = activation(c);
	assert_int_equal(stage_loss(twin_of(c, 0), m, w->in[n], w->targets, &w->loss,
				    w->grad[n - 1], false), 0);
	go_to(c, 0, r->stages[n - 1], false, w->grad[n - 1]);
	for (uint32_t i = n - 1; i > 0; i--) {
		w->grad[i - 1] = activation(c);
		assert_int_equal(stage_backward(twin_of(c, r->stages[i]), m, w->grad[i],
						w->grad[i - 1], false), 0);
		go_to(c, r->stages[i], r->stages[i - 1], false, w->grad[i - 1]);
	}
}

static void count_one(struct cluster *c, const struct msg_task_event *e, const struct pass *w)
{
	const struct route *r = &c->now.routes[e->microbatch];
	struct stage *s = c->twins[e->node];
	uint8_t stage = c->nodes[e->node].stage;
	float *scratch = activation(c), loss;
	uint32_t hop = 0;

	while (hop < r->n_hops && r->stages[hop] != stage)
		hop++;
	assert_true(hop < r->n_hops);
	if (e->kind == TASK_LOSS) {
		assert_int_equal(stage_loss(s, e->microbatch, w->in[r->n_hops], w->targets, &loss,
					    scratch, true), 0);
	} else {
		assert_int_equal(stage_forward(s, e->microbatch, hop ? NULL : w->tokens,
					       hop ? w->in[hop] : NULL, scratch, true), 0);
		assert_int_equal(stage_backward(s, e->microbatch, w->grad[hop],
						hop ? scratch : NULL, true), 0);
	}
	free(scratch);
}

/* Checks that each microbatch is counted once for every stage of its route, and once for its
 * loss. */
static void check_exactly_once(const struct cluster *c)
{
	for (uint32_t m = 0; m < c->now.n_batches; m++) {
		uint32_t losses = 0, backs[CLUSTER_NODES] = { 0 };

		for (uint32_t i = 0; i < c->now.n_events; i++) {
			const struct msg_task_event *e = &c->now.events[i];

			if (!e->counted || e->microbatch != m || !c->nodes[e->node].ready)
				continue;
			losses += e->kind == TASK_LOSS;
			backs[c->nodes[e->node].stage] += e->kind == TASK_BACKWARD;
		}
		assert_int_equal(losses, 1);
		for (uint8_t s = 0; s < c->n_stages; s++) {
			uint32_t want = 0;

			for (uint32_t i = 0; i < c->now.routes[m].n_hops; i++)
				want += c->now.routes[m].stages[i] == s;
			assert_int_equal(backs[s], want);
		}
	}
}

static void step_stage(struct cluster *c, uint8_t stage)
{
	size_t n = stage_parameters(twin_of(c, stage));
	float *sum = calloc(n, sizeof(float)), *part = calloc(n, sizeof(float));
	struct sum_codec *codecs;
	uint32_t replicas = 0;
	bool first = true;

	assert_true(sum && part);
	assert_int_equal(sum_codecs_new(&codecs, &c->config, c->options.sum_wire, NULL), 0);
	for (uint32_t i = 0; i < c->n_nodes; i++)
		replicas += c->nodes[i].stage == stage && c->nodes[i].ready;
	for (uint32_t i = 0; i < c->n_nodes; i++) {
		if (c->nodes[i].stage != stage || !c->nodes[i].ready)
			continue;
		memcpy(part, stage_gradient(c->twins[i]), n * sizeof(float));
		assert_int_equal(sum_codec_round(&codecs[stage], part, n, replicas), 0);
		if (first)
			memcpy(sum, part, n * sizeof(float));
		else
			stage_add(sum, part, n);
		first = false;
	}
	assert_int_equal(sum_codec_round(&codecs[stage], sum, n, replicas), 0);
	for (uint32_t i = 0; i < c->n_nodes; i++) {
		if (c->nodes[i].stage != stage)
			continue;
		if (c->nodes[i].ready)
			assert_true(c->nodes[i].reduced_said.sum_squares == squares_sum(sum, n));
		/* The twin of a dead node makes the step too, because a node that joins later
		 * must have these weights. */
		assert_int_equal(stage_step(c->twins[i], sum, cluster_scale(c), &cluster_adamw,
					    c->now.iteration),
				 0);
		stage_zero_gradient(c->twins[i]);
	}
	sum_codecs_free(codecs);
	free(part);
	free(sum);
}

void cluster_check_twins(struct cluster *c)
{
	struct pass *passes = calloc(c->now.n_batches, sizeof(passes[0]));

	assert_non_null(passes);
	check_exactly_once(c);
	for (uint32_t m = 0; m < c->now.n_batches; m++) {
		walk(c, m, &passes[m]);
		assert_true(passes[m].loss == c->now.loss[m]);
	}
	for (uint32_t i = 0; i < c->now.n_events; i++)
		if (c->now.events[i].counted && c->nodes[c->now.events[i].node].ready)
			count_one(c, &c->now.events[i], &passes[c->now.events[i].microbatch]);
	for (uint8_t s = 0; s < c->n_stages; s++)
		step_stage(c, s);
	for (uint32_t m = 0; m < c->now.n_batches; m++)
		for (int i = 0; i <= CLUSTER_NODES; i++) {
			free(passes[m].in[i]);
			free(passes[m].grad[i]);
		}
	free(passes);
}

float cluster_twin_evaluation(struct cluster *c, uint32_t k)
{
	int32_t tokens[CLUSTER_BATCH * CLUSTER_SEQUENCE], targets[CLUSTER_BATCH * CLUSTER_SEQUENCE];
	float *in = activation(c), *out = activation(c), *t, loss;

	corpus_validation_batch(c->corpus, k, CLUSTER_BATCH, tokens, targets);
	for (uint8_t s = 0; s < c->n_stages; s++) {
		assert_int_equal(stage_forward(twin_of(c, s), 0, s ? NULL : tokens, s ? in : NULL,
					       out, false), 0);
		go_to(c, s, s + 1u < c->n_stages ? (uint8_t)(s + 1) : 0, true, out);
		t = in;
		in = out;
		out = t;
	}
	assert_int_equal(stage_loss(twin_of(c, 0), 0, in, targets, &loss, NULL, false), 0);
	free(in);
	free(out);
	return loss;
}
