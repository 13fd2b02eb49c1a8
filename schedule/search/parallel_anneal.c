/* Chains of annealing on several threads.
 *
 * The length of a chain's slice does not depend on time, so the result is the same with any
 * number of threads. Only the caller's thread reads the clock and calls back, because both belong
 * to the caller. */
#include "schedule/search/parallel_anneal.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define MOST 4       /* largest number of chains */
#define SLICE 600000 /* tasks that a chain simulates in a slice, if no simulation stops early */
/* an evaluation with lanes takes about as long as this many evaluations without lanes */
#define LANES_RUNS 8
#define CHECK_EVERY 8 /* number of evaluations between two checks of the limits */
#define CHECK_NS 2000000

struct parallel_anneal {
	struct progress *g;
	struct bound *b;
	int64_t until; /* number of evaluations at which the annealing ends */
	struct anneal *chain[MOST], other[MOST - 1];
	int n, n_others;
	double noted_s; /* the best objective that was reported to g */
	double enough_s;
	/* State of the present slice. */
	int64_t quota[MOST]; /* number of steps that each chain has to make */
	/* Number of steps that each chain has made, written by the thread that runs the chain. */
	int64_t done[MOST];
	atomic_bool stop;
	atomic_int next; /* the next chain that no thread has taken */
};

/* Runs chain k for its quota of steps. callers: true on the caller's thread. Only this thread may
 * read the request's clock. */
static void run_chain(struct parallel_anneal *c, int k, bool callers)
{
	struct anneal *a = c->chain[k];
	int64_t i = 0;

	for (; i < c->quota[k] && a->best_s > c->enough_s; i++) {
		if (callers && i % CHECK_EVERY == 0 && progress_over(c->g))
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

/* Waits until the thread has ended. Meanwhile stops all chains once the limits of the search are
 * reached. */
static void join_thread(struct parallel_anneal *c, pthread_t thread)
{
	struct timespec t;

	do {
		if (progress_over(c->g))
			atomic_store(&c->stop, true);
		clock_gettime(CLOCK_MONOTONIC, &t);
		t.tv_nsec += CHECK_NS;
		t.tv_sec += t.tv_nsec / 1000000000;
		t.tv_nsec %= 1000000000;
	} while (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &t) == ETIMEDOUT);
}

/* Runs the chains on the caller's thread and on further threads, and waits for all. A thread takes
 * the next chain when it has finished one, so all chains run even if few threads could be
 * created. */
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
		join_thread(c, threads[i]);
}

/* Gives every chain a slice, or less if the round or the search ends earlier. */
static void set_quotas(struct parallel_anneal *c)
{
	const struct problem *p = c->g->p;
	const struct anneal *a = c->chain[0];
	int64_t slice = SLICE / (p->n_mb * (2 * p->length + 1)) + 1;
	int64_t asked = p->q->evaluations;
	int64_t most = asked > 0 && asked < c->until ? asked : c->until;
	int64_t left = most - c->g->evaluations;

	if (a->round_left > 0 && a->round_left < slice)
		slice = a->round_left;
	for (int k = 0; k < c->n; k++) {
		int64_t share = left / c->n + (k < left % c->n);

		c->quota[k] = share < slice ? share : slice;
	}
}

static int collect_results(struct parallel_anneal *c, struct error *err)
{
	struct anneal *best = c->chain[0];
	int64_t done = 0;

	for (int k = 0; k < c->n; k++) {
		done += c->done[k];
		best = c->chain[k]->best_s < best->best_s ? c->chain[k] : best;
	}
	c->g->evaluations += done;
	if (c->b)
		c->g->lower_bound_s =
			bound_beside(c->b, done * (best->plans_lanes ? LANES_RUNS : 1));
	c->enough_s = c->g->lower_bound_s * BOUND_MET;
	if (best->best_s >= c->noted_s)
		return progress_announce(c->g, err);
	c->noted_s = best->best_s;
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
	int rc = collect_results(c, err);

	while (rc == 0 && c->g->evaluations < c->until && !progress_over(c->g) &&
	       c->noted_s > c->enough_s) {
		set_quotas(c);
		run_slice(c);
		rc = collect_results(c, err);
		if (c->chain[0]->round_left <= 0)
			end_round(c);
	}
	return rc;
}

/* Adds further chains to the first one. The new chains begin with the first chain's best
 * solution, and have rounds of the same length. */
static void add_chains(struct parallel_anneal *c, struct anneal *first)
{
	const struct problem *p = first->p;
	int threads = p->q->threads > 1 ? p->q->threads : 1;
	int n = problem_is(p, REGIME_SHORT_ROUNDS) || threads > MOST ? MOST : threads;

	c->chain[0] = first;
	c->n = 1;
	first->round_left = 0;
	for (int k = 1; k < n; k++) {
		struct anneal *a = &c->other[c->n_others++];

		/* The best solution has been simulated, so it cannot come to a standstill. */
		anneal_init(a, p, &first->best, p->q->seed, (uint64_t)(100 + k));
		c->chain[c->n++] = a;
		a->round_size = first->round_size;
		a->round_left = 0;
	}
}

int parallel_anneal_run(struct progress *g, struct anneal *first, struct bound *b, int64_t until,
			struct error *err)
{
	struct parallel_anneal c = { .g = g, .b = b, .until = until, .noted_s = first->best_s };
	int rc;

	add_chains(&c, first);
	rc = run_slices(&c, err);
	for (int k = 1; rc == 0 && k < c.n; k++) {
		if (c.chain[k]->best_s < first->best_s)
			anneal_adopt(first, c.chain[k]);
	}
	for (int i = 0; i < c.n_others; i++)
		anneal_fini(&c.other[i]);
	return rc;
}
