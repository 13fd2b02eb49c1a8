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
	/* Who works on what: under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t go, ready;
	int next, unfinished;
	bool quit;
	pthread_t threads[MOST];
	int n_threads; /* besides the caller's */
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

	pthread_mutex_lock(&c->lock);
	while (!c->quit) {
		if (c->next < c->n) {
			int k = c->next++;

			pthread_mutex_unlock(&c->lock);
			run_chain(c, k, false);
			pthread_mutex_lock(&c->lock);
			if (--c->unfinished == 0)
				pthread_cond_signal(&c->ready);
		} else {
			pthread_cond_wait(&c->go, &c->lock);
		}
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* The caller's thread works on chains too, and then waits for the others'. */
static void run_slice(struct parallel_anneal *c)
{
	pthread_mutex_lock(&c->lock);
	c->next = 0;
	c->unfinished = c->n;
	pthread_cond_broadcast(&c->go);
	while (c->unfinished > 0) {
		if (c->next < c->n) {
			int k = c->next++;

			pthread_mutex_unlock(&c->lock);
			run_chain(c, k, true);
			pthread_mutex_lock(&c->lock);
			c->unfinished--;
		} else {
			struct timespec t;

			clock_gettime(CLOCK_MONOTONIC, &t);
			t.tv_nsec += LOOK_NS;
			t.tv_sec += t.tv_nsec / 1000000000;
			t.tv_nsec %= 1000000000;
			pthread_cond_timedwait(&c->ready, &c->lock, &t);
			if (progress_over(c->g))
				atomic_store(&c->stop, true);
		}
	}
	pthread_mutex_unlock(&c->lock);
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

/* Fewer threads than asked for do as well. */
static void start_threads(struct parallel_anneal *c)
{
	int most = c->g->p->q->threads < c->n ? c->g->p->q->threads : c->n;

	while (c->n_threads < most - 1 &&
	       pthread_create(&c->threads[c->n_threads], NULL, run_worker, c) == 0)
		c->n_threads++;
}

static void join_threads(struct parallel_anneal *c)
{
	pthread_mutex_lock(&c->lock);
	c->quit = true;
	pthread_cond_broadcast(&c->go);
	pthread_mutex_unlock(&c->lock);
	for (int i = 0; i < c->n_threads; i++)
		pthread_join(c->threads[i], NULL);
}

static void free_chains(struct parallel_anneal *c)
{
	for (int i = 0; i < c->n_others; i++)
		anneal_fini(&c->other[i]);
}

int parallel_anneal_run(struct progress *g, struct anneal *first, struct bound *b, int64_t until, struct error *err)
{
	struct parallel_anneal c = { .g = g, .b = b, .until = until, .told_s = first->best_s };
	pthread_condattr_t monotonic;
	int rc;

	rc = add_chains(&c, first);
	if (rc != 0) {
		free_chains(&c);
		return error_set(err, -ENOMEM, "out of memory");
	}
	c.next = c.n; /* nothing to do yet */
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&c.lock, NULL);
	pthread_cond_init(&c.go, NULL);
	pthread_cond_init(&c.ready, &monotonic);
	pthread_condattr_destroy(&monotonic);
	start_threads(&c);
	rc = run_slices(&c, err);
	join_threads(&c);
	for (int k = 1; k < c.n; k++) {
		if (c.chain[k]->best_s < first->best_s)
			anneal_adopt(first, c.chain[k]);
	}
	pthread_cond_destroy(&c.ready);
	pthread_cond_destroy(&c.go);
	pthread_mutex_destroy(&c.lock);
	free_chains(&c);
	return rc;
}
