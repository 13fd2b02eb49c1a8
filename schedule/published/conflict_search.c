/* The high level of conflict-based search.
 *
 * The low level, path_search.c, finds the path of each agent as if it were alone. A branch of the
 * tree holds the paths of all agents, and the constraints of some agents. A branch with a
 * conflict gets one child for each way to resolve the conflict. In a child, some agents get a
 * constraint and a new path. The answer is the branch whose simulation is shortest. */
#include "schedule/published/conflict_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "schedule/published/conflict_tree.h"
#include "schedule/improve/fast_simulate.h"
#include "schedule/published/path_search.h"

#define CANDIDATES 32
#define ENOUGH_SOLUTIONS 8
#define GOOD_ENOUGH 0.88
#define MOST_NODES 10000 /* largest number of branches of the tree in one phase */
#define PER_OVERRUN 0.01 /* each surplus visit raises the cost of a branch by this share */

struct agent {
	int place;      /* index of the agent's data node in s->members */
	double start_s; /* start of the agent's first forward task */
};

struct cbs {
	const struct problem *p;
	struct solution *s;
	struct progress *g;
	struct arena arena; /* owns the paths and the arrays below */
	struct path_search *paths;
	struct conflict_tree tree;
	struct fast_simulate simulation;
	int n_agents;
	struct agent *agents;
	int *agent_of;    /* array of n_mb */
	int *stage_cap;   /* array of n_stages: number of agents that may visit each stage */
	int repeats;      /* number of microbatches that use the path of each agent */
	int expanded;     /* number of branches expanded in this phase */
	struct solution trial;
	double first_s, best_s;
	int *visits;  /* array of n_nodes + n_stages: numbers of visits of nodes or stages */
	/* Array of n_nodes: number of visits by all agents except the agent that gets a path. */
	int *company;
	int spare[PLAN_MOST_PATH];
};

/* Returns the number of agents that may visit a node: its slots or, if every microbatch is an
 * agent, its slots times the number of waves. */
static int node_cap(const struct cbs *c, int v)
{
	int cap = c->p->c->nodes[v].memory;

	if (c->repeats == 1 && cap > 0)
		cap *= (c->p->c->microbatches_per_data_node + cap - 1) / cap;
	return cap;
}

static void make_query(struct cbs *c, const struct branch *b, int agent, struct path_query *q)
{
	conflict_tree_gather(&c->tree, b, agent);
	*q = (struct path_query){
		.data_node = c->s->members[c->agents[agent].place],
		.start_s = c->agents[agent].start_s,
		.barred_stages = c->tree.barred_stages,
		.barred = c->tree.barred,
		.taken = c->tree.taken,
		.n_taken = c->tree.n_taken,
		.visits = c->company,
	};
}

/* Runs the low level for an agent. Returns false if its constraints leave no path. */
static bool replan_agent(struct cbs *c, struct branch *b, int agent)
{
	struct path_query q;

	memset(c->company, 0, (size_t)c->p->n_nodes * sizeof(*c->company));
	for (int a = 0; a < c->n_agents; a++) {
		for (int h = 1; a != agent && b->home_s[a] > 0 && h < c->p->length; h++)
			c->company[branch_path(&c->tree, b, a)[h]]++;
	}
	make_query(c, b, agent, &q);
	return path_search_run(c->paths, &q, branch_path(&c->tree, b, agent), &b->home_s[agent]);
}

/* Returns the number of surplus visits of stages, or of nodes: visits beyond the number that is
 * allowed. */
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

/* Sets the cost of a branch: the time of the slowest agent, plus a little for each surplus visit.
 * Branches with fewer surplus visits thus come first. */
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

/* Fills `agents` with the agents that visit the stage or node `what`, quickest first. Returns their
 * number. */
static int find_visitors(const struct cbs *c, const struct branch *b, enum forbids kind, int what,
			 int *agents)
{
	int n = 0;

	for (int a = 0; a < c->n_agents; a++) {
		int at;

		if (!is_visiting(c, branch_path(&c->tree, b, a), kind, what))
			continue;
		for (at = n++; at > 0 && b->home_s[agents[at - 1]] > b->home_s[a]; at--)
			agents[at] = agents[at - 1];
		agents[at] = a;
	}
	return n;
}

/* Returns true if the agent has a path that keeps its constraints and avoids the stage or node
 * `what`. */
static bool can_avoid(struct cbs *c, const struct branch *b, int agent, enum forbids kind,
		      int what)
{
	struct path_query q;
	double home_s;

	make_query(c, b, agent, &q);
	q.n_taken = 0;
	if (kind == FORBIDS_STAGE)
		q.barred_stages |= (uint64_t)1 << what;
	else
		c->tree.barred[what] = true;
	return path_search_run(c->paths, &q, c->spare, &home_s);
}

/* Adds at most `choices` children, each of which forbids the stage or node `what` to `excess` of
 * the n agents. Every child forbids it to the excess - 1 quickest agents. The first child also
 * forbids it to the next quickest agent, the second child to the agent after that, and so on. */
static void add_children(struct cbs *c, struct branch *b, enum forbids kind, int what,
			 int *agents, int n, int excess, int choices)
{
	int able = 0;

	for (int i = 0; i < n; i++) {
		if (can_avoid(c, b, agents[i], kind, what))
			agents[able++] = agents[i];
	}
	n = able;
	for (int choice = 0; choice < choices && excess + choice <= n; choice++) {
		struct branch *child = branch_new(&c->tree, b, excess);
		bool possible = true;

		for (int i = 0; i < excess; i++)
			child->own[i] = (struct constraint){ .kind = kind, .what = what,
				.agent = agents[i + 1 < excess ? i : i + choice] };
		for (int i = 0; i < excess && possible; i++)
			possible = replan_agent(c, child, child->own[i].agent);
		if (!possible)
			continue;
		sum_up(c, child, kind);
		conflict_tree_push(&c->tree, child);
	}
}

/* Finds the stage that has the most visits above its limit, and lists its visitors. -1: no stage
 * has too many visits. */
static int overrun_stage(const struct cbs *c, const struct branch *b, int *agents, int *n)
{
	int worst = -1, most = 0;

	for (int s = 1; s < c->p->n_stages; s++) {
		int count = find_visitors(c, b, FORBIDS_STAGE, s, agents);

		if (count - c->stage_cap[s] > most) {
			most = count - c->stage_cap[s];
			worst = s;
		}
	}
	if (worst >= 0)
		*n = find_visitors(c, b, FORBIDS_STAGE, worst, agents);
	return worst;
}

static int overrun_node(const struct cbs *c, const struct branch *b, int *agents, int *n)
{
	for (int v = 0; v < c->p->n_nodes; v++) {
		int cap = node_cap(c, v);

		if (c->s->stage_of[v] <= 0)
			continue;
		*n = find_visitors(c, b, FORBIDS_NODE, v, agents);
		if (*n > cap)
			return v;
	}
	return -1;
}

static bool tree_is_over(const struct cbs *c)
{
	return c->tree.n_open == 0 || c->expanded > MOST_NODES || progress_over(c->g);
}

/* Phase 1: removes surplus visits of stages. The candidates are the branches in which no stage has
 * surplus visits. Returns their number. */
static int settle_exposure(struct cbs *c, struct branch **candidates, int *agents)
{
	int n_candidates = 0, n = 0;

	c->expanded = 0;
	while (n_candidates < CANDIDATES && !tree_is_over(c)) {
		struct branch *b = conflict_tree_pop(&c->tree);
		int stage = overrun_stage(c, b, agents, &n);

		c->expanded++;
		if (stage < 0)
			candidates[n_candidates++] = b;
		else
			add_children(c, b, FORBIDS_STAGE, stage, agents, n,
				     n - c->stage_cap[stage], 3);
	}
	c->tree.n_open = 0;
	return n_candidates;
}

/* Makes a child that forbids each agent all stages except those that it visits now. NULL: some
 * agent has no path. */
static struct branch *fix_stages(struct cbs *c, struct branch *b, const uint64_t *stages)
{
	struct branch *fixed = branch_new(&c->tree, b, c->n_agents * c->p->n_stages);
	int n = 0;

	for (int a = 0; a < c->n_agents; a++) {
		for (int s = 1; s < c->p->n_stages; s++) {
			if (!(stages[a] >> s & 1))
				fixed->own[n++] = (struct constraint){ .kind = FORBIDS_STAGE,
								       .agent = a, .what = s };
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

/* Simulates the paths of a branch with the execution model, and keeps them if they are the best so
 * far. */
static int judge_paths(struct cbs *c, const struct branch *b, double *seconds, struct error *err)
{
	take_paths(c, b);
	fast_simulate_set_paths(&c->simulation, &c->trial);
	fast_simulate_run(&c->simulation, INFINITY);
	c->g->evaluations++;
	*seconds = c->simulation.makespan_s;
	if (c->simulation.makespan_s >= c->best_s)
		return progress_announce(c->g, err);
	if (isinf(c->first_s))
		c->first_s = c->simulation.makespan_s;
	c->best_s = c->simulation.makespan_s;
	solution_copy(c->s, &c->trial, c->p);
	return progress_note(c->g, c->s, c->best_s, err);
}

/* Phase 2: returns the cheapest candidate in which no node has more visitors than it can hold.
 * NULL: none was found. */
static struct branch *settle_memory(struct cbs *c, int *agents)
{
	int n = 0;

	c->expanded = 0;
	while (!tree_is_over(c)) {
		struct branch *b = conflict_tree_pop(&c->tree);
		int v = overrun_node(c, b, agents, &n);

		c->expanded++;
		if (v < 0)
			return b;
		add_children(c, b, FORBIDS_NODE, v, agents, n, n - node_cap(c, v), 2);
	}
	return NULL;
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

/* Lists the tasks of all agents, ordered by node and time. uses: array of n_agents * (2 * length +
 * 1). */
static void lay_out(struct cbs *c, const struct branch *b, struct use *uses)
{
	int steps = 2 * c->p->length + 1;
	struct stay stays[2 * PLAN_MOST_PATH + 1];

	for (int a = 0; a < c->n_agents; a++) {
		struct path_query q;

		make_query(c, b, a, &q);
		path_walk(c->p, c->s->work, &q, branch_path(&c->tree, b, a), stays);
		for (int i = 0; i < steps; i++)
			uses[a * steps + i] = (struct use){ stays[i], a };
	}
	qsort(uses, (size_t)(c->n_agents * steps), sizeof(*uses), by_node_and_time);
}

/* Finds the earliest two tasks of different agents that overlap on a node. Returns the index of the
 * first of the two; -1: none overlap. *conflicts gets the number of overlaps. */
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

/* Adds a child in which the agent of the task `waits` must not use the node during the task
 * `goes`. */
static int add_wait(struct cbs *c, struct branch *b, const struct use *waits,
		    const struct use *goes, struct error *err)
{
	struct branch *child = branch_new(&c->tree, b, 1);
	int rc;

	child->own[0] = (struct constraint){ FORBIDS_TIME, waits->agent, waits->at.node,
					     goes->at.from_s,
					     goes->at.to_s + c->p->c->dispatch_overhead_s };
	if (!replan_agent(c, child, waits->agent))
		return 0;
	child->conflicts = b->conflicts;
	rc = judge_paths(c, child, &child->cost_s, err);
	if (rc == 0 && child->cost_s < INFINITY)
		conflict_tree_push(&c->tree, child);
	return rc;
}

/* Phase 3: resolves the collisions. */
static int settle_collisions(struct cbs *c, struct error *err)
{
	int n = c->n_agents * (2 * c->p->length + 1), solved = 0, rc = 0;
	struct use *uses = alloc_array((size_t)n, sizeof(*uses));

	c->expanded = 0;
	while (rc == 0 && !tree_is_over(c) && solved < ENOUGH_SOLUTIONS &&
	       c->best_s > GOOD_ENOUGH * c->first_s) {
		struct branch *b = conflict_tree_pop(&c->tree);
		int at;

		c->expanded++;
		lay_out(c, b, uses);
		at = first_collision(uses, n, &b->conflicts);
		if (at < 0)
			solved++;
		if (at >= 0)
			rc = add_wait(c, b, &uses[at + 1], &uses[at], err);
		if (rc == 0 && at >= 0)
			rc = add_wait(c, b, &uses[at], &uses[at + 1], err);
	}
	free(uses);
	return rc;
}

/* Chooses the agents: the microbatches of the first wave if every later wave can repeat their
 * paths, else all microbatches. */
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
		(p->n_stages == 1 ||
		 (wave * p->sizes[0] * (p->length - 1)) % (p->n_stages - 1) == 0);
	c->repeats = equal ? each / wave : 1;
	c->n_agents = p->n_mb / c->repeats;
	for (int mb = 0, rank = 0; mb < p->n_mb; mb++) {
		int place = p->mb_slot[mb], agent;

		rank = mb > 0 && place == p->mb_slot[mb - 1] ? rank + 1 : 0;
		agent = equal ? place * wave + rank % wave : mb;
		c->agent_of[mb] = agent;
		if (equal && rank >= wave)
			continue;
		c->agents[agent] = (struct agent){
			place, rank * problem_forward_s(p, c->s->work, c->s->members[place])
		};
	}
	for (int s = 1; s < p->n_stages; s++)
		c->stage_cap[s] = p->high[s] / c->repeats;
}

static void cbs_init(struct cbs *c, struct solution *s, const struct problem *p,
		     struct progress *g)
{
	*c = (struct cbs){ .p = p, .s = s, .g = g, .first_s = INFINITY, .best_s = INFINITY };
	c->agents = arena_array(&c->arena, (size_t)p->n_mb, sizeof(*c->agents));
	c->agent_of = arena_array(&c->arena, (size_t)p->n_mb, sizeof(*c->agent_of));
	c->stage_cap = arena_array(&c->arena, (size_t)p->n_stages, sizeof(*c->stage_cap));
	c->company = arena_array(&c->arena, (size_t)p->n_nodes, sizeof(*c->company));
	c->visits = arena_array(&c->arena, (size_t)(p->n_nodes + p->n_stages), sizeof(*c->visits));
	c->paths = path_search_new(&c->arena, p, s);
	name_agents(c);
	solution_init(&c->trial, p);
	solution_copy(&c->trial, s, p);
	fast_simulate_init(&c->simulation, p);
	conflict_tree_init(&c->tree, c->n_agents, p->length, p->n_nodes);
}

static void cbs_fini(struct cbs *c)
{
	conflict_tree_fini(&c->tree);
	arena_free(&c->arena);
	fast_simulate_fini(&c->simulation);
	solution_fini(&c->trial);
}

/* Returns true if every stage has at least the visits that exposure demands. */
static bool has_equal_exposure(const struct cbs *c, const struct branch *b, int *agents)
{
	for (int s = 1; s < c->p->n_stages; s++) {
		if (find_visitors(c, b, FORBIDS_STAGE, s, agents) * c->repeats < c->p->low[s])
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

/* Puts the candidates in which every stage has enough visits into the heap for the second phase.
 * Each agent may then only visit the stages that it visits now. */
static void open_candidates(struct cbs *c, struct branch **candidates, int n, int *agents)
{
	uint64_t *stages = alloc_array((size_t)c->n_agents, sizeof(*stages));

	for (int i = 0; i < n; i++) {
		struct branch *fixed;

		if (!has_equal_exposure(c, candidates[i], agents))
			continue;
		for (int a = 0; a < c->n_agents; a++)
			stages[a] = stages_of(c, branch_path(&c->tree, candidates[i], a));
		fixed = fix_stages(c, candidates[i], stages);
		if (fixed)
			conflict_tree_push(&c->tree, fixed);
	}
	free(stages);
}

static int run_phases(struct cbs *c, struct branch *root, bool collisions, int *agents,
		      struct error *err)
{
	struct branch *candidates[CANDIDATES], *best;
	double seconds;
	int n, rc;

	conflict_tree_push(&c->tree, root);
	n = settle_exposure(c, candidates, agents);
	open_candidates(c, candidates, n, agents);
	best = settle_memory(c, agents);
	if (!best)
		return 0;
	rc = judge_paths(c, best, &seconds, err);
	if (rc == 0 && collisions && seconds < INFINITY) {
		best->cost_s = seconds;
		conflict_tree_push(&c->tree, best);
		rc = settle_collisions(c, err);
	}
	return rc;
}

int conflict_search(struct solution *s, const struct problem *p, bool collisions,
		    struct progress *g, struct error *err)
{
	struct cbs c;
	struct branch *root;
	int *agents = alloc_array((size_t)p->n_mb, sizeof(*agents)), rc = 0;
	bool possible = true;

	cbs_init(&c, s, p, g);
	root = branch_new(&c.tree, NULL, 0);
	for (int a = 0; a < c.n_agents; a++)
		possible = replan_agent(&c, root, a) && possible;
	if (possible) {
		sum_up(&c, root, FORBIDS_STAGE);
		rc = run_phases(&c, root, collisions, agents, err);
	}
	/* No better paths were found, so the given solution is the answer. */
	if (rc == 0 && isinf(c.best_s)) {
		fast_simulate_set_paths(&c.simulation, s);
		fast_simulate_run(&c.simulation, INFINITY);
		rc = progress_note(g, s, c.simulation.makespan_s, err);
	}
	cbs_fini(&c);
	free(agents);
	return rc;
}
