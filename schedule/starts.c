#include "schedule/starts.h"

#include <errno.h>

#include "base/rng.h"
#include "schedule/construct.h"
#include "schedule/place.h"

#define STARTS 16
#define STEPS 500 /* of each at first */

struct starts {
	struct progress *g;
	struct rng rng;
	double enough_s; /* for the sums of a random placement */
	struct anneal *in[STARTS], other[STARTS - 1];
	int n, n_others;
	double told_s; /* the best objective that g knows of */
};

/* Where sums count, the first has the shortest that can be found. */
static int place(struct starts *t, struct solution *s, bool first)
{
	const struct problem *p = t->g->p;
	int rc;

	if (!first || !p->weigh_sync)
		return place_at_random(s, p, t->enough_s, &t->rng);
	rc = place_by_sync(s, p, t->g);
	t->enough_s = solution_sync_s(s, p);
	return rc;
}

/* One more, unless there are no paths for it or its sums take too long. -ENOMEM. */
static int add(struct starts *t, const struct solution *given, bool first)
{
	const struct problem *p = t->g->p;
	struct anneal *to = &t->other[t->n_others];
	struct solution s;
	int rc = solution_init(&s, p);

	if (rc != 0)
		return rc;
	solution_copy(&s, given, p);
	rc = place(t, &s, first);
	if (rc == 0 && solution_sync_s(&s, p) > p->sync_limit_s)
		rc = PLAN_NOT_FOUND;
	if (rc == 0)
		rc = construct_paths(&s, p, 0, false, &t->rng, NULL);
	if (rc == 0)
		rc = anneal_init(to, p, &s, p->q->seed, (uint64_t)(200 + t->n));
	solution_fini(&s);
	if (rc != 0)
		return rc == -ENOMEM ? rc : 0;
	t->g->evaluations++;
	t->n_others++;
	t->in[t->n++] = to;
	return 0;
}

static int anneal(struct starts *t, struct anneal *a, int64_t steps, struct error *err)
{
	int rc = 0;

	anneal_begin_round(a, steps);
	for (int64_t i = 0; rc == 0 && i < steps && !progress_over(t->g); i++) {
		t->g->evaluations++;
		if (anneal_step(a) && a->best_s < t->told_s) {
			t->told_s = a->best_s;
			rc = progress_note(t->g, &a->best, a->best_iteration_s, err);
		}
	}
	return rc;
}

static void sort(struct starts *t)
{
	for (int i = 1; i < t->n; i++) {
		struct anneal *a = t->in[i];
		int j = i;

		for (; j > 0 && t->in[j - 1]->best_s > a->best_s; j--)
			t->in[j] = t->in[j - 1];
		t->in[j] = a;
	}
}

int starts_run(struct progress *g, struct anneal *a, struct error *err)
{
	struct starts t = { .g = g, .in = { a }, .n = 1, .told_s = a->best_s };
	int64_t round_size = a->round_size;
	int rc = 0;

	t.enough_s = g->p->sync_limit_s;
	rng_init_stream(&t.rng, g->p->q->seed, 5);
	for (int i = 1; i < STARTS && rc == 0 && !progress_over(g); i++)
		rc = add(&t, &a->best, i == 1);
	if (rc != 0)
		rc = error_set(err, rc, "out of memory");
	for (int64_t steps = STEPS; rc == 0 && t.n > 1 && !progress_over(g); steps *= 2) {
		for (int i = 0; i < t.n && rc == 0; i++)
			rc = anneal(&t, t.in[i], steps, err);
		sort(&t);
		t.n = (t.n + 1) / 2;
	}
	sort(&t);
	if (t.in[0] != a)
		anneal_adopt(a, t.in[0]);
	a->round_size = round_size;
	a->round_left = 0;
	for (int i = 0; i < t.n_others; i++)
		anneal_fini(&t.other[i]);
	return rc;
}
