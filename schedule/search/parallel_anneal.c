#include "schedule/search/parallel_anneal.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define MOST 4       /* chains */
#define SLICE 600000 /* tasks that a chain's runs have in a slice, if none is cut */
#define LANES_RUNS 8 /* take as long as one where lanes are planned */
#define LOOK_EVERY 8 /* runs, for whether it is over */
#define LOOK_NS 2000000

struct parallel_anneal {
	struct progress *g;
	struct bound *b;
	int64_t until; /* evaluations */
	struct anneal *chain[MOST], other[MOST - 1];
	int n, n_others;
	double told_s; /* the best objective that g knows of */
	double enough_s;
	/* The slice. */
	int64_t quota[MOST],
		done[MOST]; /* steps; done is that of the thread that has the chain */
	atomic_bool stop;
	atomic_int next; /* chain that nobody works on yet */
};

/* The caller's thread alone asks whether it is over: the request's clock is its own. */
static void run_chain(struct parallel_anneal *c, int k, bool callers)
{
	struct anneal *a = c->chain[k];
	int64_t i = 0;

	for (; i < c->quota[k] && a->best_s > c->enough_s; i++) {
		if (callers && i % LOOK_EVERY == 0 && progress_over(c->g))
			atomic_store(&c->stop, true);
		if (atomic_load_explicit(&c->stop, memory_order_relaxed))
			break;
		anneal_step(a);
	}
	c->done[k] = i;
}

static void *run_worker(void *arg)
{
	struct parallel_anneal *c = arg;

	for (int k; (k = atomic_fetch_add(&c->next, 1)) < c->n;)
		run_chain(c, k, false);
	return NULL;
}

/* Until the thread has ended; meanwhile whether it is over is looked at. */
static void join_looking(struct parallel_anneal *c, pthread_t thread)
{
	struct timespec t;

	do {
		if (progress_over(c->g))
			atomic_store(&c->stop, true);
		clock_gettime(CLOCK_MONOTONIC, &t);
		t.tv_nsec += LOOK_NS;
		t.tv_sec += t.tv_nsec / 1000000000;
		t.tv_nsec %= 1000000000;
	} while (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &t) == ETIMEDOUT);
}

/* The caller's thread works on chains too, and then waits for the others'. Fewer threads than asked for do
 * as well. */
static void run_slice(struct parallel_anneal *c)
{
	int most = c->g->p->q->threads < c->n ? c->g->p->q->threads : c->n, n = 0;
	pthread_t threads[MOST];

	atomic_store(&c->next, 0);
	while (n < most - 1 && pthread_create(&threads[n], NULL, run_worker, c) == 0)
		n++;
	for (int k; (k = atomic_fetch_add(&c->next, 1)) < c->n;)
		run_chain(c, k, true);
	for (int i = 0; i < n; i++)
		join_looking(c, threads[i]);
}

/* Equal shares of a slice, of what is left of the round, or of what is left at all. */
static void set_quotas(struct parallel_anneal *c)
{
	const struct problem *p = c->g->p;
	const struct anneal *a = c->chain[0];
	int64_t slice = SLICE / (p->n_mb * (2 * p->length + 1)) + 1;
	int64_t most = p->q->evaluations > 0 && p->q->evaluations < c->until ? p->q->evaluations : c->until;
	int64_t left = most - c->g->evaluations;

	if (a->round_left > 0 && a->round_left < slice)
		slice = a->round_left;
	for (int k = 0; k < c->n; k++) {
		int64_t share = left / c->n + (k < left % c->n);

		c->quota[k] = share < slice ? share : slice;
	}
}

static int take_stock(struct parallel_anneal *c, struct error *err)
{
	struct anneal *best = c->chain[0];
	int64_t done = 0;

	for (int k = 0; k < c->n; k++) {
		done += c->done[k];
		best = c->chain[k]->best_s < best->best_s ? c->chain[k] : best;
	}
	c->g->evaluations += done;
	if (c->b)
		c->g->lower_bound_s = bound_beside(c->b, done * (best->plans_lanes ? LANES_RUNS : 1));
	c->enough_s = c->g->lower_bound_s * BOUND_MET;
	if (best->best_s >= c->told_s)
		return progress_tell(c->g, err);
	c->told_s = best->best_s;
	return progress_note(c->g, &best->best, best->best_iteration_s, err);
}

static void end_round(struct parallel_anneal *c)
{
	const struct anneal *best = c->chain[0];

	for (int k = 1; k < c->n; k++)
		best = c->chain[k]->best_s < best->best_s ? c->chain[k] : best;
	for (int k = 0; k < c->n; k++) {
		if (c->chain[k] != best)
			anneal_adopt(c->chain[k], best);
	}
}

static int run_slices(struct parallel_anneal *c, struct error *err)
{
	int rc = take_stock(c, err);

	while (rc == 0 && c->g->evaluations < c->until && !progress_over(c->g) &&
	       c->told_s > c->enough_s) {
		set_quotas(c);
		run_slice(c);
		rc = take_stock(c, err);
		if (c->chain[0]->round_left <= 0)
			end_round(c);
	}
	return rc;
}

/* The other chains: at the best of the first, with rounds as long. */
static int add_chains(struct parallel_anneal *c, struct anneal *first)
{
	const struct problem *p = first->p;
	int threads = p->q->threads > 1 ? p->q->threads : 1;
	int n = problem_is(p, REGIME_SHORT_ROUNDS) || threads > MOST ? MOST : threads, rc = 0;

	c->chain[0] = first;
	c->n = 1;
	first->round_left = 0;
	for (int k = 1; rc == 0 && k < n; k++) {
		struct anneal *a = &c->other[c->n_others];

		rc = anneal_init(a, p, &first->best, p->q->seed, (uint64_t)(100 + k));
		if (rc != 0)
			return rc;
		c->n_others++;
		c->chain[c->n++] = a;
		a->round_size = first->round_size;
		a->round_left = 0;
	}
	return 0;
}

int parallel_anneal_run(struct progress *g, struct anneal *first, struct bound *b, int64_t until, struct error *err)
{
	struct parallel_anneal c = { .g = g, .b = b, .until = until, .told_s = first->best_s };
	int rc = add_chains(&c, first);

	if (rc == 0)
		rc = run_slices(&c, err);
	else
		error_set(err, rc, "out of memory");
	for (int k = 1; rc == 0 && k < c.n; k++) {
		if (c.chain[k]->best_s < first->best_s)
			anneal_adopt(first, c.chain[k]);
	}
	for (int i = 0; i < c.n_others; i++)
		anneal_fini(&c.other[i]);
	return rc;
}
