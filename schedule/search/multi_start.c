/* Several starts.
 *
 * A start is a solution and its annealing. All starts are annealed in turn for the same number of
 * steps. Then the worse half of the starts is dropped, and so on until one is left. The caller's
 * own annealing, which can be one of the starts, adopts the best one.
 *
 * Tied microbatches share a path. Ties are loosened in steps: first all microbatches of a data node
 * are tied, then groups of two, then none. */
#include "schedule/search/multi_start.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "schedule/start/construct.h"
#include "schedule/start/place.h"
#include "schedule/start/sketch.h"

#define STARTS 16
#define STEPS 500 /* number of steps of each start at first */
/* If nodes may change their stage, microbatches stay tied in rounds of at most this many steps. */
#define TIED_UP_TO 1000
#define TIED_STARTS 4       /* number of starts if the stages are given */
/* Steps of each start after each loosening of the ties, if the stages are given. */
#define LESS_TIED_STEPS 300

struct multi_start {
	struct progress *g;
	struct rng rng;
	/* A random placement is good enough if its sums of gradients take at most this long. */
	double enough_s;
	/* The starts that are left, and the annealings that multi_start owns. */
	struct anneal *in[STARTS], other[STARTS - 1];
	int n, n_others;
	double noted_s;  /* the best objective that was reported to g */
	bool ties;       /* microbatches are tied at first */
	struct bound *b; /* the bound to improve; NULL: none */
	int *ring;       /* array of n_mb: ties of the start that is being annealed */
};

static bool is_over(const struct multi_start *t)
{
	return t->noted_s <= t->g->lower_bound_s * BOUND_MET || progress_over(t->g);
}

/* Returns the number of microbatches of the data node that sends the fewest. */
static int least_siblings(const struct problem *p)
{
	int least = p->n_mb;

	for (int i = 0, n = 0; i < p->n_mb; i++) {
		n = i > 0 && p->mb_slot[i] == p->mb_slot[i - 1] ? n + 1 : 1;
		if ((i + 1 == p->n_mb || p->mb_slot[i + 1] != p->mb_slot[i]) && n < least)
			least = n;
	}
	return least;
}

/* Returns true if microbatches may be tied. Moves of lanes cannot keep ties, and microbatches with
 * paths of unequal length are never tied. */
static bool may_tie(const struct anneal *a)
{
	return !a->plans_lanes && a->p->n_whole == 0 && least_siblings(a->p) >= GROUPED_FROM;
}

/* Chooses the stages of the nodes for a start. If sums are part of the objective, the first start
 * gets the placement with the shortest sums that can be found. */
static void place_nodes(struct multi_start *t, struct solution *s, bool first)
{
	const struct problem *p = t->g->p;

	if (!first || !p->weigh_sync) {
		place_at_random(s, p, t->enough_s, &t->rng);
		return;
	}
	place_by_sync(s, p, t->g);
	t->enough_s = solution_sync_s(s, p, NULL);
}

/* Begins to anneal s, unless s comes to a standstill. */
static void enter_start(struct multi_start *t, const struct solution *s, int stream)
{
	const struct problem *p = t->g->p;
	struct anneal *to = &t->other[t->n_others];

	if (anneal_init(to, p, s, p->q->seed, (uint64_t)stream) != 0)
		return;
	t->g->evaluations++;
	t->n_others++;
	t->in[t->n++] = to;
}

/* Adds a start with another placement of nodes, unless no paths are found for it or its sums exceed
 * the limit. */
static void add_start(struct multi_start *t, const struct solution *given, bool first)
{
	const struct problem *p = t->g->p;
	struct solution s;

	solution_init(&s, p);
	solution_copy(&s, given, p);
	place_nodes(t, &s, first);
	if (solution_sync_s(&s, p, NULL) <= p->sync_limit_s &&
	    ((t->ties && construct_tied(&s, p, 2, NULL) == 0) ||
	     construct_paths(&s, p, 0, false, &t->rng, NULL) == 0))
		enter_start(t, &s, 200 + t->n);
	solution_fini(&s);
}

/* Anneals one start with microbatches tied in groups of `group`. */
static int anneal_start(struct multi_start *t, struct anneal *a, int group, int64_t steps,
			struct error *err)
{
	int rc = 0;

	construct_rings(t->ring, &a->best, t->g->p, group);
	a->moves.tied = group > 1 ? t->ring : NULL;
	anneal_begin_round(a, steps);
	for (int64_t i = 0; rc == 0 && i < steps && !is_over(t); i++) {
		if (t->b)
			t->g->lower_bound_s = bound_beside(t->b, 1);
		t->g->evaluations++;
		if (anneal_step(a) && a->best_s < t->noted_s) {
			t->noted_s = a->best_s;
			rc = progress_note(t->g, &a->best, a->best_iteration_s, err);
		} else {
			rc = progress_announce(t->g, err);
		}
	}
	a->moves.tied = NULL;
	return rc;
}

static void sort_starts(struct multi_start *t)
{
	for (int i = 1; i < t->n; i++) {
		struct anneal *a = t->in[i];
		int j = i;

		for (; j > 0 && t->in[j - 1]->best_s > a->best_s; j--)
			t->in[j] = t->in[j - 1];
		t->in[j] = a;
	}
}

static void begin_starts(struct multi_start *t, const struct anneal *a)
{
	t->noted_s = a->best_s;
	t->ties = may_tie(a);
	rng_init_stream(&t->rng, t->g->p->q->seed, 5);
	t->ring = alloc_array((size_t)t->g->p->n_mb, sizeof(*t->ring));
}

/* Lets the caller's annealing adopt the best start. */
static void end_starts(struct multi_start *t, struct anneal *a, int64_t round_size)
{
	if (t->n > 0 && t->in[0]->best_s < a->best_s)
		anneal_adopt(a, t->in[0]);
	a->round_size = round_size;
	a->round_left = 0;
	for (int i = 0; i < t->n_others; i++)
		anneal_fini(&t->other[i]);
	free(t->ring);
}

int multi_start_run(struct progress *g, struct anneal *a, struct error *err)
{
	struct multi_start t = { .g = g, .in = { a }, .n = 1, .enough_s = g->p->sync_limit_s };
	int64_t round_size = a->round_size;
	int rc = 0;

	begin_starts(&t, a);
	for (int i = 1; i < STARTS && !progress_over(g); i++)
		add_start(&t, &a->best, i == 1);
	for (int64_t steps = STEPS; rc == 0 && t.n > 1 && !progress_over(g); steps *= 2) {
		int group = t.ties && steps <= TIED_UP_TO ? 2 : 1;

		for (int i = 0; i < t.n && rc == 0; i++)
			rc = anneal_start(&t, t.in[i], group, steps, err);
		sort_starts(&t);
		t.n = (t.n + 1) / 2;
	}
	sort_starts(&t);
	end_starts(&t, a, round_size);
	return rc;
}

/* number of a sketch's proposals that take as long as one evaluation */
#define SKETCH_STEPS_EACH 100

int multi_start_sketched(struct progress *g, struct anneal *a, int64_t sketch_steps, int64_t steps,
			 struct error *err)
{
	struct multi_start t = { .g = g, .in = { a }, .n = 1 };
	int64_t round_size = a->round_size, most = g->p->q->evaluations;
	struct solution s;
	int rc = 0;

	begin_starts(&t, a);
	if (most > 0 && most < sketch_steps / SKETCH_STEPS_EACH)
		sketch_steps = most * SKETCH_STEPS_EACH;
	solution_init(&s, g->p);
	solution_copy(&s, &a->best, g->p);
	sketch_paths(&s, g, sketch_steps);
	enter_start(&t, &s, 1);
	solution_fini(&s);
	for (int i = 0; i < t.n && rc == 0 && steps > 0; i++)
		rc = anneal_start(&t, t.in[i], 1, steps, err);
	sort_starts(&t);
	if (rc == 0 && t.in[0]->best_s < t.noted_s)
		rc = progress_note(g, &t.in[0]->best, t.in[0]->best_iteration_s, err);
	end_starts(&t, a, round_size);
	return rc;
}

/* Adds a start in which groups of *group microbatches are tied. If no such paths exist, reduces
 * *group until there are some. */
static void add_tied(struct multi_start *t, const struct solution *given, int *group)
{
	const struct problem *p = t->g->p;
	struct solution s;
	int rc = PLAN_INFEASIBLE;

	solution_init(&s, p);
	solution_copy(&s, given, p);
	for (; rc == PLAN_INFEASIBLE && *group > 1; *group -= rc != 0)
		rc = construct_tied(&s, p, *group, t->n_others > 0 ? &t->rng : NULL);
	if (rc == 0)
		enter_start(t, &s, 300 + t->n_others);
	solution_fini(&s);
}

/* Adds the starts. Half of them tie groups of *most microbatches, the other half tie groups of two.
 * The caller sets *most to the number of microbatches of a data node; add_tied can reduce it. */
static void add_all_tied(struct multi_start *t, const struct solution *given, int *most)
{
	int two = 2;

	for (int i = 0; i < TIED_STARTS && !is_over(t); i++)
		add_tied(t, given, i < TIED_STARTS / 2 ? most : &two);
}

/* Anneals each start for `steps` steps with microbatches tied in groups of `group`, and keeps the
 * best `keep` starts. */
static int anneal_tied(struct multi_start *t, int group, int64_t steps, int keep,
		       struct error *err)
{
	int rc = 0;

	for (int i = 0; i < t->n && rc == 0; i++)
		rc = anneal_start(t, t->in[i], group, steps, err);
	sort_starts(t);
	t->n = t->n < keep ? t->n : keep;
	return rc;
}

int multi_start_tied(struct progress *g, struct anneal *a, struct bound *b, struct error *err)
{
	struct multi_start t = { .g = g, .b = b };
	int64_t round_size = a->round_size;
	int most = least_siblings(g->p), rc;

	if (!may_tie(a))
		return 0;
	begin_starts(&t, a);
	add_all_tied(&t, &a->best, &most);
	rc = anneal_tied(&t, most, STEPS, TIED_STARTS / 2, err);
	if (rc == 0)
		rc = anneal_tied(&t, 2, LESS_TIED_STEPS, TIED_STARTS / 2, err);
	/* If all nodes are equal, the repaired plan would soon be the best start but hardly improve
	 * further, so it does not compete. */
	if (g->p->q->from && !problem_all_alike(g->p->c))
		t.in[t.n++] = a;
	if (rc == 0)
		rc = anneal_tied(&t, 1, LESS_TIED_STEPS, 1, err);
	end_starts(&t, a, round_size);
	return rc;
}
