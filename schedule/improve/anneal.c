/* Simulated annealing.
 *
 * A step proposes a move (moves.c) and draws a threshold for its cost. An estimate of the changed
 * microbatches' finish times may reject the move at once (is_promising). Otherwise the step
 * simulates the run from the first change on, and keeps the move if the cost is within the
 * threshold (try_move). After a kept move, fill_tables prepares the times of the new run for the
 * next moves. */
#include "schedule/improve/anneal.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define ROUND_GROWTH 1.4
/* The time limit of a move's simulation is computed as if the move lowered mean_finish to this
 * share of its present value. */
#define LIKELY 0.98
/* In problems with short rounds (REGIME_SHORT_ROUNDS), pick_microbatch prefers late microbatches if
 * there are at least this many microbatches. */
#define LATE_OF 15
/* Moves that change more microbatches than this are simulated without an estimate. */
#define MOST_ESTIMATED 8
#define TRIES 50         /* number of proposals after which a step fails */
#define LANES_TRIES 8    /* number of proposals after which a step fails, if lanes are planned */

/* Raises x to the 8th power, or to the 32nd in problems with very many microbatches. With a low
 * power, the many microbatches that finish early would together weigh more than the few that
 * finish last. */
static double raise_to_norm(const struct problem *p, double x)
{
	x *= x;
	x *= x;
	x *= x;
	if (problem_is(p, REGIME_STEEP_NORM)) {
		x *= x;
		x *= x;
	}
	return x;
}

/* Returns the mean of finish time / makespan over all microbatches of the simulation's last run, in
 * the 8-norm or 32-norm (raise_to_norm). */
static double mean_finish(const struct anneal *a)
{
	const struct fast_simulate *e = &a->simulation;
	double sum = 0, scale = 1 / e->makespan_s, mean;

	for (int i = 0; i < a->p->n_mb; i++)
		sum += raise_to_norm(a->p, e->finish_s[i] * scale);
	mean = sqrt(sqrt(sqrt(sum / a->p->n_mb)));
	return problem_is(a->p, REGIME_STEEP_NORM) ? sqrt(sqrt(mean)) : mean;
}

/* Returns the cost of the simulation's last run. */
static double cost_of(const struct anneal *a, double sync_s)
{
	double makespan_s = a->simulation.makespan_s;

	return makespan_s > 0 ? makespan_s * (1 + mean_finish(a)) + sync_s : sync_s;
}

/* Returns the seconds from the end of the last task to the end of the last sum, if each stage
 * begins its sum when its own last task ends. Uses the simulation's last run. */
static double late_sync_s(const struct anneal *a)
{
	const struct solution *s = &a->current;
	double total_s = a->simulation.makespan_s;

	for (int stage = 0; stage < a->p->n_stages; stage++) {
		double free_s = 0;

		for (int i = s->start[stage]; i < s->start[stage + 1]; i++)
			free_s = fmax(free_s, a->simulation.nodes[s->members[i]].free_s);
		free_s -= a->p->c->dispatch_overhead_s;
		total_s = fmax(total_s, free_s + solution_stage_sync_s(s, a->p, stage, NULL));
	}
	return total_s - a->simulation.makespan_s;
}

/* Returns the seconds that the sums add to the iteration. With overlap this uses the simulation's
 * last run. */
static double sync_of(const struct anneal *a)
{
	if (a->p->weigh_sync && a->p->q->overlap_sync)
		return late_sync_s(a);
	return a->p->weigh_sync ? solution_sync_s(&a->current, a->p, NULL) : 0;
}

static void keep_best(struct anneal *a)
{
	solution_copy(&a->best, &a->current, a->p);
	a->best_iteration_s = a->current_s;
	a->best_s = a->current_s + a->sync_s;
}

/* Fills the tables from which moves read the times of the simulation's last run. */
static void fill_tables(struct anneal *a)
{
	if (a->plans_lanes)
		lanes_fill(&a->lanes, &a->simulation);
	else
		timetable_fill(&a->table, &a->simulation);
	fast_simulate_keep(&a->simulation);
}

/* Simulates the solution `current`. The simulation already has its paths. */
static int run_current(struct anneal *a)
{
	if (!fast_simulate_run(&a->simulation, INFINITY))
		return -EDEADLK;
	a->sync_s = sync_of(a);
	a->current_s = a->simulation.makespan_s;
	a->cost = cost_of(a, a->sync_s);
	fill_tables(a);
	return 0;
}

bool anneal_knows_lanes(const struct problem *p)
{
	return problem_is(p, REGIME_LANES) && p->length > 1;
}

/* Returns true if all moves plan lanes. Returns false as long as nodes may change their stages in
 * a large cluster: moves of lanes take long there, and exchanging the stages of two nodes gains
 * more. */
static bool are_lanes_planned(const struct problem *p)
{
	return anneal_knows_lanes(p) && (p->n_movable < 2 || problem_is(p, REGIME_SHORT_ROUNDS));
}

static void set_cooling(struct anneal *a)
{
	const struct problem *p = a->p;
	const struct cooling *k = strategy_cooling(p->regimes, p->q->from != NULL, a->plans_lanes);
	double times = fmax(1, p->n_mb / 30.0), less = pow(times, -k->power);

	a->warm = k->warm * less;
	a->cold = k->cold * less;
	a->round_size = (int64_t)(k->round * times);
	a->round_left = a->round_size;
}

int anneal_init(struct anneal *a, const struct problem *p, const struct solution *from,
		uint64_t seed, uint64_t stream)
{
	struct rng rng;
	int rc;

	*a = (struct anneal){ .p = p };
	rng_init_stream(&rng, seed, stream);
	a->plans_lanes = are_lanes_planned(p);
	if (a->plans_lanes)
		lanes_init(&a->lanes, p);
	else
		timetable_init(&a->table, p);
	solution_init(&a->current, p);
	solution_init(&a->best, p);
	solution_copy(&a->current, from, p);
	if (a->plans_lanes)
		lanes_fill_hops(&a->lanes, &a->current);
	moves_init(&a->moves, p, &a->current, a->plans_lanes ? NULL : &a->table,
		   a->plans_lanes ? &a->lanes : NULL, rng);
	fast_simulate_init(&a->simulation, p);
	fast_simulate_set_paths(&a->simulation, &a->current);
	rc = run_current(a); /* also fills the tables that moves read */
	if (rc != 0) {
		anneal_fini(a);
		return rc;
	}
	set_cooling(a);
	keep_best(a);
	return 0;
}

void anneal_fini(struct anneal *a)
{
	fast_simulate_fini(&a->simulation);
	moves_fini(&a->moves);
	timetable_fini(&a->table);
	lanes_fini(&a->lanes);
	solution_fini(&a->current);
	solution_fini(&a->best);
}

void anneal_adopt(struct anneal *a, const struct anneal *from)
{
	solution_copy(&a->best, &from->best, a->p);
	a->best_s = from->best_s;
	a->best_iteration_s = from->best_iteration_s;
	a->round_left = 0;
}

void anneal_begin_round(struct anneal *a, int64_t steps)
{
	solution_copy(&a->current, &a->best, a->p);
	moves_refresh(&a->moves);
	if (a->plans_lanes)
		lanes_fill_hops(&a->lanes, &a->current);
	fast_simulate_set_paths(&a->simulation, &a->current);
	run_current(a);
	a->round_size = a->round_left = steps;
}

static double temperature_now(const struct anneal *a)
{
	double done = 1 - (double)a->round_left / (double)a->round_size;

	return a->best_iteration_s * a->warm * pow(a->cold / a->warm, done);
}

static double home_s(const struct anneal *a, int mb)
{
	return a->plans_lanes ? (double)a->lanes.home_s[mb] : a->table.home_s[mb];
}

static int any_microbatch(struct anneal *a)
{
	return (int)rng_below(&a->moves.rng, (uint32_t)a->p->n_mb);
}

/* Draws a microbatch at random. Returns that microbatch or mb, whichever finishes later. */
static int later_home(struct anneal *a, int mb)
{
	int other = any_microbatch(a);

	return home_s(a, other) > home_s(a, mb) ? other : mb;
}

/* Draws some microbatches at random and returns the latest of them. In a large problem, a few
 * microbatches finish far later than the rest, and only moves of these few shorten the iteration.
 * In such a problem, the number of draws is therefore a power of two, from one up to about all
 * microbatches. Each of these powers is equally likely. */
static int pick_microbatch(struct anneal *a)
{
	int n = a->p->n_mb, mb = any_microbatch(a), doublings = 0;

	if (!a->plans_lanes && problem_is(a->p, REGIME_SHORT_ROUNDS)) {
		for (int k = LATE_OF; k <= n && rng_below(&a->moves.rng, 2); k *= 2)
			mb = later_home(a, mb);
		return mb;
	}
	while (1 << doublings < n)
		doublings++;
	for (int k = 1 << rng_below(&a->moves.rng, (uint32_t)doublings + 1); k > 1; k--)
		mb = later_home(a, mb);
	return mb;
}

/* Returns true if the move may have a cost below `most`, judged by the estimated finish times of
 * the microbatches that it changes. This avoids long simulations. In small problems all moves pass,
 * because simulations are short there, and estimates in crowded nodes would reject too many good
 * moves. */
static bool is_promising(struct anneal *a, double most)
{
	const struct moves *m = &a->moves;
	double scale = 1 / a->current_s, q = (a->cost - a->sync_s) * scale - 1;
	int n = a->p->n_mb;
	double room = n * (raise_to_norm(a->p, (most - a->sync_s) * scale - 1) -
			   raise_to_norm(a->p, q));
	double put_off_s = 0;

	for (int i = 0; m->is_planned && i < m->lanes->n_back; i++)
		room -= raise_to_norm(a->p, m->lanes->back_s[i] * scale) -
			raise_to_norm(a->p, m->lanes->was_s[i] * scale);
	if (m->is_planned)
		return room >= 0;
	if (a->plans_lanes || !problem_is(a->p, REGIME_ESTIMATES) || m->role_a >= 0 ||
	    m->n_touched > MOST_ESTIMATED)
		return true;
	for (int i = 0; i < m->n_touched; i++) {
		int mb = m->touched[i];
		const int *path = solution_path(&a->current, a->p, mb);
		double home_s = timetable_estimate(&a->table, mb, path, &put_off_s);

		room -= raise_to_norm(a->p, home_s * scale) -
			raise_to_norm(a->p, a->table.home_s[mb] * scale);
	}
	return room >= 0;
}

/* Returns true if both stages still sum their gradients within the limit after two nodes have
 * exchanged their stages.
 */
static bool keeps_limit(const struct anneal *a)
{
	const struct moves *m = &a->moves;
	const struct solution *s = &a->current;

	return m->role_a < 0 || isinf(a->p->sync_limit_s) ||
	       (solution_stage_sync_s(s, a->p, s->stage_of[m->role_a], NULL) <=
			a->p->sync_limit_s &&
		solution_stage_sync_s(s, a->p, s->stage_of[m->role_b], NULL) <=
			a->p->sync_limit_s);
}

/* Finds a promising move; *most gets the cost below which it is accepted. */
static bool propose_move(struct anneal *a, double *most)
{
	int tries = a->plans_lanes ? LANES_TRIES : TRIES;

	for (int i = 0; i < tries; i++) {
		if (!moves_propose(&a->moves, pick_microbatch(a)))
			continue;
		*most = a->cost - temperature_now(a) * log(1 - rng_uniform(&a->moves.rng));
		if (keeps_limit(a) && is_promising(a, *most))
			return true;
		moves_undo(&a->moves);
	}
	return false;
}

/* Gives the changed paths to the simulation. Returns the time before which the run stays the
 * same. */
static double change_chains(struct anneal *a)
{
	double from_s = INFINITY;

	for (int i = 0; i < a->moves.n_touched; i++) {
		int mb = a->moves.touched[i];
		const int *path = solution_path(&a->current, a->p, mb);

		from_s = fmin(from_s, fast_simulate_changes_s(&a->simulation, mb, path));
		fast_simulate_set_path(&a->simulation, mb, path);
	}
	return from_s;
}

/* Simulates the move. Keeps it if its cost is at most `most`, and takes it back otherwise. */
static bool try_move(struct anneal *a, double most, double *sync_s, double limit_s)
{
	double cost, from_s = change_chains(a);
	int n = a->moves.n_touched;

	if (fast_simulate_run_from(&a->simulation, from_s, limit_s)) {
		if (a->p->q->overlap_sync)
			*sync_s = sync_of(a);
		cost = cost_of(a, *sync_s);
		if (cost <= most) {
			moves_keep(&a->moves);
			fill_tables(a);
			a->cost = cost;
			a->current_s = a->simulation.makespan_s;
			return true;
		}
	}
	moves_undo(&a->moves);
	/* moves_undo empties the list of touched microbatches, but change_chains needs it once
	 * more. */
	a->moves.n_touched = n;
	change_chains(a);
	a->moves.n_touched = 0;
	return false;
}

bool anneal_step(struct anneal *a)
{
	double most, sync_s, limit_s;

	if (a->round_left-- <= 0)
		anneal_begin_round(a, (int64_t)((double)a->round_size * ROUND_GROWTH));
	if (!propose_move(a, &most))
		return false;
	if (a->p->q->overlap_sync)
		sync_s = 0; /* the sums are known only after the simulation */
	else
		sync_s = a->moves.role_a >= 0 ? sync_of(a) : a->sync_s;
	limit_s = (most - sync_s) / (1 + LIKELY * ((a->cost - a->sync_s) / a->current_s - 1));
	if (!try_move(a, most, &sync_s, limit_s))
		return false;
	a->sync_s = sync_s;
	if (a->current_s + sync_s >= a->best_s - 1e-9)
		return false;
	keep_best(a);
	return true;
}
