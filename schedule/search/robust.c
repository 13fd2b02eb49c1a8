#include "schedule/search/robust.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "schedule/execution/fast_simulate.h"
#include "schedule/improve/moves.h"
#include "schedule/execution/jitter.h"
#include "schedule/problem/progress.h"
#include "schedule/execution/simulate.h"

/* Two phases. The best plan for the times as planned takes the first share of the budget. Its paths are
 * then annealed over the mean of some samples at once, in rounds: a proposal is given up as soon as the
 * rest of the samples can hardly save it (try_all), and what wins a round must also win on the judge's
 * samples before it counts, since it is partly made for just those of the round. */

#define PLANNED_SHARE 0.4   /* of the budget goes to the plan for the planned times */
#define FIRST_ROUND 300     /* proposals */
#define ROUND_GROWTH 1.4
#define WARM 0.002          /* temperature at a round's start and end, of the mean */
#define COLD 0.0001
#define LIKELY 0.97         /* of its present time, a sample takes at least this */
#define STANDSTILL 10       /* what one counts as, in planned iterations */
#define TRIES 50            /* proposals that may come to nothing in one step */
#define JUDGE_SAMPLES 100
#define REPORT_SAMPLES 200
/* Samples by number: the search's own begin at 0. */
#define JUDGE_FROM (1u << 22)
#define REPORT_FROM (1u << 23)

/* One simulation a sample; all have the paths of current, each with its own factors. What is best on
 * a round's samples is partly made for just these: a round's winner must also beat the best so far
 * on the judge's samples, and each round draws new ones. */
struct trials {
	const struct problem *p;
	int n;
	struct arena arena;     /* of the arrays below */
	struct fast_simulate *simulations; /* (n) */
	double **factors;       /* (n) */
	double *time_s;         /* (n) iterations of current */
	double *tried_s;        /* (n) of the proposal */
	double sum_s;           /* of time_s */
	double round_s;         /* for the round's best */
	double best_s;          /* for best, on the judge's samples */
	double standstill_s;
	struct fast_simulate judge;
	double *judge_factors;
	struct solution current, round, best;
	struct moves moves;
};

static double *factors_alloc(struct trials *t)
{
	size_t each = 2 * (2 * (size_t)t->p->length + 1) + (size_t)t->p->length;

	return arena_array(&t->arena, (size_t)t->p->n_mb * each, sizeof(double));
}

static void draw_factors(const struct problem *p, uint32_t sample, double *out)
{
	struct jitter noise = { .jitter = p->q->jitter, .seed = p->q->seed, .sample = sample };
	int steps = 2 * p->length + 1;

	for (int mb = 0; mb < p->n_mb; mb++) {
		for (int s = 0; s < steps; s++)
			*out++ = jitter_factor(&noise, mb, s, false);
		for (int s = 0; s < steps; s++)
			*out++ = jitter_factor(&noise, mb, s, true);
		for (int hop = 0; hop < p->length; hop++)
			*out++ = jitter_factor(&noise, mb, steps + hop, false);
	}
}

static void trials_fini(struct trials *t)
{
	for (int k = 0; k < t->n; k++)
		fast_simulate_fini(&t->simulations[k]);
	fast_simulate_fini(&t->judge);
	arena_free(&t->arena);
	moves_fini(&t->moves);
	solution_fini(&t->current);
	solution_fini(&t->round);
	solution_fini(&t->best);
}

/* From the plan's paths. One simulation a sample, and one for the judge, each with factors of its own. */
static int trials_init(struct trials *t, const struct problem *p, const struct plan *from)
{
	int samples = p->q->samples > 0 ? p->q->samples : ROBUST_SAMPLES;
	struct rng rng;
	int rc;

	*t = (struct trials){ .p = p, .standstill_s = STANDSTILL * from->predicted.iteration_s };
	t->simulations = arena_array(&t->arena, (size_t)samples, sizeof(*t->simulations));
	t->factors = arena_array(&t->arena, (size_t)samples, sizeof(*t->factors));
	t->time_s = arena_array(&t->arena, (size_t)samples, sizeof(*t->time_s));
	t->tried_s = arena_array(&t->arena, (size_t)samples, sizeof(*t->tried_s));
	for (int k = 0; k < samples && !t->arena.failed; k++)
		t->factors[k] = factors_alloc(t);
	t->judge_factors = factors_alloc(t);
	if (t->arena.failed)
		return -ENOMEM;
	if (solution_init(&t->current, p) != 0 || solution_init(&t->round, p) != 0 ||
	    solution_init(&t->best, p) != 0)
		return -ENOMEM;
	plan_stages(from, p->n_nodes, t->current.stage_of);
	solution_index(&t->current, p);
	memcpy(t->current.path, from->visits,
	       (size_t)p->n_mb * (size_t)p->length * sizeof(*t->current.path));
	solution_copy(&t->best, &t->current, p);
	for (; t->n < samples; t->n++) {
		rc = fast_simulate_init(&t->simulations[t->n], p);
		if (rc != 0)
			return rc;
		t->simulations[t->n].factors = t->factors[t->n];
	}
	rc = fast_simulate_init(&t->judge, p);
	if (rc != 0)
		return rc;
	t->judge.factors = t->judge_factors;
	rng_init_stream(&rng, p->q->seed, 4);
	return moves_init(&t->moves, p, &t->current, NULL, NULL, rng);
}

static double run_sample(struct trials *t, struct fast_simulate *e, double limit_s)
{
	return fast_simulate_run(e, limit_s) ? e->makespan_s : t->standstill_s;
}

/* The mean over the judge's samples. */
static double judge_mean_s(struct trials *t, const struct solution *s)
{
	double sum_s = 0;

	for (uint32_t k = 0; k < JUDGE_SAMPLES; k++) {
		draw_factors(t->p, JUDGE_FROM + k, t->judge_factors);
		fast_simulate_set_paths(&t->judge, s);
		sum_s += run_sample(t, &t->judge, INFINITY);
	}
	return sum_s / JUDGE_SAMPLES;
}

/* All samples of current, anew. */
static void run_all(struct trials *t)
{
	t->sum_s = 0;
	for (int k = 0; k < t->n; k++) {
		fast_simulate_set_paths(&t->simulations[k], &t->current);
		t->time_s[k] = run_sample(t, &t->simulations[k], INFINITY);
		t->sum_s += t->time_s[k];
	}
}

static void change_chains(struct trials *t, int n_touched)
{
	for (int i = 0; i < n_touched; i++) {
		int mb = t->moves.touched[i];
		const int *path = t->current.path + (size_t)mb * (size_t)t->p->length;

		for (int k = 0; k < t->n; k++)
			fast_simulate_set_path(&t->simulations[k], mb, path);
	}
}

/* The sum over all samples, if it stays below most_s; else INFINITY, as soon as that is likely. */
static double try_all(struct trials *t, double most_s, int64_t *runs)
{
	double sum_s = 0, rest_s = LIKELY * t->sum_s;

	for (int k = 0; k < t->n; k++) {
		rest_s -= LIKELY * t->time_s[k];
		t->tried_s[k] = run_sample(t, &t->simulations[k], most_s - sum_s - rest_s);
		sum_s += t->tried_s[k];
		++*runs;
		if (sum_s + rest_s > most_s)
			return INFINITY;
	}
	return sum_s;
}

/* The latest of three in one of the samples. */
static int pick_microbatch(struct trials *t)
{
	const struct fast_simulate *e = &t->simulations[rng_below(&t->moves.rng, (uint32_t)t->n)];
	uint32_t n = (uint32_t)t->p->n_mb;
	int latest = (int)rng_below(&t->moves.rng, n);

	for (int i = 0; i < 2; i++) {
		int j = (int)rng_below(&t->moves.rng, n);

		latest = e->finish_s[j] > e->finish_s[latest] ? j : latest;
	}
	return latest;
}

static bool propose_move(struct trials *t)
{
	for (int i = 0; i < TRIES; i++) {
		if (moves_propose(&t->moves, pick_microbatch(t)))
			return true;
	}
	return false;
}

static void try_step(struct trials *t, double temperature_s, int64_t *runs)
{
	double most_s = t->sum_s - temperature_s * log(1 - rng_uniform(&t->moves.rng)), sum_s;
	int n_touched;

	++*runs; /* a proposal that comes to nothing must not be free */
	if (!propose_move(t))
		return;
	n_touched = t->moves.n_touched;
	change_chains(t, n_touched);
	sum_s = try_all(t, most_s, runs);
	if (sum_s > most_s) {
		moves_undo(&t->moves);
		change_chains(t, n_touched); /* the journal still says which they were */
		return;
	}
	moves_keep(&t->moves);
	memcpy(t->time_s, t->tried_s, (size_t)t->n * sizeof(*t->time_s));
	t->sum_s = sum_s;
	if (sum_s < t->round_s) {
		t->round_s = sum_s;
		solution_copy(&t->round, &t->current, t->p);
	}
}

/* Begins at the best so far, with samples not used before. */
static void begin_round(struct trials *t, uint32_t round)
{
	for (int k = 0; k < t->n; k++)
		draw_factors(t->p, round * (uint32_t)t->n + (uint32_t)k, t->factors[k]);
	solution_copy(&t->current, &t->best, t->p);
	moves_refresh(&t->moves);
	run_all(t);
	t->round_s = t->sum_s;
	solution_copy(&t->round, &t->current, t->p);
}

static void end_round(struct trials *t)
{
	double mean_s = judge_mean_s(t, &t->round);

	if (mean_s < t->best_s) {
		t->best_s = mean_s;
		solution_copy(&t->best, &t->round, t->p);
	}
}

static void anneal_round(struct trials *t, struct progress *g)
{
	int size = (int)(FIRST_ROUND * fmax(1, t->p->n_mb / 30.0));
	bool over = false;

	t->best_s = judge_mean_s(t, &t->best);
	for (uint32_t round = 0; !over; round++) {
		begin_round(t, round);
		for (int i = 0; i < size && !(over = progress_over(g)); i++)
			try_step(t, t->sum_s * WARM * pow(COLD / WARM, (double)i / size),
			     &g->evaluations);
		end_round(t);
		size = (int)(size * ROUND_GROWTH);
	}
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int robust_expect(const struct cluster *c, const struct plan *p, double jitter, uint64_t seed,
		  int samples, struct robust_outcome *out, struct error *err)
{
	double *time_s = malloc((size_t)samples * sizeof(*time_s)), sum_s = 0;
	struct jitter noise = { .jitter = jitter, .seed = seed, .sample = REPORT_FROM };
	int n = 0, rc = time_s ? 0 : error_set(err, -ENOMEM, "out of memory");

	for (int k = 0; rc == 0 && k < samples; k++, noise.sample++) {
		struct simulation *s = NULL;

		rc = simulate_jittered(c, p, &noise, &s, err);
		if (rc == 0)
			sum_s += time_s[n++] = s->iteration_s;
		rc = rc == -EDEADLK ? 0 : rc;
		simulation_free(s);
	}
	if (rc == 0) {
		qsort(time_s, (size_t)n, sizeof(*time_s), by_value);
		*out = (struct robust_outcome){ .standstills = samples - n };
		if (n > 0) {
			out->mean_s = sum_s / n;
			out->p95_s = time_s[(int)ceil(0.95 * n) - 1];
		}
	}
	free(time_s);
	return rc;
}

/* The cluster with every node pinned where the plan has it. */
static struct cluster *pin_stages(const struct cluster *c, const struct plan *p)
{
	struct cluster *to = cluster_copy(c);

	for (int s = 0; to && s < p->n_stages; s++) {
		for (int i = p->stage_start[s]; i < p->stage_start[s + 1]; i++)
			to->nodes[p->assigned[i]].stage = s;
	}
	return to;
}

static int keep_history(struct progress *g, const struct plan *planned)
{
	size_t size = (size_t)planned->search.n_history * sizeof(*g->history);

	g->history = malloc(size + 1);
	if (!g->history)
		return -ENOMEM;
	memcpy(g->history, planned->search.history, size);
	g->n_history = planned->search.n_history;
	g->room = (size_t)g->n_history;
	g->evaluations = planned->search.evaluations;
	g->lower_bound_s = planned->predicted.lower_bound_s;
	return 0;
}

/* Anneals over the samples what was planned for the planned times. */
static int anneal_samples(const struct cluster *c, const struct plan_request *q,
			  const struct plan *planned, int64_t start_us, struct plan **out,
			  struct error *err)
{
	struct trials t = { 0 };
	struct progress g;
	struct problem p;
	int rc = problem_init(&p, c, q, err);

	if (rc != 0)
		return rc;
	progress_init(&g, &p, start_us);
	if (keep_history(&g, planned) != 0 || trials_init(&t, &p, planned) != 0)
		rc = error_set(err, -ENOMEM, "out of memory");
	if (rc == 0) {
		anneal_round(&t, &g);
		rc = progress_finish(&g, &t.best, err);
	}
	if (rc == 0)
		rc = progress_take(&g, out, err);
	trials_fini(&t);
	progress_fini(&g);
	problem_fini(&p);
	return rc;
}

int robust_search(const struct cluster *c, const struct plan_request *request,
		  struct plan **out, struct error *err)
{
	struct plan_request q = *request, first;
	int64_t start_us = q.clock_us ? q.clock_us(q.clock_arg) : 0;
	struct plan *planned = NULL, *plan = NULL;
	struct cluster *pinned;
	int rc;

	q.fifo = true;
	first = q;
	first.jitter = 0;
	first.budget_s *= PLANNED_SHARE;
	first.evaluations = (int64_t)((double)q.evaluations * PLANNED_SHARE) + (q.evaluations > 0);
	rc = plan_search(c, &first, &planned, err);
	if (rc != 0)
		return rc;
	pinned = pin_stages(c, planned);
	if (!pinned) {
		rc = error_set(err, -ENOMEM, "out of memory");
		goto free_planned;
	}
	q.path_length = planned->path_length;
	q.free_assignment = false;
	q.sync_limit_s = 0; /* the stages found keep it */
	q.from = planned;
	rc = anneal_samples(pinned, &q, planned, start_us, &plan, err);
	if (rc == 0) {
		struct plan_predicted *d = &plan->predicted;
		struct robust_outcome o;

		bool all = strategy_holds(REGIME_ALL_SAMPLES, plan->n_microbatches, c->n_nodes, c->n_stages);

		rc = robust_expect(pinned, plan, q.jitter, q.seed, all ? REPORT_SAMPLES : REPORT_SAMPLES / 5, &o,
				   err);
		d->jitter = q.jitter;
		d->expected_s = o.mean_s;
		d->p95_s = o.p95_s;
		d->standstills = o.standstills;
	}
	if (rc == 0)
		*out = plan;
	else
		plan_free(plan);
	cluster_free(pinned);
free_planned:
	plan_free(planned);
	return rc;
}
