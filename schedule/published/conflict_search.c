#include "schedule/published/conflict_search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "schedule/published/conflict_tree.h"
#include "schedule/execution/fast_simulate.h"
#include "schedule/published/path_search.h"

/* Below, path_search.c finds each agent's path as if it were alone; above, a branch of the tree holds
 * the paths of all agents and what was forbidden to some. A branch with conflicts - more visits of a
 * stage or a node than it takes, two at a node at a time - is expanded into one child for each way to
 * forbid the conflict, whose agent is planned anew. Each child is timed by the simulation; the
 * shortest seen is the answer. Microbatches of later waves repeat their agent's path. */

#define CANDIDATES 32
#define ENOUGH_SOLUTIONS 8
#define GOOD_ENOUGH 0.88
#define MOST_NODES 10000 /* of the tree in one phase */
#define PER_OVERRUN 0.01 /* of the cost, a visit */

struct agent {
	int place;      /* of its data node in stage 0 */
	double start_s; /* of its first F */
};

struct cbs {
	const struct problem *p;
	struct solution *s;
	struct progress *g;
	struct arena arena; /* of what has no end of its own */
	struct path_search *paths;
	struct conflict_tree tree;
	struct fast_simulate simulation;
	int n_agents;
	struct agent *agents;
	int *agent_of;    /* (n_mb) */
	int *stage_cap;   /* (n_stages) agents that may visit */
	int repeats;      /* microbatches an agent stands for */
	int expanded;     /* branches of this phase */
	struct solution trial;
	double first_s, best_s;
	int *visits;      /* (n_nodes or n_stages) */
	int *company;     /* (n_nodes) visits by all agents but one */
	int spare[PLAN_MOST_PATH];
};

/* Agents of one wave that a node may see. */
static int node_cap(const struct cbs *c, int v)
{
	int cap = c->p->c->nodes[v].memory;

	if (c->repeats == 1 && cap > 0)
		cap *= (c->p->c->microbatches_per_data_node + cap - 1) / cap;
	return cap;
}

static int query_of(struct cbs *c, const struct branch *b, int agent, struct path_query *q)
{
	int rc = conflict_tree_gather(&c->tree, b, agent);

	*q = (struct path_query){
		.data_node = c->s->members[c->agents[agent].place],
		.start_s = c->agents[agent].start_s,
		.barred_stages = c->tree.barred_stages,
		.barred = c->tree.barred,
		.taken = c->tree.taken,
		.n_taken = c->tree.n_taken,
		.visits = c->company,
	};
	return rc;
}

/* The low level. False: no path is left. */
static bool replan_agent(struct cbs *c, struct branch *b, int agent)
{
	struct path_query q;

	memset(c->company, 0, (size_t)c->p->n_nodes * sizeof(*c->company));
	for (int a = 0; a < c->n_agents; a++) {
		for (int h = 1; a != agent && b->home_s[a] > 0 && h < c->p->length; h++)
			c->company[branch_path(&c->tree, b, a)[h]]++;
	}
	return query_of(c, b, agent, &q) == 0 &&
	       path_search_run(c->paths, &q, branch_path(&c->tree, b, agent), &b->home_s[agent]);
}

/* Visits beyond what stages, or nodes, take. */
static int count_overrun(struct cbs *c, const struct branch *b, enum forbids kind)
{
	int sum = 0, n = kind == FORBIDS_STAGE ? c->p->n_stages : c->p->n_nodes;

	memset(c->visits, 0, (size_t)n * sizeof(*c->visits));
	for (int a = 0; a < c->n_agents; a++) {
		const int *path = branch_path(&c->tree, b, a);

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
	b->conflicts = count_overrun(c, b, kind);
	for (int a = 0; a < c->n_agents; a++)
		b->cost_s = fmax(b->cost_s, b->home_s[a]);
	b->cost_s *= 1 + PER_OVERRUN * b->conflicts;
}

static bool is_visiting(const struct cbs *c, const int *path, enum forbids kind, int what)
{
	for (int h = 1; h < c->p->length; h++) {
		if ((kind == FORBIDS_STAGE ? c->s->stage_of[path[h]] : path[h]) == what)
			return true;
	}
	return false;
}

/* Agents that visit a stage or a node, quickest first, into who. */
static int find_visitors(const struct cbs *c, const struct branch *b, enum forbids kind, int what,
		    int *who)
{
	int n = 0;

	for (int a = 0; a < c->n_agents; a++) {
		int at;

		if (!is_visiting(c, branch_path(&c->tree, b, a), kind, what))
			continue;
		for (at = n++; at > 0 && b->home_s[who[at - 1]] > b->home_s[a]; at--)
			who[at] = who[at - 1];
		who[at] = a;
	}
	return n;
}

/* Is there a path left for the agent when it may not visit `what` either? */
static bool can_turn(struct cbs *c, const struct branch *b, int agent, enum forbids kind, int what)
{
	struct path_query q;
	double home_s;

	if (query_of(c, b, agent, &q) != 0)
		return false;
	q.n_taken = 0;
	if (kind == FORBIDS_STAGE)
		q.barred_stages |= (uint64_t)1 << what;
	else
		c->tree.barred[what] = true;
	return path_search_run(c->paths, &q, c->spare, &home_s);
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
		struct branch *child = branch_new(&c->tree, b, excess);
		bool possible = child != NULL;

		if (!child)
			return -ENOMEM;
		for (int i = 0; i < excess; i++)
			child->own[i] = (struct constraint){ .kind = kind, .what = what,
				.agent = who[i + 1 < excess ? i : i + way] };
		for (int i = 0; i < excess && possible; i++)
			possible = replan_agent(c, child, child->own[i].agent);
		if (!possible)
			continue;
		sum_up(c, child, kind);
		if (conflict_tree_push(&c->tree, child) != 0)
			return -ENOMEM;
	}
	return 0;
}

/* The most overrun stage, with its visitors; -1: exposure is right. */
static int overrun_stage(const struct cbs *c, const struct branch *b, int *who, int *n)
{
	int worst = -1, most = 0;

	for (int s = 1; s < c->p->n_stages; s++) {
		int count = find_visitors(c, b, FORBIDS_STAGE, s, who);

		if (count - c->stage_cap[s] > most) {
			most = count - c->stage_cap[s];
			worst = s;
		}
	}
	if (worst >= 0)
		*n = find_visitors(c, b, FORBIDS_STAGE, worst, who);
	return worst;
}

static int overrun_node(const struct cbs *c, const struct branch *b, int *who, int *n)
{
	for (int v = 0; v < c->p->n_nodes; v++) {
		int cap = node_cap(c, v);

		if (c->s->stage_of[v] <= 0)
			continue;
		*n = find_visitors(c, b, FORBIDS_NODE, v, who);
		if (*n > cap)
			return v;
	}
	return -1;
}

static bool tree_is_over(const struct cbs *c)
{
	return c->tree.n_open == 0 || c->expanded > MOST_NODES || progress_over(c->g);
}

/* Phase 1. Candidates keep exactly the stages they have. */
static int settle_exposure(struct cbs *c, struct branch **candidates, int *n_candidates, int *who)
{
	int n = 0, rc = 0;

	c->expanded = 0;
	while (rc == 0 && *n_candidates < CANDIDATES && !tree_is_over(c)) {
		struct branch *b = conflict_tree_pop(&c->tree);
		int stage = overrun_stage(c, b, who, &n);

		c->expanded++;
		if (stage < 0)
			candidates[(*n_candidates)++] = b;
		else
			rc = turn_away(c, b, FORBIDS_STAGE, stage, who, n, n - c->stage_cap[stage], 3);
	}
	c->tree.n_open = 0;
	return rc;
}

/* The agents' stages as they are, forbidding all others. */
static struct branch *fix_stages(struct cbs *c, struct branch *b, const uint64_t *stages)
{
	struct branch *fixed = branch_new(&c->tree, b, c->n_agents * c->p->n_stages);
	int n = 0;

	if (!fixed)
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
		if (!replan_agent(c, fixed, a))
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
		       branch_path(&c->tree, b, c->agent_of[mb]), length * sizeof(int));
}

/* Times a branch by the execution model, and keeps it if it is the best. */
static int judge_paths(struct cbs *c, const struct branch *b, double *seconds, struct error *err)
{
	take_paths(c, b);
	fast_simulate_set_paths(&c->simulation, &c->trial);
	fast_simulate_run(&c->simulation, INFINITY);
	c->g->evaluations++;
	*seconds = c->simulation.makespan_s;
	if (c->simulation.makespan_s >= c->best_s)
		return progress_tell(c->g, err);
	if (isinf(c->first_s))
		c->first_s = c->simulation.makespan_s;
	c->best_s = c->simulation.makespan_s;
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
		struct branch *b = conflict_tree_pop(&c->tree);
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

struct use {
	struct stay at;
	int agent;
};

static int by_node_and_time(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	if (x->at.node != y->at.node)
		return x->at.node - y->at.node;
	return (x->at.from_s > y->at.from_s) - (x->at.from_s < y->at.from_s);
}

/* The tasks of every agent, by node and time. uses: (n_agents * (2 * length + 1)). */
static int lay_out(struct cbs *c, const struct branch *b, struct use *uses)
{
	int steps = 2 * c->p->length + 1;
	struct stay stays[2 * PLAN_MOST_PATH + 1];

	for (int a = 0; a < c->n_agents; a++) {
		struct path_query q;
		int rc = query_of(c, b, a, &q);

		if (rc != 0)
			return rc;
		path_walk(c->p, &q, branch_path(&c->tree, b, a), stays);
		for (int i = 0; i < steps; i++)
			uses[a * steps + i] = (struct use){ stays[i], a };
	}
	qsort(uses, (size_t)(c->n_agents * steps), sizeof(*uses), by_node_and_time);
	return 0;
}

/* Of n uses laid out, where the first two in time overlap; -1: none do. */
static int first_collision(const struct use *uses, int n, int *conflicts)
{
	int first = -1;

	*conflicts = 0;
	for (int i = 0; i + 1 < n; i++) {
		if (uses[i].at.node != uses[i + 1].at.node || uses[i].agent == uses[i + 1].agent ||
		    uses[i + 1].at.from_s >= uses[i].at.to_s)
			continue;
		++*conflicts;
		if (first < 0 || uses[i + 1].at.from_s < uses[first + 1].at.from_s)
			first = i;
	}
	return first;
}

/* waits: the agent that lets the other through. */
static int let_wait(struct cbs *c, struct branch *b, const struct use *waits,
		    const struct use *goes, struct error *err)
{
	struct branch *child = branch_new(&c->tree, b, 1);
	int rc;

	if (!child)
		return error_set(err, -ENOMEM, "out of memory");
	child->own[0] = (struct constraint){ FORBIDS_TIME, waits->agent, waits->at.node, goes->at.from_s,
					     goes->at.to_s + c->p->c->dispatch_overhead_s };
	if (!replan_agent(c, child, waits->agent))
		return 0;
	child->conflicts = b->conflicts;
	rc = judge_paths(c, child, &child->cost_s, err);
	if (rc == 0 && child->cost_s < INFINITY && conflict_tree_push(&c->tree, child) != 0)
		rc = error_set(err, -ENOMEM, "out of memory");
	return rc;
}

/* Phase 3. */
static int settle_collisions(struct cbs *c, struct error *err)
{
	int n = c->n_agents * (2 * c->p->length + 1), solved = 0;
	struct use *uses = calloc((size_t)n, sizeof(*uses));
	int rc = uses ? 0 : error_set(err, -ENOMEM, "out of memory");

	c->expanded = 0;
	while (rc == 0 && !tree_is_over(c) && solved < ENOUGH_SOLUTIONS &&
	       c->best_s > GOOD_ENOUGH * c->first_s) {
		struct branch *b = conflict_tree_pop(&c->tree);
		int at = -1;

		c->expanded++;
		rc = lay_out(c, b, uses);
		if (rc == 0)
			at = first_collision(uses, n, &b->conflicts);
		else
			error_set(err, rc, "out of memory");
		if (rc == 0 && at < 0)
			solved++;
		if (at >= 0)
			rc = let_wait(c, b, &uses[at + 1], &uses[at], err);
		if (rc == 0 && at >= 0)
			rc = let_wait(c, b, &uses[at], &uses[at + 1], err);
	}
	free(uses);
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
	c->agents = arena_array(&c->arena, (size_t)p->n_mb, sizeof(*c->agents));
	c->agent_of = arena_array(&c->arena, (size_t)p->n_mb, sizeof(*c->agent_of));
	c->stage_cap = arena_array(&c->arena, (size_t)p->n_stages, sizeof(*c->stage_cap));
	c->company = arena_array(&c->arena, (size_t)p->n_nodes, sizeof(*c->company));
	c->visits = arena_array(&c->arena, (size_t)(p->n_nodes + p->n_stages), sizeof(*c->visits));
	c->paths = path_search_new(&c->arena, p, s);
	if (c->arena.failed)
		return -ENOMEM;
	name_agents(c);
	rc = solution_init(&c->trial, p);
	if (rc == 0)
		solution_copy(&c->trial, s, p);
	if (rc == 0)
		rc = fast_simulate_init(&c->simulation, p);
	if (rc == 0)
		rc = conflict_tree_init(&c->tree, c->n_agents, p->length, p->n_nodes);
	return rc;
}

static void cbs_fini(struct cbs *c)
{
	conflict_tree_fini(&c->tree);
	arena_free(&c->arena);
	fast_simulate_fini(&c->simulation);
	solution_fini(&c->trial);
}

/* Exact exposure: the caps hold, and no stage is left short. */
static bool exposure_is_right(const struct cbs *c, const struct branch *b, int *who)
{
	for (int s = 1; s < c->p->n_stages; s++) {
		if (find_visitors(c, b, FORBIDS_STAGE, s, who) * c->repeats < c->p->low[s])
			return false;
	}
	return true;
}

static uint64_t stages_of(const struct cbs *c, const int *path)
{
	uint64_t stages = 0;

	for (int h = 0; h < c->p->length; h++)
		stages |= (uint64_t)1 << c->s->stage_of[path[h]];
	return stages;
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
			stages[a] = stages_of(c, branch_path(&c->tree, candidates[i], a));
		fixed = fix_stages(c, candidates[i], stages);
		if (fixed)
			rc = conflict_tree_push(&c->tree, fixed);
	}
	free(stages);
	return rc;
}

static int run_phases(struct cbs *c, struct branch *root, bool collisions, int *who,
		      struct error *err)
{
	struct branch *candidates[CANDIDATES], *best = NULL;
	double seconds;
	int n = 0, rc = conflict_tree_push(&c->tree, root);

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
	rc = judge_paths(c, best, &seconds, err);
	if (rc == 0 && collisions && seconds < INFINITY) {
		best->cost_s = seconds;
		if (conflict_tree_push(&c->tree, best) != 0)
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
		root = branch_new(&c.tree, NULL, 0);
	if (rc != 0 || !who || !root) {
		rc = error_set(err, -ENOMEM, "out of memory");
		goto fini_cbs;
	}
	for (int a = 0; a < c.n_agents; a++)
		possible = replan_agent(&c, root, a) && possible;
	if (possible) {
		sum_up(&c, root, FORBIDS_STAGE);
		rc = run_phases(&c, root, collisions, who, err);
	}
	if (rc == 0 && isinf(c.best_s)) { /* nothing found: the greedy solution it came with */
		fast_simulate_set_paths(&c.simulation, s);
		fast_simulate_run(&c.simulation, INFINITY);
		rc = progress_note(g, s, c.simulation.makespan_s, err);
	}
fini_cbs:
	cbs_fini(&c);
	free(who);
	return rc;
}
