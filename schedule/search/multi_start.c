#include "schedule/search/multi_start.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rng.h"
#include "schedule/start/construct.h"
#include "schedule/start/place.h"
#include "schedule/start/sketch.h"

/* Starts are kept in one list, annealed in turn for the same number of steps, and the worse half is
 * dropped, until one is left; the caller's own annealing, which may be among them, takes over what
 * won. Where starts are grouped (tied), each stage of that loosens the ties: all of a data node, two
 * and two, none. */

#define STARTS 16
#define STEPS 500 /* of each at first */
#define TIED_UP_TO 1000 /* steps of each, where nodes may be placed */
#define TIED_STARTS 4   /* where stages are given */
#define LESS_TIED_STEPS 300 /* of each that goes on there */

struct multi_start {
	struct progress *g;
	struct rng rng;
	double enough_s; /* for the sums of a random placement */
	struct anneal *in[STARTS], other[STARTS - 1];
	int n, n_others;
	double told_s; /* the best objective that g knows of */
	bool ties;       /* microbatches at first */
	struct bound *b; /* NULL: not asked for */
	int *ring;       /* (n_mb) of those tied in the one that is annealed */
};

static bool is_over(const struct multi_start *t)
{
	return t->told_s <= t->g->lower_bound_s * BOUND_MET || progress_over(t->g);
}

/* Microbatches of the data node that sends the fewest. */
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

/* Moves of lanes are not made for ties. */
static bool may_tie(const struct anneal *a)
{
	return !a->plans_lanes && least_siblings(a->p) >= GROUPED_FROM;
}

/* Where sums count, the first has the shortest that can be found. */
static int place_nodes(struct multi_start *t, struct solution *s, bool first)
{
	const struct problem *p = t->g->p;
	int rc;

	if (!first || !p->weigh_sync)
		return place_at_random(s, p, t->enough_s, &t->rng);
	rc = place_by_sync(s, p, t->g);
	t->enough_s = solution_sync_s(s, p, NULL);
	return rc;
}

/* The start that was made (rc 0; its memory goes) is annealed from here on; one that could not be made is left
 * out. -ENOMEM. */
static int let_in(struct multi_start *t, struct solution *s, int rc, int stream)
{
	const struct problem *p = t->g->p;
	struct anneal *to = &t->other[t->n_others];

	if (rc == 0)
		rc = anneal_init(to, p, s, p->q->seed, (uint64_t)stream);
	solution_fini(s);
	if (rc != 0)
		return rc == -ENOMEM ? rc : 0;
	t->g->evaluations++;
	t->n_others++;
	t->in[t->n++] = to;
	return 0;
}

/* One more, unless there are no paths for it or its sums take too long. -ENOMEM. */
static int add_start(struct multi_start *t, const struct solution *given, bool first)
{
	const struct problem *p = t->g->p;
	struct solution s;
	int rc = solution_init(&s, p);

	if (rc != 0)
		return rc;
	solution_copy(&s, given, p);
	rc = place_nodes(t, &s, first);
	if (rc == 0 && solution_sync_s(&s, p, NULL) > p->sync_limit_s)
		rc = PLAN_NOT_FOUND;
	if (rc == 0) {
		rc = PLAN_INFEASIBLE;
		if (t->ties)
			rc = construct_tied(&s, p, 2, NULL);
		if (rc == PLAN_INFEASIBLE)
			rc = construct_paths(&s, p, 0, false, &t->rng, NULL);
	}
	return let_in(t, &s, rc, 200 + t->n);
}

/* With ties in groups of so many. */
static int anneal_start(struct multi_start *t, struct anneal *a, int group, int64_t steps, struct error *err)
{
	int rc = 0;

	construct_rings(t->ring, &a->best, t->g->p, group);
	a->moves.tied = group > 1 ? t->ring : NULL;
	anneal_begin_round(a, steps);
	for (int64_t i = 0; rc == 0 && i < steps && !is_over(t); i++) {
		if (t->b)
			t->g->lower_bound_s = bound_beside(t->b, 1);
		t->g->evaluations++;
		if (anneal_step(a) && a->best_s < t->told_s) {
			t->told_s = a->best_s;
			rc = progress_note(t->g, &a->best, a->best_iteration_s, err);
		} else {
			rc = progress_tell(t->g, err);
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

static int begin_starts(struct multi_start *t, const struct anneal *a, struct error *err)
{
	t->told_s = a->best_s;
	t->ties = may_tie(a);
	rng_init_stream(&t->rng, t->g->p->q->seed, 5);
	t->ring = malloc((size_t)t->g->p->n_mb * sizeof(*t->ring));
	return t->ring ? 0 : error_set(err, -ENOMEM, "out of memory");
}

/* What is best goes on as a. */
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
	int rc = begin_starts(&t, a, err);

	if (rc != 0)
		return rc;
	for (int i = 1; i < STARTS && rc == 0 && !progress_over(g); i++)
		rc = add_start(&t, &a->best, i == 1);
	if (rc != 0)
		rc = error_set(err, rc, "out of memory");
	for (int64_t steps = STEPS; rc == 0 && t.n > 1 && !progress_over(g); steps *= 2) {
		for (int i = 0; i < t.n && rc == 0; i++)
			rc = anneal_start(&t, t.in[i], t.ties && steps <= TIED_UP_TO ? 2 : 1, steps, err);
		sort_starts(&t);
		t.n = (t.n + 1) / 2;
	}
	sort_starts(&t);
	end_starts(&t, a, round_size);
	return rc;
}

#define SKETCH_STEPS_EACH 100 /* as many as take one evaluation's time */

int multi_start_sketched(struct progress *g, struct anneal *a, int64_t sketch_steps, int64_t steps,
		    struct error *err)
{
	struct multi_start t = { .g = g, .in = { a }, .n = 1 };
	int64_t round_size = a->round_size, most = g->p->q->evaluations;
	struct solution s;
	int rc = begin_starts(&t, a, err);

	if (rc != 0)
		return rc;
	if (most > 0 && most < sketch_steps / SKETCH_STEPS_EACH)
		sketch_steps = most * SKETCH_STEPS_EACH;
	rc = solution_init(&s, g->p);
	if (rc == 0) {
		solution_copy(&s, &a->best, g->p);
		rc = let_in(&t, &s, sketch_paths(&s, g, sketch_steps), 1);
	}
	if (rc != 0)
		rc = error_set(err, rc, "out of memory");
	for (int i = 0; i < t.n && rc == 0 && steps > 0; i++)
		rc = anneal_start(&t, t.in[i], 1, steps, err);
	sort_starts(&t);
	if (rc == 0 && t.in[0]->best_s < t.told_s)
		rc = progress_note(g, &t.in[0]->best, t.in[0]->best_iteration_s, err);
	end_starts(&t, a, round_size);
	return rc;
}

/* One more, in which groups of so many are tied, of fewer where that cannot be. -ENOMEM. */
static int add_tied(struct multi_start *t, const struct solution *given, int *group)
{
	const struct problem *p = t->g->p;
	struct solution s;
	int rc = solution_init(&s, p);

	if (rc != 0)
		return rc;
	solution_copy(&s, given, p);
	rc = PLAN_INFEASIBLE;
	for (; rc == PLAN_INFEASIBLE && *group > 1; *group -= rc != 0)
		rc = construct_tied(&s, p, *group, t->n_others > 0 ? &t->rng : NULL);
	return let_in(t, &s, rc, 300 + t->n_others);
}

/* Half of them with all of a data node's microbatches tied, half with two and two. */
static int add_all_tied(struct multi_start *t, const struct solution *given, int *most)
{
	int two = 2, rc = 0;

	for (int i = 0; i < TIED_STARTS && rc == 0 && !is_over(t); i++)
		rc = add_tied(t, given, i < TIED_STARTS / 2 ? most : &two);
	return rc;
}

/* `steps` steps of each start, with microbatches tied in groups of `group`; the best `keep` go on. */
static int anneal_tied(struct multi_start *t, int group, int64_t steps, int keep, struct error *err)
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
	rc = begin_starts(&t, a, err);
	if (rc != 0)
		return rc;
	if (add_all_tied(&t, &a->best, &most) != 0)
		rc = error_set(err, -ENOMEM, "out of memory");
	if (rc == 0)
		rc = anneal_tied(&t, most, STEPS, TIED_STARTS / 2, err);
	if (rc == 0)
		rc = anneal_tied(&t, 2, LESS_TIED_STEPS, TIED_STARTS / 2, err);
	if (g->p->q->from && !problem_all_alike(g->p->c)) /* else it is soon the best, and a trap */
		t.in[t.n++] = a;
	if (rc == 0)
		rc = anneal_tied(&t, 1, LESS_TIED_STEPS, 1, err);
	end_starts(&t, a, round_size);
	return rc;
}
