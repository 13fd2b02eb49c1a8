/* stage_choice.c - the thread that chooses stages, and the texts that describe its answer
 * (stage_choice.h). */
#include "controller/planning/stage_choice.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { PRESENT = 5000 }; /* number of plans to evaluate for the present and the wanted stages */
/* Most work that a choice may do with up to 20 nodes, and the work allowed in addition for each
 * further node. The unit is a simulated task */
#define WORK 20000000
#define WORK_OF_NODE 500000
/* Larger microbatches are chosen only if an iteration with the configured size takes more than this
 * many times as long. */
#define WORTH_RESIZING 1.05
#define GIGA 1e9
#define MEGA 1e6

struct stage_choice {
	pthread_t thread;
	struct stage_question *question; /* the question to answer; owned */
	struct choose_request request;
	struct choice choice; /* the answer; valid if result is 0 */
	struct error err;
	int result;
	int ranks[CHOICE_MOST], n; /* the candidates that a run can use, the best first */
	/* Shortest iteration found with microbatches of the configured size, in seconds */
	double configured_s;
	int64_t began_us, took_us;
	atomic_bool cancel, is_done;
};

/* ---- the thread ---- */

/* The clock that limits a choice. After a cancellation it returns a time so late that the choice
 * has used up its budget and ends. */
static int64_t read_clock(void *arg)
{
	struct stage_choice *c = arg;

	return atomic_load(&c->cancel) ? INT64_MAX / 2 : clock_monotonic_us();
}

static int count_nodes(const struct candidate *x, int n_nodes)
{
	int n = 0;

	for (int i = 0; i < n_nodes; i++)
		n += x->stage_of[i] >= 0;
	return n;
}

static void list_usable(struct stage_choice *c)
{
	int n_nodes = c->question->fleet->n_nodes;

	for (int i = 0; i < c->choice.n; i++) {
		const struct candidate *x = &c->choice.list[i];

		if (x->n_stages > 1 || count_nodes(x, n_nodes) == n_nodes)
			c->ranks[c->n++] = i;
	}
	if (c->n > 0 && c->ranks[0] > 0)
		choose_explain(&c->request, &c->choice, c->ranks[0]);
	if (c->n == 0) {
		choice_fini(&c->choice);
		c->result = error_set(&c->err, -ENOENT, "no candidate has more than one stage");
	}
}

/* Plans the given stages with the run's number of skipped stages, because a run keeps this number
 * when its stages change. A choice, in contrast, keeps the share of stages that are skipped. If
 * all stages but stage 0 are skipped, microbatches visit stage 0 alone. */
static void evaluate(struct stage_choice *c, struct candidate *x)
{
	struct candidate_frame f = c->question->frame;

	if (f.skip > 0)
		f.of_stages = x->n_stages;
	if (!atomic_load(&c->cancel) && candidate_fits(x, &f))
		candidate_evaluate(x, PRESENT, &f);
}

/* Makes the choice with microbatches of these sizes. */
static void choose_with(struct stage_choice *c, int least, int most)
{
	c->request.frame.least_sequences = least;
	c->request.frame.most_sequences = most;
	c->n = 0;
	c->result = choose(&c->request, &c->choice, &c->err);
	if (c->result == 0)
		list_usable(c);
}

static double best_s(const struct stage_choice *c)
{
	return c->result == 0 ? c->choice.list[c->ranks[0]].seconds : INFINITY;
}

/* Replaces the choice by a choice with larger microbatches, if the question allows larger
 * microbatches and they are clearly faster. Both choices together take at most the budget. */
static void try_larger(struct stage_choice *c)
{
	const struct candidate_frame *f = &c->question->frame;
	struct stage_choice larger = { .question = c->question, .request = c->request };
	double used_s = (double)(clock_monotonic_us() - c->began_us) * 1e-6;

	larger.request.budget_s = c->request.budget_s - used_s;
	if (f->most_sequences <= f->shape->batch || atomic_load(&c->cancel) ||
	    larger.request.budget_s <= 0)
		return;
	choose_with(&larger, 2 * f->shape->batch, f->most_sequences);
	c->configured_s = best_s(c);
	if (best_s(c) > WORTH_RESIZING * best_s(&larger)) {
		choice_fini(&c->choice);
		c->choice = larger.choice;
		c->n = larger.n;
		memcpy(c->ranks, larger.ranks, sizeof(c->ranks));
	} else if (larger.result == 0) {
		choice_fini(&larger.choice);
	}
}

static void choose_all(struct stage_choice *c)
{
	const struct candidate_frame *f = &c->question->frame;

	choose_with(c, f->least_sequences, f->least_sequences);
	if (c->result == 0)
		try_larger(c);
}

static void *run_choice(void *arg)
{
	struct stage_choice *c = arg;
	struct stage_question *q = c->question;

	c->result = -ENOENT;
	if (!q->has_wanted)
		choose_all(c);
	if (q->has_present)
		evaluate(c, &q->present);
	if (q->has_wanted)
		evaluate(c, &q->wanted);
	c->took_us = clock_monotonic_us() - c->began_us;
	atomic_store(&c->is_done, true);
	return NULL;
}

int stage_choice_start(struct stage_question *q, double budget_s, int threads,
		       struct stage_choice **out, struct error *err)
{
	struct stage_choice *c = alloc_new(sizeof(*c));
	int extra = q->fleet->n_nodes > 20 ? q->fleet->n_nodes - 20 : 0, rc;
	sigset_t all, was;

	c->question = q;
	q->frame.cancel = &c->cancel;
	c->request = (struct choose_request){
		.frame = q->frame,
		.aim = { .most_per_hour = INFINITY },
		.n_stages = q->n_stages,
		.work = WORK + WORK_OF_NODE * (int64_t)extra,
		.threads = threads,
		.budget_s = budget_s,
		.clock_us = read_clock,
		.clock_arg = c,
	};
	c->began_us = clock_monotonic_us();
	sigfillset(&all); /* only the loop handles signals */
	pthread_sigmask(SIG_SETMASK, &all, &was);
	rc = -pthread_create(&c->thread, NULL, run_choice, c);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	if (rc != 0) {
		stage_question_free(q);
		free(c);
		return error_set(err, rc, "no thread to choose stages: %s", strerror(-rc));
	}
	*out = c;
	return 0;
}

void stage_choice_free(struct stage_choice *c)
{
	if (!c)
		return;
	atomic_store(&c->cancel, true);
	pthread_join(c->thread, NULL);
	if (c->result == 0)
		choice_fini(&c->choice);
	stage_question_free(c->question);
	free(c);
}

bool stage_choice_is_done(const struct stage_choice *c)
{
	return atomic_load(&c->is_done);
}

/* ---- the answer ---- */

int stage_choice_result(const struct stage_choice *c, struct error *err)
{
	if (c->result != 0)
		*err = c->err;
	return c->result;
}

const struct stage_question *stage_choice_question(const struct stage_choice *c)
{
	return c->question;
}

const struct candidate *stage_choice_candidate(const struct stage_choice *c, int rank)
{
	return rank < c->n ? &c->choice.list[c->ranks[rank]] : NULL;
}

double stage_choice_present_s(const struct stage_choice *c)
{
	return c->question->has_present ? c->question->present.seconds : INFINITY;
}

double stage_choice_wanted_s(const struct stage_choice *c)
{
	return c->question->has_wanted ? c->question->wanted.seconds : INFINITY;
}

double stage_choice_elapsed_s(const struct stage_choice *c)
{
	return (double)c->took_us * 1e-6;
}

/* ---- in words ---- */

/* Adds the nodes of a stage, as in " n00 n03", or only their number if there are many. */
static size_t write_nodes(const struct stage_question *q, const struct candidate *x, int stage,
			  char *out, size_t room)
{
	int n = candidate_size(x, stage, &q->frame);
	size_t used = (size_t)snprintf(out, room, "%s S%d", stage ? "," : "", stage);

	if (n > 4)
		return used + (size_t)snprintf(out + used, room - used, " %d nodes", n);
	for (int i = 0; i < q->fleet->n_nodes && used < room; i++)
		if (x->stage_of[i] == stage)
			used += (size_t)snprintf(out + used, room - used, " n%02d",
						 q->node_of[i]);
	return used;
}

void stage_choice_describe(const struct stage_choice *c, int rank, char out[STAGE_CHOICE_TEXT])
{
	const struct candidate *x = stage_choice_candidate(c, rank);
	size_t used = (size_t)snprintf(out, STAGE_CHOICE_TEXT, "%d stage%s of ",
				       x->n_stages, x->n_stages == 1 ? "" : "s");

	for (int s = 0; s < x->n_stages && used < STAGE_CHOICE_TEXT; s++)
		used += (size_t)snprintf(out + used, STAGE_CHOICE_TEXT - used, "%s%d",
					 s ? "," : "", x->layers[s]);
	if (used < STAGE_CHOICE_TEXT)
		used += (size_t)snprintf(out + used, STAGE_CHOICE_TEXT - used,
					 " layers, %.3g s an iteration:", x->seconds);
	for (int s = 0; s < x->n_stages && used < STAGE_CHOICE_TEXT; s++)
		used += write_nodes(c->question, x, s, out + used, STAGE_CHOICE_TEXT - used);
}

bool stage_choice_resized(const struct stage_choice *c, char out[STAGE_CHOICE_TEXT])
{
	const struct stage_question *q = c->question;
	const struct candidate *best = stage_choice_candidate(c, 0);
	size_t used;

	if (best->sequences == q->shape.batch)
		return false;
	used = (size_t)snprintf(out, STAGE_CHOICE_TEXT, "microbatches: %d of %d sequences each, ",
				q->frame.batch / best->sequences, best->sequences);
	if (best->sequences < q->shape.batch)
		snprintf(out + used, STAGE_CHOICE_TEXT - used,
			 "because no memory is free for %d of %d",
			 q->frame.batch / q->shape.batch, q->shape.batch);
	else if (isfinite(c->configured_s))
		snprintf(out + used, STAGE_CHOICE_TEXT - used,
			 "because an iteration takes %.3g s with %d of %d", c->configured_s,
			 q->frame.batch / q->shape.batch, q->shape.batch);
	else
		snprintf(out + used, STAGE_CHOICE_TEXT - used,
			 "because no plan was found with %d of %d", q->frame.batch / q->shape.batch,
			 q->shape.batch);
	return true;
}

/* Returns the reason why the choice left the node out. The choice gives one reason for all nodes of
 * a kind. The reason may therefore have been found for another node of similar speed. NULL: there
 * is no reason. */
static const struct choice_left_out *reason_for(const struct stage_choice *c, int node)
{
	const struct fleet *f = c->question->fleet;
	const struct choice_left_out *best = NULL;
	double least = INFINITY;

	for (int i = 0; i < c->choice.n_left_out; i++) {
		const struct choice_left_out *l = &c->choice.left_out[i];
		double far = l->node == node
				     ? -1
				     : fabs(log(fleet_machines_of(f, l->node)->flop_per_s /
						fleet_machines_of(f, node)->flop_per_s));

		if (far < least) {
			least = far;
			best = l;
		}
	}
	return best;
}

static void write_reason(const struct choice_left_out *l, char *out, size_t room)
{
	if (!l)
		snprintf(out, room, "no reason is known");
	else if (l->missing_bytes > GIGA / 10)
		snprintf(out, room, "%.1f GB are missing for a stage of one layer",
			 l->missing_bytes / GIGA);
	else if (l->missing_bytes > 0)
		snprintf(out, room, "%.2f MB are missing for a stage of one layer",
			 l->missing_bytes / MEGA);
	else if (isinf(l->cost_with))
		snprintf(out, room, "no stage has room for it: memory, or the data nodes");
	else
		snprintf(out, room, "with it in S%d, an iteration takes %+.1f%%", l->stage,
			 100 * (l->cost_with - 1));
}

int stage_choice_left_out(const struct stage_choice *c, int i, char out[STAGE_CHOICE_TEXT])
{
	const struct candidate *best = stage_choice_candidate(c, 0);

	for (int k = 0; k < c->question->fleet->n_nodes; k++) {
		if (best->stage_of[k] >= 0 || i-- > 0)
			continue;
		write_reason(reason_for(c, k), out, STAGE_CHOICE_TEXT);
		return c->question->node_of[k];
	}
	return -1;
}
