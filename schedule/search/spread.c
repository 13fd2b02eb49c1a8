/* Spreads the microbatches of a plan over many sub-networks.
 *
 * A random walk begins with the plan and takes the moves of moves.h. It weighs the iteration time
 * against the crowding: for each sub-network, the squared number of microbatches that train it,
 * summed over all sub-networks. The crowding is lowest if all possible sub-networks are trained
 * equally often. The result is the solution with the lowest crowding among those within the limit
 * of time. */
#include "schedule/search/spread.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "schedule/improve/fast_simulate.h"
#include "schedule/execution/simulate.h"
#include "schedule/improve/moves.h"
#include "schedule/improve/timetable.h"
#include "schedule/problem/problem.h"
#include "schedule/problem/progress.h"

/* An iteration, with its sums, takes at most this many times as long as in the first plan. */
#define MOST_TIMES 1.02
#define STREAM 16 /* number of the stream of random numbers */
/* The two temperatures of the walk. A step that raises the crowding by CROWDING, or the time by the
 * share TIME of limit_s, is accepted with probability 1/e. With a CROWDING of 4 the walk often
 * stays in the sub-networks of the first plan. */
#define CROWDING 0.25
#define TIME 0.001

struct walk {
	const struct problem *p;
	struct solution s;    /* the present solution */
	/* The solution with the lowest crowding so far; if several have the same crowding, the
	 * quickest of them. */
	struct solution best;
	bool is_found;        /* best has a solution */
	struct moves moves;
	struct timetable table;
	struct fast_simulate simulation;
	double sync_s[CLUSTER_MOST_STAGES]; /* array of n_stages: seconds of each stage's sum */
	double seconds, least_s;            /* iteration times of s and of best, with their sums */
	double limit_s;                     /* largest time that a result may have */
	stage_set *sets; /* array of n_mb: sub-network that each microbatch of s trains */
	/* The crowding of s and of best, minus the crowding of the first plan. The crowding is the
	 * sum, over the sub-networks, of the squared number of microbatches that train each. */
	long crowding, least;
};

/* Returns the predicted seconds of an iteration with its sums. */
static double plan_seconds(const struct plan *p)
{
	return p->predicted.iteration_s + plan_visible_sync_s(p);
}

/* Writes the set of stages that each microbatch visits to sets (n_microbatches entries). */
static void list_sets(const struct plan *p, stage_set *sets)
{
	int n_nodes = 0, *stage_of;

	for (int i = 0; i < p->stage_start[p->n_stages]; i++)
		n_nodes = p->assigned[i] >= n_nodes ? p->assigned[i] + 1 : n_nodes;
	stage_of = alloc_array((size_t)n_nodes, sizeof(*stage_of));
	plan_stages(p, n_nodes, stage_of);
	for (int m = 0; m < p->n_microbatches; m++) {
		sets[m] = 0;
		for (int h = 0; h < p->microbatches[m].length; h++)
			sets[m] |= (stage_set)1 << stage_of[p->microbatches[m].path[h]];
	}
	free(stage_of);
}

/* ---- the walk ---- */

static stage_set set_of(const struct walk *w, int mb)
{
	const int *path = solution_path(&w->s, w->p, mb);
	stage_set set = 0;

	for (int h = 0; h < problem_path_length(w->p, path); h++)
		set |= (stage_set)1 << w->s.stage_of[path[h]];
	return set;
}

static long count_set(const struct walk *w, stage_set set)
{
	long n = 0;

	for (int i = 0; i < w->p->n_mb; i++)
		n += w->sets[i] == set;
	return n;
}

/* Updates the sets of the first n touched microbatches. Returns the change of the crowding. */
static long update_sets(struct walk *w, int n)
{
	long change = 0;

	for (int i = 0; i < n; i++) {
		int mb = w->moves.touched[i];
		stage_set *set = &w->sets[mb], now = set_of(w, mb);

		if (now == *set)
			continue;
		change += 2 * (count_set(w, now) - count_set(w, *set) + 1);
		*set = now;
	}
	return change;
}

/* Returns the seconds of the simulation's last run, with its sums. */
static double seconds_of(const struct walk *w)
{
	double all_s = w->simulation.makespan_s, longest_s = 0, total_s = all_s;

	for (int stage = 0; stage < w->p->n_stages; stage++) {
		double free_s = 0;

		for (int i = w->s.start[stage]; i < w->s.start[stage + 1]; i++)
			free_s = fmax(free_s, w->simulation.nodes[w->s.members[i]].free_s);
		total_s = fmax(total_s,
			       free_s - w->p->c->dispatch_overhead_s + w->sync_s[stage]);
		longest_s = fmax(longest_s, w->sync_s[stage]);
	}
	return w->p->q->overlap_sync ? total_s : all_s + longest_s;
}

static void set_paths(struct walk *w, int n)
{
	for (int i = 0; i < n; i++) {
		int mb = w->moves.touched[i];

		fast_simulate_set_path(&w->simulation, mb, solution_path(&w->s, w->p, mb));
	}
}

/* Simulates s. Returns false if its iteration takes longer than limit_s. */
static bool run_within(struct walk *w, double limit_s)
{
	return fast_simulate_run(&w->simulation, limit_s) && seconds_of(w) <= limit_s;
}

static void take_back(struct walk *w, int n)
{
	moves_undo(&w->moves);
	set_paths(w, n);
	update_sets(w, n);
}

/* Makes one proposal. As in annealing, a random threshold is drawn first. A rise in crowding uses
 * up a part of the threshold. The rest of the threshold limits the rise in time. */
static void step(struct walk *w)
{
	struct rng *rng = &w->moves.rng;
	double room;
	int n;
	long change;

	if (!moves_propose(&w->moves, (int)rng_below(rng, (uint32_t)w->p->n_mb)))
		return;
	n = w->moves.n_touched;
	change = update_sets(w, n);
	set_paths(w, n);
	room = -log(1 - rng_uniform(rng)) - (double)change / CROWDING;
	if (!run_within(w, w->seconds + room * w->limit_s * TIME)) {
		take_back(w, n);
		return;
	}
	moves_keep(&w->moves);
	timetable_fill(&w->table, &w->simulation);
	w->crowding += change;
	w->seconds = seconds_of(w);
	if (w->seconds > w->limit_s || w->crowding > w->least ||
	    (w->crowding == w->least && w->seconds >= w->least_s))
		return;
	w->is_found = true;
	w->least = w->crowding;
	w->least_s = w->seconds;
	solution_copy(&w->best, &w->s, w->p);
}

/* Sets s to the solution that a plan of this problem describes. */
static void read_plan(struct solution *s, const struct problem *p, const struct plan *plan)
{
	size_t starts = (size_t)p->n_stages + 1, n = (size_t)plan->stage_start[p->n_stages];

	plan_stages(plan, p->n_nodes, s->stage_of);
	memcpy(s->start, plan->stage_start, starts * sizeof(*s->start));
	memcpy(s->members, plan->assigned, n * sizeof(*s->members));
	for (int i = 0; i < p->n_mb; i++) {
		const struct plan_microbatch *mb = &plan->microbatches[i];

		for (int h = 0; h < p->length; h++)
			solution_path(s, p, i)[h] = h < mb->length ? mb->path[h] : -1;
	}
}

static void walk_init(struct walk *w, const struct problem *p, const struct plan *plan)
{
	struct rng rng;

	*w = (struct walk){ .p = p };
	rng_init_stream(&rng, p->q->seed, STREAM);
	solution_init(&w->s, p);
	solution_init(&w->best, p);
	read_plan(&w->s, p, plan);
	w->limit_s = plan_seconds(plan) * MOST_TIMES;
	for (int stage = 0; stage < p->n_stages; stage++)
		w->sync_s[stage] = simulate_stage_sync_s(p->c, plan, stage);
	w->sets = alloc_array((size_t)p->n_mb, sizeof(*w->sets));
	list_sets(plan, w->sets);
	timetable_init(&w->table, p);
	moves_init(&w->moves, p, &w->s, &w->table, NULL, rng);
	fast_simulate_init(&w->simulation, p);
	fast_simulate_set_paths(&w->simulation, &w->s);
}

static void walk_fini(struct walk *w)
{
	fast_simulate_fini(&w->simulation);
	moves_fini(&w->moves);
	timetable_fini(&w->table);
	solution_fini(&w->s);
	solution_fini(&w->best);
	free(w->sets);
}

/* Walks from a plan to the least crowded solution within the limit of time. *out gets the plan, to
 * be freed with plan_free; NULL: the walk found no better plan. */
static int find_least_crowded(const struct problem *p, const struct plan *plan, struct plan **out)
{
	const struct plan_request *q = p->q;
	struct progress g;
	struct walk w;
	int rc = 0;

	progress_init(&g, p, q->clock_us ? q->clock_us(q->clock_arg) : 0);
	g.lower_bound_s = plan->predicted.lower_bound_s;
	walk_init(&w, p, plan);
	*out = NULL;
	if (run_within(&w, w.limit_s)) {
		w.seconds = w.least_s = seconds_of(&w);
		timetable_fill(&w.table, &w.simulation);
		for (; !progress_over(&g); g.evaluations++)
			step(&w);
	}
	if (w.is_found)
		rc = progress_finish(&g, &w.best, NULL);
	if (rc == 0 && w.is_found)
		rc = progress_take(&g, out, NULL);
	walk_fini(&w);
	progress_fini(&g);
	return rc;
}

/* Returns a copy of the cluster, to be freed with cluster_free, in which each node is pinned to its
 * stage in the plan. Nodes that the plan excludes get no pin. */
static struct cluster *pin_nodes(const struct cluster *c, const struct plan *plan)
{
	struct cluster *pinned = cluster_copy(c);
	int *stage_of = alloc_array((size_t)c->n_nodes, sizeof(*stage_of));

	plan_stages(plan, c->n_nodes, stage_of);
	for (int i = 0; i < c->n_nodes; i++)
		pinned->nodes[i].stage = stage_of[i];
	free(stage_of);
	return pinned;
}

/* The problem of finding other paths for a plan whose nodes keep their stages */
struct pinned_problem {
	struct plan_request request;
	struct cluster *cluster; /* owned; nodes are pinned to their stages in the plan */
	struct problem problem;  /* borrows the request and the cluster */
};

static void pinned_fini(struct pinned_problem *a)
{
	problem_fini(&a->problem);
	cluster_free(a->cluster);
}

/* Returns false, with nothing to free, if the request does not fit the plan. */
static bool pinned_init(struct pinned_problem *a, const struct cluster *c,
			const struct plan_request *q, const struct plan *plan)
{
	*a = (struct pinned_problem){ .request = *q, .cluster = pin_nodes(c, plan) };
	a->request.free_assignment = false;
	a->request.sync_limit_s = 0;
	a->request.from = NULL;
	a->request.on_improvement = NULL;
	if (a->request.budget_s <= 0 && a->request.evaluations <= 0)
		a->request.budget_s = 1;
	if (problem_init(&a->problem, a->cluster, &a->request, NULL) != 0) {
		cluster_free(a->cluster);
		return false;
	}
	if (a->problem.n_mb == plan->n_microbatches)
		return true;
	pinned_fini(a);
	return false;
}

/* Gives the new plan the history of the first plan's search, and adds the evaluations and seconds
 * of the walk. */
static void add_walk(struct plan *spread, struct plan *first)
{
	struct plan_record walk = spread->search;

	spread->search = first->search;
	spread->search.evaluations += walk.evaluations;
	spread->search.elapsed_s += walk.elapsed_s;
	first->search = walk;
}

void spread_plan(const struct cluster *c, const struct plan_request *q, struct plan **plan)
{
	struct plan *spread = NULL;
	struct pinned_problem a;

	if (!pinned_init(&a, c, q, *plan))
		return;
	if (find_least_crowded(&a.problem, *plan, &spread) == 0 && spread) {
		add_walk(spread, *plan);
		plan_free(*plan);
		*plan = spread;
	}
	pinned_fini(&a);
}
