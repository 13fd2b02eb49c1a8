#include "schedule/conflict_search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/engine.h"
#include "schedule/trips.h"

#define MOST_TRIPS 600
#define CANDIDATES 32
#define ENOUGH_SOLUTIONS 8
#define GOOD_ENOUGH 0.88
#define MOST_NODES 4000 /* of the tree in one phase */
#define PER_OVERRUN 0.01 /* of the cost, a visit */

enum forbids { FORBIDS_STAGE, FORBIDS_NODE, FORBIDS_TIME };

struct constraint {
	enum forbids kind;
	int agent, what; /* a stage, or a node */
	double from_s, to_s;
};

/* One node of the tree: its parent's constraints and its own. */
struct branch {
	struct branch *parent; /* borrowed; all live in one list until the end */
	struct branch *older;  /* that list */
	int n_own;
	struct constraint *own;
	int *trip;             /* (n_agents) index into the data node's trips */
	double *home_s;        /* (n_agents) when it is back, by its own timeline */
	double cost_s;
	int conflicts;
};

struct agent {
	int place;      /* of its data node in stage 0 */
	double start_s; /* of its first F */
};

struct cbs {
	const struct problem *p;
	struct solution *s;
	struct progress *g;
	struct trips trips;
	struct engine engine;
	int n_agents;
	struct agent *agents;
	int *agent_of;    /* (n_mb) */
	int *stage_cap;   /* (n_stages) agents that may visit */
	int repeats;      /* microbatches an agent stands for */
	struct branch *all;
	struct branch **open; /* heap */
	int n_open, room, expanded;
	struct solution trial;
	double first_s, best_s;
	/* For one agent, gathered from a branch up to the root. */
	uint64_t barred_stages;
	bool *barred;     /* (n_nodes) */
	int *visits;      /* (n_nodes or n_stages) */
	struct constraint *times; /* (n_times) */
	int n_times, times_room;
};

static const struct trip *trip_of(const struct cbs *c, const struct branch *b, int agent)
{
	return &c->trips.trips[(size_t)c->agents[agent].place * (size_t)c->trips.most +
			       (size_t)b->trip[agent]];
}

static bool before(const struct branch *a, const struct branch *b)
{
	return a->cost_s != b->cost_s ? a->cost_s < b->cost_s : a->conflicts < b->conflicts;
}

static int open_push(struct cbs *c, struct branch *b)
{
	int i = c->n_open;

	if (c->n_open == c->room) {
		int room = c->room ? 2 * c->room : 256;
		struct branch **more = realloc(c->open, (size_t)room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		c->open = more;
		c->room = room;
	}
	c->n_open++;
	for (; i > 0 && before(b, c->open[(i - 1) / 2]); i = (i - 1) / 2)
		c->open[i] = c->open[(i - 1) / 2];
	c->open[i] = b;
	return 0;
}

static struct branch *open_pop(struct cbs *c)
{
	struct branch *top = c->open[0], *last = c->open[--c->n_open];
	int i = 0;

	for (int child; (child = 2 * i + 1) < c->n_open; i = child) {
		if (child + 1 < c->n_open && before(c->open[child + 1], c->open[child]))
			child++;
		if (!before(c->open[child], last))
			break;
		c->open[i] = c->open[child];
	}
	c->open[i] = last;
	return top;
}

static struct branch *branch_new(struct cbs *c, struct branch *parent, int n_own)
{
	struct branch *b = calloc(1, sizeof(*b));
	size_t n = (size_t)c->n_agents;

	if (!b)
		return NULL;
	b->parent = parent;
	b->older = c->all;
	c->all = b;
	b->n_own = n_own;
	b->own = calloc((size_t)n_own + 1, sizeof(*b->own));
	b->trip = calloc(n, sizeof(*b->trip));
	b->home_s = calloc(n, sizeof(*b->home_s));
	if (!b->own || !b->trip || !b->home_s)
		return NULL; /* freed with the list */
	if (parent) {
		memcpy(b->trip, parent->trip, n * sizeof(*b->trip));
		memcpy(b->home_s, parent->home_s, n * sizeof(*b->home_s));
	}
	return b;
}

static void free_branches(struct cbs *c)
{
	while (c->all) {
		struct branch *b = c->all;

		c->all = b->older;
		free(b->own);
		free(b->trip);
		free(b->home_s);
		free(b);
	}
	free(c->open);
	c->open = NULL;
	c->n_open = c->room = 0;
}

static int gather(struct cbs *c, const struct branch *b, int agent)
{
	c->barred_stages = 0;
	c->n_times = 0;
	memset(c->barred, 0, (size_t)c->p->n_nodes * sizeof(*c->barred));
	for (; b; b = b->parent) {
		for (int i = 0; i < b->n_own; i++) {
			const struct constraint *k = &b->own[i];

			if (k->agent != agent)
				continue;
			if (k->kind == FORBIDS_STAGE)
				c->barred_stages |= (uint64_t)1 << k->what;
			else if (k->kind == FORBIDS_NODE)
				c->barred[k->what] = true;
			else if (c->n_times == c->times_room) {
				int room = 2 * c->times_room + 16;
				struct constraint *more = realloc(c->times, (size_t)room * sizeof(*more));

				if (!more)
					return -ENOMEM;
				c->times = more;
				c->times_room = room;
			}
			if (k->kind == FORBIDS_TIME)
				c->times[c->n_times++] = *k;
		}
	}
	return 0;
}

/* When a task that could start at t may start, with the times at which the node is taken. */
static double wait_for(const struct cbs *c, int node, double t, double duration)
{
	for (bool again = true; again;) {
		again = false;
		for (int i = 0; i < c->n_times; i++) {
			const struct constraint *k = &c->times[i];

			if (k->what == node && t < k->to_s && t + duration > k->from_s) {
				t = k->to_s;
				again = true;
			}
		}
	}
	return t;
}

/* Agents of one wave that a node may see. */
static int node_cap(const struct cbs *c, int v)
{
	int cap = c->p->c->nodes[v].memory;

	if (c->repeats == 1 && cap > 0)
		cap *= (c->p->c->microbatches_per_data_node + cap - 1) / cap;
	return cap;
}

struct stay {
	int agent, node;
	double from_s, to_s;
};

/* Walks a trip under the gathered constraints; stays (2 * length + 1) may be NULL. */
static double walk(const struct cbs *c, int agent, const int *path, struct stay *stays)
{
	const struct problem *p = c->p;
	double t = c->agents[agent].start_s;
	int steps = 2 * p->length + 1;

	for (int s = 0; s < steps; s++) {
		int hop = s < p->length ? s : s == p->length ? 0 : 2 * p->length - s;
		int next = s + 1 < p->length ? s + 1 : s + 1 == p->length ? 0 : 2 * p->length - s - 1;
		const struct cluster_node *n = &p->c->nodes[path[hop]];
		double duration = s < p->length ? n->forward_s
						: s == p->length ? n->loss_s : n->backward_s;
		double start = wait_for(c, path[hop], t, duration);

		t = start + duration;
		if (stays)
			stays[s] = (struct stay){ agent, path[hop], start, t };
		if (s + 1 < steps)
			t += p->delay[(size_t)path[hop] * (size_t)p->n_nodes + (size_t)path[next]];
	}
	return t;
}

/* The low level: the trip that is back first. False: none is left. */
static bool replan(struct cbs *c, struct branch *b, int agent)
{
	const struct problem *p = c->p;
	int place = c->agents[agent].place, found = -1;
	const struct trip *list = c->trips.trips + (size_t)place * (size_t)c->trips.most;
	double best = INFINITY;

	if (gather(c, b, agent) != 0)
		return false;
	for (int i = 0; i < c->trips.count[place]; i++) {
		bool barred = (list[i].stages & c->barred_stages) != 0;
		double home;

		if (c->agents[agent].start_s + list[i].seconds >= best)
			break;
		for (int h = 1; h < p->length && !barred; h++)
			barred = c->barred[list[i].path[h]];
		if (barred)
			continue;
		home = walk(c, agent, list[i].path, NULL);
		if (home < best) {
			best = home;
			found = i;
		}
	}
	b->trip[agent] = found;
	b->home_s[agent] = best;
	return found >= 0;
}

/* Visits beyond what stages, or nodes, take. */
static int overrun(struct cbs *c, const struct branch *b, enum forbids kind)
{
	int sum = 0, n = kind == FORBIDS_STAGE ? c->p->n_stages : c->p->n_nodes;

	memset(c->visits, 0, (size_t)n * sizeof(*c->visits));
	for (int a = 0; a < c->n_agents; a++) {
		const int *path = trip_of(c, b, a)->path;

		for (int h = 1; h < c->p->length; h++)
			c->visits[kind == FORBIDS_STAGE ? c->s->stage_of[path[h]] : path[h]]++;
	}
	for (int i = 0; i < n; i++) {
		int cap = kind == FORBIDS_STAGE ? c->stage_cap[i] : node_cap(c, i);

		sum += c->visits[i] > cap ? c->visits[i] - cap : 0;
	}
	return sum;
}

/* The slowest agent, and a little for each visit too many, so that the search goes deep. */
static void sum_up(struct cbs *c, struct branch *b, enum forbids kind)
{
	b->cost_s = 0;
	b->conflicts = overrun(c, b, kind);
	for (int a = 0; a < c->n_agents; a++)
		b->cost_s = fmax(b->cost_s, b->home_s[a]);
	b->cost_s *= 1 + PER_OVERRUN * b->conflicts;
}

/* Agents whose trip shows `stage` (or node, when stage < 0), quickest first, into who. */
static int visitors(const struct cbs *c, const struct branch *b, int stage, int node, int *who)
{
	int n = 0;

	for (int a = 0; a < c->n_agents; a++) {
		const struct trip *t = trip_of(c, b, a);
		bool here = stage >= 0 && (t->stages >> stage & 1);
		int at;

		for (int h = 1; stage < 0 && h < c->p->length; h++)
			here = here || t->path[h] == node;
		if (!here)
			continue;
		for (at = n++; at > 0 && b->home_s[who[at - 1]] > b->home_s[a]; at--)
			who[at] = who[at - 1];
		who[at] = a;
	}
	return n;
}

/* Is there a trip left for the agent when it may not visit `what` either? */
static bool can_turn(struct cbs *c, const struct branch *b, int agent, enum forbids kind, int what)
{
	int place = c->agents[agent].place;
	const struct trip *list = c->trips.trips + (size_t)place * (size_t)c->trips.most;

	if (gather(c, b, agent) != 0)
		return false;
	if (kind == FORBIDS_STAGE)
		c->barred_stages |= (uint64_t)1 << what;
	else
		c->barred[what] = true;
	for (int i = 0; i < c->trips.count[place]; i++) {
		bool barred = (list[i].stages & c->barred_stages) != 0;

		for (int h = 1; h < c->p->length && !barred; h++)
			barred = c->barred[list[i].path[h]];
		if (!barred)
			return true;
	}
	return false;
}

/* A child for each of up to `ways` choices of `excess` agents among the n of who: the quickest,
 * then with the last of them replaced by the next ones. */
static int turn_away(struct cbs *c, struct branch *b, enum forbids kind, int what,
		     int *who, int n, int excess, int ways)
{
	int able = 0;

	for (int i = 0; i < n; i++) {
		if (can_turn(c, b, who[i], kind, what))
			who[able++] = who[i];
	}
	n = able;
	for (int way = 0; way < ways && excess + way <= n; way++) {
		struct branch *child = branch_new(c, b, excess);
		bool possible = child != NULL;

		if (!child || !child->home_s)
			return -ENOMEM;
		for (int i = 0; i < excess; i++)
			child->own[i] = (struct constraint){ .kind = kind, .what = what,
				.agent = who[i + 1 < excess ? i : i + way] };
		for (int i = 0; i < excess && possible; i++)
			possible = replan(c, child, child->own[i].agent);
		if (!possible)
			continue;
		sum_up(c, child, kind);
		if (open_push(c, child) != 0)
			return -ENOMEM;
	}
	return 0;
}

/* The most overrun stage, with its visitors; -1: exposure is right. */
static int overrun_stage(const struct cbs *c, const struct branch *b, int *who, int *n)
{
	int worst = -1, most = 0;

	for (int s = 1; s < c->p->n_stages; s++) {
		int count = visitors(c, b, s, -1, who);

		if (count - c->stage_cap[s] > most) {
			most = count - c->stage_cap[s];
			worst = s;
		}
	}
	if (worst >= 0)
		*n = visitors(c, b, worst, -1, who);
	return worst;
}

static int overrun_node(const struct cbs *c, const struct branch *b, int *who, int *n)
{
	for (int v = 0; v < c->p->n_nodes; v++) {
		int cap = node_cap(c, v);

		if (c->s->stage_of[v] <= 0)
			continue;
		*n = visitors(c, b, -1, v, who);
		if (*n > cap)
			return v;
	}
	return -1;
}

static bool tree_is_over(const struct cbs *c)
{
	return c->n_open == 0 || c->expanded > MOST_NODES || progress_over(c->g);
}

/* Phase 1. Candidates keep exactly the stages they have. */
static int settle_exposure(struct cbs *c, struct branch **candidates, int *n_candidates, int *who)
{
	int n = 0, rc = 0;

	c->expanded = 0;
	while (rc == 0 && *n_candidates < CANDIDATES && !tree_is_over(c)) {
		struct branch *b = open_pop(c);
		int stage = overrun_stage(c, b, who, &n);

		c->expanded++;
		if (stage < 0)
			candidates[(*n_candidates)++] = b;
		else
			rc = turn_away(c, b, FORBIDS_STAGE, stage, who, n, n - c->stage_cap[stage], 3);
	}
	c->n_open = 0;
	return rc;
}

/* The agents' stages as they are, forbidding all others. */
static struct branch *fix_stages(struct cbs *c, struct branch *b, const uint64_t *stages)
{
	struct branch *fixed = branch_new(c, b, c->n_agents * c->p->n_stages);
	int n = 0;

	if (!fixed || !fixed->home_s)
		return NULL;
	for (int a = 0; a < c->n_agents; a++) {
		for (int s = 1; s < c->p->n_stages; s++) {
			if (!(stages[a] >> s & 1))
				fixed->own[n++] = (struct constraint){ .kind = FORBIDS_STAGE, .agent = a,
								       .what = s };
		}
	}
	fixed->n_own = n;
	for (int a = 0; a < c->n_agents; a++) {
		if (!replan(c, fixed, a))
			return NULL;
	}
	sum_up(c, fixed, FORBIDS_NODE);
	return fixed;
}

static void take_paths(struct cbs *c, const struct branch *b)
{
	size_t length = (size_t)c->p->length;

	for (int mb = 0; mb < c->p->n_mb; mb++)
		memcpy(c->trial.path + (size_t)mb * length,
		       trip_of(c, b, c->agent_of[mb])->path, length * sizeof(int));
}

/* Times a branch by the execution model, and keeps it if it is the best. */
static int judge(struct cbs *c, const struct branch *b, double *seconds, struct error *err)
{
	take_paths(c, b);
	engine_set_paths(&c->engine, &c->trial);
	engine_run(&c->engine, INFINITY);
	c->g->evaluations++;
	*seconds = c->engine.makespan_s;
	if (c->engine.makespan_s >= c->best_s)
		return 0;
	if (isinf(c->first_s))
		c->first_s = c->engine.makespan_s;
	c->best_s = c->engine.makespan_s;
	solution_copy(c->s, &c->trial, c->p);
	return progress_note(c->g, c->s, c->best_s, err);
}

/* Phase 2: the best candidate whose nodes hold what visits them; *found NULL if there is none. */
static int settle_memory(struct cbs *c, struct branch **found, int *who)
{
	int n = 0, rc = 0;

	*found = NULL;
	c->expanded = 0;
	while (rc == 0 && !tree_is_over(c)) {
		struct branch *b = open_pop(c);
		int v = overrun_node(c, b, who, &n), cap;

		c->expanded++;
		if (v < 0) {
			*found = b;
			return 0;
		}
		cap = node_cap(c, v);
		rc = turn_away(c, b, FORBIDS_NODE, v, who, n, n - cap, 2);
	}
	return rc;
}

static int by_node_and_time(const void *a, const void *b)
{
	const struct stay *x = a, *y = b;

	if (x->node != y->node)
		return x->node - y->node;
	return (x->from_s > y->from_s) - (x->from_s < y->from_s);
}

/* The first two stays that overlap (by time), into a and b; false: none do. */
static bool first_collision(struct cbs *c, const struct branch *b, struct stay *stays,
			    struct stay *one, struct stay *other, int *conflicts)
{
	int steps = 2 * c->p->length + 1, n = c->n_agents * steps;
	double first = INFINITY;

	for (int a = 0; a < c->n_agents; a++) {
		gather(c, b, a);
		walk(c, a, trip_of(c, b, a)->path, stays + (size_t)a * (size_t)steps);
	}
	qsort(stays, (size_t)n, sizeof(*stays), by_node_and_time);
	*conflicts = 0;
	for (int i = 0; i + 1 < n; i++) {
		if (stays[i].node != stays[i + 1].node || stays[i].agent == stays[i + 1].agent ||
		    stays[i + 1].from_s >= stays[i].to_s)
			continue;
		++*conflicts;
		if (stays[i + 1].from_s < first) {
			first = stays[i + 1].from_s;
			*one = stays[i];
			*other = stays[i + 1];
		}
	}
	return *conflicts > 0;
}

/* waits: the agent that lets the other through. */
static int let_wait(struct cbs *c, struct branch *b, const struct stay *waits,
		    const struct stay *goes, struct error *err)
{
	struct branch *child = branch_new(c, b, 1);
	int rc;

	if (!child || !child->home_s)
		return error_set(err, -ENOMEM, "out of memory");
	child->own[0] = (struct constraint){ FORBIDS_TIME, waits->agent, waits->node, goes->from_s,
					     goes->to_s + c->p->c->dispatch_overhead_s };
	if (!replan(c, child, waits->agent))
		return 0;
	child->conflicts = b->conflicts;
	rc = judge(c, child, &child->cost_s, err);
	if (rc == 0 && child->cost_s < INFINITY && open_push(c, child) != 0)
		rc = error_set(err, -ENOMEM, "out of memory");
	return rc;
}

/* Phase 3. */
static int settle_collisions(struct cbs *c, struct error *err)
{
	struct stay *stays = calloc((size_t)c->n_agents * (2 * (size_t)c->p->length + 1),
				    sizeof(*stays));
	int solved = 0, rc = stays ? 0 : error_set(err, -ENOMEM, "out of memory");

	c->expanded = 0;
	while (rc == 0 && !tree_is_over(c) && solved < ENOUGH_SOLUTIONS &&
	       c->best_s > GOOD_ENOUGH * c->first_s) {
		struct branch *b = open_pop(c);
		struct stay one = { 0 }, other = { 0 };

		c->expanded++;
		if (!first_collision(c, b, stays, &one, &other, &b->conflicts)) {
			solved++;
			continue;
		}
		rc = let_wait(c, b, &other, &one, err);
		if (rc == 0)
			rc = let_wait(c, b, &one, &other, err);
	}
	free(stays);
	return rc;
}

/* Who the agents are: with equal waves, the first; else every microbatch. */
static void name_agents(struct cbs *c)
{
	const struct problem *p = c->p;
	int each = p->sizes[0] ? p->n_mb / p->sizes[0] : 1, wave = each;
	bool equal = each * p->sizes[0] == p->n_mb;

	for (int i = 0; i < p->sizes[0]; i++) {
		int memory = p->c->nodes[c->s->members[i]].memory;

		wave = memory < wave ? memory : wave;
	}
	equal = equal && wave > 0 && each % wave == 0 &&
		(p->n_stages == 1 || (wave * p->sizes[0] * (p->length - 1)) % (p->n_stages - 1) == 0);
	c->repeats = equal ? each / wave : 1;
	c->n_agents = p->n_mb / c->repeats;
	for (int mb = 0, rank = 0; mb < p->n_mb; mb++) {
		int place = p->mb_slot[mb], agent;

		rank = mb > 0 && place == p->mb_slot[mb - 1] ? rank + 1 : 0;
		agent = equal ? place * wave + rank % wave : mb;
		c->agent_of[mb] = agent;
		if (equal && rank >= wave)
			continue;
		c->agents[agent] = (struct agent){ place, rank *
			p->c->nodes[c->s->members[place]].forward_s };
	}
	for (int s = 1; s < p->n_stages; s++)
		c->stage_cap[s] = p->high[s] / c->repeats;
}

static int cbs_init(struct cbs *c, struct solution *s, const struct problem *p,
		    struct progress *g)
{
	int rc;

	*c = (struct cbs){ .p = p, .s = s, .g = g, .first_s = INFINITY, .best_s = INFINITY };
	c->agents = calloc((size_t)p->n_mb, sizeof(*c->agents));
	c->agent_of = calloc((size_t)p->n_mb, sizeof(*c->agent_of));
	c->stage_cap = calloc((size_t)p->n_stages, sizeof(*c->stage_cap));
	c->barred = calloc((size_t)p->n_nodes, sizeof(*c->barred));
	c->visits = calloc((size_t)(p->n_nodes + p->n_stages), sizeof(*c->visits));
	if (!c->agents || !c->agent_of || !c->stage_cap || !c->barred || !c->visits)
		return -ENOMEM;
	name_agents(c);
	rc = solution_init(&c->trial, p);
	if (rc == 0)
		solution_copy(&c->trial, s, p);
	if (rc == 0)
		rc = engine_init(&c->engine, p);
	return rc == 0 ? trips_init(&c->trips, p, s, MOST_TRIPS) : rc;
}

static void cbs_fini(struct cbs *c)
{
	free_branches(c);
	trips_fini(&c->trips);
	engine_fini(&c->engine);
	solution_fini(&c->trial);
	free(c->agents);
	free(c->agent_of);
	free(c->stage_cap);
	free(c->barred);
	free(c->visits);
	free(c->times);
}

/* Exact exposure: the caps hold, and no stage is left short. */
static bool exposure_is_right(const struct cbs *c, const struct branch *b, int *who)
{
	for (int s = 1; s < c->p->n_stages; s++) {
		if (visitors(c, b, s, -1, who) * c->repeats < c->p->low[s])
			return false;
	}
	return true;
}

/* Fixed candidates into the open list for the second phase. */
static int open_candidates(struct cbs *c, struct branch **candidates, int n, int *who)
{
	uint64_t *stages = calloc((size_t)c->n_agents, sizeof(*stages));
	int rc = stages ? 0 : -ENOMEM;

	for (int i = 0; rc == 0 && i < n; i++) {
		struct branch *fixed;

		if (!exposure_is_right(c, candidates[i], who))
			continue;
		for (int a = 0; a < c->n_agents; a++)
			stages[a] = trip_of(c, candidates[i], a)->stages;
		fixed = fix_stages(c, candidates[i], stages);
		if (fixed)
			rc = open_push(c, fixed);
	}
	free(stages);
	return rc;
}

static int run_phases(struct cbs *c, struct branch *root, bool collisions, int *who,
		      struct error *err)
{
	struct branch *candidates[CANDIDATES], *best = NULL;
	double seconds;
	int n = 0, rc = open_push(c, root);

	if (rc == 0)
		rc = settle_exposure(c, candidates, &n, who);
	if (rc == 0)
		rc = open_candidates(c, candidates, n, who);
	if (rc == 0)
		rc = settle_memory(c, &best, who);
	if (rc != 0)
		return error_set(err, rc, "out of memory");
	if (!best)
		return 0;
	rc = judge(c, best, &seconds, err);
	if (rc == 0 && collisions && seconds < INFINITY) {
		best->cost_s = seconds;
		if (open_push(c, best) != 0)
			return error_set(err, -ENOMEM, "out of memory");
		rc = settle_collisions(c, err);
	}
	return rc;
}

int conflict_search(struct solution *s, const struct problem *p, bool collisions,
		    struct progress *g, struct error *err)
{
	struct cbs c;
	struct branch *root = NULL;
	int *who = calloc((size_t)p->n_mb, sizeof(*who)), rc = cbs_init(&c, s, p, g);
	bool possible = true;

	if (rc == 0)
		root = branch_new(&c, NULL, 0);
	if (rc != 0 || !who || !root || !root->home_s) {
		rc = error_set(err, -ENOMEM, "out of memory");
		goto fini_cbs;
	}
	for (int a = 0; a < c.n_agents; a++)
		possible = replan(&c, root, a) && possible;
	if (possible) {
		sum_up(&c, root, FORBIDS_STAGE);
		rc = run_phases(&c, root, collisions, who, err);
	}
	if (rc == 0 && isinf(c.best_s)) { /* nothing found: the greedy solution it came with */
		engine_set_paths(&c.engine, s);
		engine_run(&c.engine, INFINITY);
		rc = progress_note(g, s, c.engine.makespan_s, err);
	}
fini_cbs:
	cbs_fini(&c);
	free(who);
	return rc;
}
