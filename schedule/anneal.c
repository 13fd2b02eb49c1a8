#include "schedule/anneal.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define FIRST_ROUND 2000 /* evaluations, for 30 microbatches */
#define ROUND_GROWTH 1.4
#define WARM 0.006  /* temperature at a round's start and end, of the makespan */
#define COLD 0.0005
#define LATE_OF 15  /* microbatches */
#define TRIES 50    /* proposals that may come to nothing in one step */

/* (mean of (finish / makespan)^8)^(1/8) */
static double fullness(const struct engine *e)
{
	double sum = 0, scale = 1 / e->makespan_s;

	for (int i = 0; i < e->n_mb; i++) {
		double x = e->finish_s[i] * scale;

		x *= x;
		x *= x;
		sum += x * x;
	}
	return sqrt(sqrt(sqrt(sum / e->n_mb)));
}

static double cost_of(const struct engine *e, double sync_s)
{
	return e->makespan_s > 0 ? e->makespan_s * (1 + fullness(e)) + sync_s : sync_s;
}

static double sync_of(const struct anneal *a)
{
	return a->p->weigh_sync ? solution_sync_s(&a->current, a->p) : 0;
}

static void keep_best(struct anneal *a)
{
	solution_copy(&a->best, &a->current, a->p);
	a->best_cost = a->cost;
	a->best_iteration_s = a->engine.makespan_s;
	a->best_s = a->engine.makespan_s + a->sync_s;
}

int anneal_init(struct anneal *a, const struct problem *p, const struct solution *from,
		uint64_t seed, uint64_t stream)
{
	struct rng rng;
	int rc;

	*a = (struct anneal){ .p = p };
	rng_init_stream(&rng, seed, stream);
	rc = solution_init(&a->current, p);
	if (rc == 0)
		rc = solution_init(&a->best, p);
	if (rc == 0) {
		solution_copy(&a->current, from, p);
		rc = moves_init(&a->moves, p, &a->current, rng);
	}
	if (rc == 0)
		rc = engine_init(&a->engine, p);
	if (rc != 0)
		goto fini_anneal;
	engine_set_paths(&a->engine, &a->current);
	if (!engine_run(&a->engine, INFINITY)) {
		rc = -EDEADLK;
		goto fini_anneal;
	}
	a->evaluations = 1;
	a->sync_s = sync_of(a);
	a->current_s = a->engine.makespan_s;
	a->cost = cost_of(&a->engine, a->sync_s);
	a->round_size = (int64_t)(FIRST_ROUND * fmax(1, p->n_mb / 30.0));
	a->round_left = a->round_size;
	a->scale = fmin(1, pow(30.0 / p->n_mb, 1.5));
	keep_best(a);
	return 0;

fini_anneal:
	anneal_fini(a);
	return rc;
}

void anneal_fini(struct anneal *a)
{
	engine_fini(&a->engine);
	moves_fini(&a->moves);
	solution_fini(&a->current);
	solution_fini(&a->best);
}

static void next_round(struct anneal *a)
{
	solution_copy(&a->current, &a->best, a->p);
	moves_refresh(&a->moves);
	moves_list_trips(&a->moves);
	engine_set_paths(&a->engine, &a->current);
	engine_run(&a->engine, INFINITY);
	a->sync_s = sync_of(a);
	a->current_s = a->engine.makespan_s;
	a->cost = cost_of(&a->engine, a->sync_s);
	a->round++;
	a->round_size = (int64_t)((double)a->round_size * ROUND_GROWTH);
	a->round_left = a->round_size;
}

static double temperature(const struct anneal *a)
{
	double done = 1 - (double)a->round_left / (double)a->round_size;

	return a->best_iteration_s * a->scale * WARM * pow(COLD / WARM, done);
}

/* The latest of a few at random: of more, the more there are. finish_s may be of a run that was
 * cut: it only steers. */
static int pick_microbatch(struct anneal *a)
{
	uint32_t n = (uint32_t)a->p->n_mb;
	int i = (int)rng_below(&a->moves.rng, n);

	for (uint32_t k = LATE_OF; k <= n && rng_below(&a->moves.rng, 2); k *= 2) {
		int j = (int)rng_below(&a->moves.rng, n);

		i = a->engine.finish_s[j] > a->engine.finish_s[i] ? j : i;
	}
	return i;
}

static bool propose(struct anneal *a)
{
	for (int i = 0; i < TRIES; i++) {
		if (moves_propose(&a->moves, pick_microbatch(a)))
			return true;
	}
	return false;
}

static void tell_engine(struct anneal *a)
{
	for (int i = 0; i < a->moves.n_touched; i++) {
		int mb = a->moves.touched[i];

		engine_set_path(&a->engine, mb,
				a->current.path + (size_t)mb * (size_t)a->p->length);
	}
}

/* Takes the move back, also from the engine: the journal says which paths those are. */
static void refuse(struct anneal *a)
{
	int n = a->moves.n_touched;

	moves_undo(&a->moves);
	a->moves.n_touched = n;
	tell_engine(a);
	a->moves.n_touched = 0;
}

bool anneal_step(struct anneal *a)
{
	double most, sync_s, cost, likely;

	if (!a->moves.has_trips && a->evaluations > 1)
		moves_list_trips(&a->moves); /* without them it goes on, with fewer moves */
	if (a->round_left-- <= 0)
		next_round(a);
	a->evaluations++;
	if (!propose(a))
		return false;
	most = a->cost - temperature(a) * log(1 - rng_uniform(&a->moves.rng));
	sync_s = a->moves.role_a >= 0 ? sync_of(a) : a->sync_s;
	likely = 0.98 * ((a->cost - a->sync_s) / a->current_s - 1);
	tell_engine(a);
	if (!engine_run(&a->engine, (most - sync_s) / (1 + likely))) {
		refuse(a);
		return false;
	}
	cost = cost_of(&a->engine, sync_s);
	if (cost > most) {
		refuse(a);
		return false;
	}
	moves_keep(&a->moves);
	a->cost = cost;
	a->sync_s = sync_s;
	a->current_s = a->engine.makespan_s;
	if (a->engine.makespan_s + sync_s < a->best_s - 1e-9) {
		keep_best(a);
		return true;
	}
	return false;
}
