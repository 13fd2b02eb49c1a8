/* The first solution of a search.
 *
 * First each node gets a stage: the stage to which it is pinned, its stage in the start plan
 * (q->from), or a stage with room. Then one microbatch after the other takes its cheapest round
 * trip, which a dynamic program over (visits so far, last node) finds. The work that a node
 * already has counts as a delay at that node. */
#include "schedule/start/construct.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "schedule/problem/node_classes.h"
#include "schedule/problem/stage_quota.h"

#define BEAM 12   /* number of states that the first attempt keeps at each level */
/* If a level gets more than CROWDED * BEAM states, the most costly states are dropped at once. */
#define CROWDED 3

static void place_node(struct solution *s, const struct problem *p, int *room, int node, int stage)
{
	if (stage >= 0 && stage < p->n_stages && room[stage] > 0 && s->stage_of[node] < 0) {
		s->stage_of[node] = stage;
		room[stage]--;
	}
}

/* Pinned nodes come first. A node that may move gets its stage in the start plan, else its stage
 * in the cluster, else the next stage with room. */
int construct_assignment(struct solution *s, const struct problem *p, struct error *err)
{
	struct arena arena = { 0 };
	int *room = arena_array(&arena, (size_t)p->n_stages, sizeof(*room));
	int *before = arena_array(&arena, (size_t)p->n_nodes, sizeof(*before)), next = 0;

	memcpy(room, p->sizes, (size_t)p->n_stages * sizeof(*room));
	for (int i = 0; i < p->n_nodes; i++) {
		s->stage_of[i] = -1;
		before[i] = -1;
		if (!p->out[i] && !p->movable[i])
			place_node(s, p, room, i, p->c->nodes[i].stage);
	}
	if (p->q->from)
		plan_stages(p->q->from, p->n_nodes, before);
	for (int i = 0; i < p->n_nodes; i++) {
		if (p->movable[i])
			place_node(s, p, room, i, before[i]);
	}
	for (int i = 0; i < p->n_nodes; i++) {
		if (p->movable[i])
			place_node(s, p, room, i, p->c->nodes[i].stage);
	}
	for (int i = 0; i < p->n_nodes; i++) {
		if (p->out[i] || s->stage_of[i] >= 0)
			continue;
		for (int k = 0; k < p->n_stages && s->stage_of[i] < 0; k++)
			place_node(s, p, room, i, (next + k) % p->n_stages);
		next++;
	}
	arena_free(&arena);
	solution_index(s, p);
	for (int k = 0; k < p->n_stages; k++) {
		if (s->start[k + 1] == s->start[k])
			return error_set(err, PLAN_INFEASIBLE, "stage %d has no node left", k);
	}
	return 0;
}

/* The dynamic program. A state is (visits so far, last node). A state can follow a state of an
 * earlier stage, unless a stage that must be visited lies between the two. Of similar nodes, only
 * the one with the least load is considered. */
struct builder {
	const struct problem *p;
	struct solution *s;
	struct arena arena; /* owns the arrays below */
	struct node_classes groups;
	/* for each group: the node with the least load; -1: none has memory */
	int *least;
	int beam;          /* number of states kept at each level */
	/* States of the level in progress that cost this much or more are dropped */
	double cut;
	/* array of n_nodes: seconds of work given to each node, including one more visit */
	double *load;
	/* Visits that the microbatches without a path still have to make to each stage. */
	struct stage_quota quota;
	double *cost;     /* array of (length, n_nodes): cost of each state */
	int32_t *from;    /* array of (length, n_nodes): the state before each state */
	int32_t *reached; /* array of (length, n_nodes): nodes reached at each level */
	int *n_reached;   /* array of length */
};

/* Keeps the cheapest states of a level, cheapest first. */
static void thin_out(struct builder *b, int visits)
{
	size_t level = (size_t)visits * (size_t)b->p->n_nodes;
	const double *cost = b->cost + level;
	int32_t *list = b->reached + level, *from = b->from + level;
	int n = 0;

	if (b->n_reached[visits] <= b->beam)
		return;
	for (int i = 0; i < b->n_reached[visits]; i++) {
		int32_t v = list[i];
		int at = n;

		if (n == b->beam && cost[v] >= cost[list[n - 1]]) {
			from[v] = -1;
			continue;
		}
		if (n == b->beam)
			from[list[--at]] = -1;
		else
			n++;
		for (; at > 0 && cost[list[at - 1]] > cost[v]; at--)
			list[at] = list[at - 1];
		list[at] = v;
	}
	b->n_reached[visits] = n;
	b->cut = cost[list[n - 1]];
}

static void reach_node(struct builder *b, int visits, int u, int v, double cost)
{
	size_t n = (size_t)b->p->n_nodes, to = (size_t)visits * n + (size_t)v;

	if (b->from[to] < 0)
		b->reached[(size_t)visits * n + (size_t)b->n_reached[visits]++] = v;
	else if (cost >= b->cost[to])
		return;
	b->cost[to] = cost;
	b->from[to] = u;
}

static void reach_stage(struct builder *b, int visits, int u, int stage, double cost)
{
	const double *round = b->p->round + (size_t)u * (size_t)b->p->n_nodes;

	for (int g = b->groups.first[stage]; g < b->groups.first[stage + 1]; g++) {
		int v = b->least[g];

		if (v >= 0 && cost + round[v] + b->load[v] < b->cut)
			reach_node(b, visits, u, v, cost + round[v] + b->load[v]);
	}
}

static void extend_state(struct builder *b, int visits, int u)
{
	int more = b->quota.length - 1 - visits; /* number of visits after this one */
	double cost = b->cost[(size_t)(visits - 1) * (size_t)b->p->n_nodes + (size_t)u];

	for (int stage = b->s->stage_of[u] + 1; stage < b->p->n_stages; stage++) {
		if (stage_quota_may_visit(&b->quota, stage, more))
			reach_stage(b, visits, u, stage, cost);
		if (stage_quota_forces(&b->quota, stage))
			return;
	}
}

/* Writes the cheapest path for a microbatch of data_node to `path`, with as many visits as `path`
 * has now. Returns false if there is none. */
static bool build_path(struct builder *b, int data_node, int *path)
{
	const struct problem *p = b->p;
	size_t n = (size_t)p->n_nodes;
	int last = -1, visits = problem_path_length(p, path) - 1;
	double best = INFINITY;

	stage_quota_count(&b->quota, path);
	memset(b->from, 0xff, (size_t)p->length * n * sizeof(*b->from));
	memset(b->n_reached, 0, (size_t)p->length * sizeof(*b->n_reached));
	b->cost[data_node] = 0;
	b->reached[b->n_reached[0]++] = data_node;
	for (int v = 0; v < visits; v++) {
		b->cut = INFINITY;
		for (int i = 0; i < b->n_reached[v]; i++) {
			extend_state(b, v + 1, b->reached[(size_t)v * n + (size_t)i]);
			if (b->n_reached[v + 1] > CROWDED * b->beam)
				thin_out(b, v + 1);
		}
		thin_out(b, v + 1);
	}
	for (int i = 0; i < b->n_reached[visits]; i++) {
		int v = b->reached[(size_t)visits * n + (size_t)i];
		double cost = b->cost[(size_t)visits * n + (size_t)v] +
			      p->round[(size_t)v * n + (size_t)data_node];

		if (cost < best && b->quota.forced_after[b->s->stage_of[v]] == 0) {
			best = cost;
			last = v;
		}
	}
	for (int v = visits; last >= 0 && v >= 0; v--) {
		path[v] = last;
		last = b->from[(size_t)v * n + (size_t)last];
	}
	return best < INFINITY;
}

/* Finds the node with the least load in each group of a stage. */
static void find_least(struct builder *b, int stage)
{
	for (int g = b->groups.first[stage]; g < b->groups.first[stage + 1]; g++)
		b->least[g] = -1;
	for (int i = b->s->start[stage]; i < b->s->start[stage + 1]; i++) {
		int v = b->s->members[i], *least = &b->least[b->groups.of[v]];

		if (b->p->c->nodes[v].memory > 0 && (*least < 0 || b->load[v] < b->load[*least]))
			*least = v;
	}
}

/* Prepares the dynamic program. thorough: the program considers every node and keeps every
 * state. */
static void builder_init(struct builder *b, struct solution *s, const struct problem *p,
			 bool thorough)
{
	size_t n = (size_t)p->n_nodes, length = (size_t)p->length;

	*b = (struct builder){ .p = p, .s = s, .beam = thorough ? p->n_nodes : BEAM };
	node_classes_init(&b->groups, &b->arena, p, s, !thorough);
	b->least = arena_array(&b->arena, n, sizeof(*b->least));
	b->load = arena_array(&b->arena, n, sizeof(*b->load));
	stage_quota_init(&b->quota, p);
	b->cost = arena_array(&b->arena, length * n, sizeof(*b->cost));
	b->from = arena_array(&b->arena, length * n, sizeof(*b->from));
	b->reached = arena_array(&b->arena, length * n, sizeof(*b->reached));
	b->n_reached = arena_array(&b->arena, length, sizeof(*b->n_reached));
	for (int i = 0; i < p->n_nodes; i++)
		b->load[i] = problem_visit_s(p, s->work, i);
	for (int stage = 1; stage < p->n_stages; stage++)
		find_least(b, stage);
}

/* Adds one visit of each node of the path to the loads. */
static void load_path(struct builder *b, const int *path)
{
	for (int h = 1; h < problem_path_length(b->p, path); h++) {
		b->load[path[h]] += problem_visit_s(b->p, b->s->work, path[h]);
		find_least(b, b->s->stage_of[path[h]]);
	}
}

/* Returns the microbatches by waves: the first microbatch of every data node, then the second of
 * each, and so on. With an rng the order is shuffled. The result has 2 n_mb entries: the order,
 * then the rank of each microbatch among its data node's microbatches. */
static int *order_microbatches(struct builder *b, struct rng *rng)
{
	const struct problem *p = b->p;
	size_t n = (size_t)p->n_mb;
	int *order = arena_array(&b->arena, 2 * n, sizeof(*order)), *rank = order + n;
	/* array of n + 1: for each wave, the position of its next microbatch in the order */
	int *place = arena_array(&b->arena, n + 1, sizeof(*place));

	for (int i = 0; i < p->n_mb; i++) {
		rank[i] = i > 0 && p->mb_slot[i] == p->mb_slot[i - 1] ? rank[i - 1] + 1 : 0;
		place[rank[i] + 1]++;
	}
	for (int wave = 1; wave < p->n_mb; wave++)
		place[wave] += place[wave - 1];
	for (int i = 0; i < p->n_mb; i++)
		order[place[rank[i]]++] = i;
	for (int i = p->n_mb - 1; rng && i > 0; i--) {
		int j = (int)rng_below(rng, (uint32_t)i + 1), was = order[i];

		order[i] = order[j];
		order[j] = was;
	}
	return order;
}

/* Returns true if the path can be kept: it has this length, its nodes have stages and memory, its
 * links exist, and its stages have a legal order. */
static bool is_whole(const struct builder *b, const struct plan_microbatch *m, int length)
{
	const struct problem *p = b->p;
	const int *stage_of = b->s->stage_of;
	int last = 0;

	if (m->length != length)
		return false;
	for (int h = 0; h < m->length; h++) {
		int v = m->path[h], to = m->path[(h + 1) % m->length];

		if (v < 0 || v >= p->n_nodes || to < 0 || to >= p->n_nodes || stage_of[v] < 0 ||
		    (h > 0 && p->c->nodes[v].memory < 1) ||
		    isinf(problem_round_s(p, v, to)))
			return false;
	}
	for (int h = 1; h < m->length; h++) {
		int a = stage_of[m->path[h]];
		int next = h + 1 < m->length ? stage_of[m->path[h + 1]] : -1;

		if ((next > 0 && next == a - 1 ? next : a) <= last)
			return false;
		h += next > 0 && next == a - 1;
		last = a;
	}
	return true;
}

/* Returns true if exposure can still be equal after this microbatch keeps its path. With this
 * path, no stage may have more visits than its quota, or need more visits than there are
 * microbatches left. */
static bool may_keep(const struct builder *b, const int *path)
{
	const struct problem *p = b->p;

	for (int s = 1; s < p->n_stages; s++) {
		int quota = b->quota.need[s];

		for (int h = 1; h < p->short_length; h++)
			quota -= b->s->stage_of[path[h]] == s;
		if (quota < 0 || quota > b->quota.out - 1)
			return false;
	}
	return true;
}

/* Finds the paths of the start plan that microbatches can keep: paths of the same data node and
 * length for which is_whole is true. kept: array of n_mb, the path of each microbatch; NULL: the
 * microbatch gets a new path. */
static void find_kept(const struct builder *b, const int **kept)
{
	const struct problem *p = b->p;
	const struct plan *from = p->q->from;
	/* For long and for short paths: index in the start plan at which the search for the data
	 * node's next path continues. */
	int after[2] = { 0 }, last = -1;

	for (int i = 0; i < p->n_mb; i++) {
		int node = b->s->members[p->mb_slot[i]];
		int length = problem_path_length(p, solution_path(b->s, p, i));
		int *next = &after[length < p->length];

		kept[i] = NULL;
		if (node != last)
			after[0] = after[1] = 0;
		last = node;
		while (*next < from->n_microbatches &&
		       (from->microbatches[*next].data_node != node ||
			!is_whole(b, &from->microbatches[*next], length)))
			++*next;
		if (*next < from->n_microbatches)
			kept[i] = from->microbatches[(*next)++].path;
	}
}

static bool build_one(struct builder *b, int mb, const int *keep)
{
	const struct problem *p = b->p;
	int *path = solution_path(b->s, p, mb), length = problem_path_length(p, path);

	if (keep && (length > p->short_length || may_keep(b, keep)))
		memcpy(path, keep, (size_t)length * sizeof(*path));
	else if (!build_path(b, b->s->members[p->mb_slot[mb]], path))
		return false;
	load_path(b, path);
	stage_quota_return(&b->quota, b->s, path);
	return true;
}

static bool build_all(struct builder *b, const int *order, const int **kept)
{
	const struct problem *p = b->p;

	/* First places the microbatches that keep their path. Otherwise the new paths could use up
	 * the quotas of the stages that the kept paths visit. */
	for (int pass = kept ? 0 : 1; pass < 2; pass++) {
		for (int i = 0; i < p->n_mb; i++) {
			const int *keep = kept ? kept[order[i]] : NULL;

			if (kept && (pass == 0) != (keep != NULL))
				continue;
			if (!build_one(b, order[i], keep))
				return false;
		}
	}
	return true;
}

int construct_paths(struct solution *s, const struct problem *p, int attempt, bool repair,
		    struct rng *rng, struct error *err)
{
	const int **kept;
	int rc = 0, first = 1, *order;
	struct builder b;

	builder_init(&b, s, p, attempt > 0);
	kept = arena_array(&b.arena, (size_t)p->n_mb, sizeof(*kept));
	if (attempt > 1 && p->n_stages > 1)
		first = 1 + (int)rng_below(rng, (uint32_t)p->n_stages - 1);
	stage_quota_deal(&b.quota, first);
	order = order_microbatches(&b, attempt > 1 ? rng : NULL);
	if (repair)
		find_kept(&b, kept);
	if (!build_all(&b, order, repair ? kept : NULL))
		rc = error_set(err, PLAN_INFEASIBLE,
			       "no legal paths with every stage visited equally often");
	arena_free(&b.arena);
	return rc;
}

/* Counts the microbatches of the same data node, including this one. */
static int count_siblings(const struct problem *p, int mb)
{
	int n = 0;

	for (int i = 0; i < p->n_mb; i++)
		n += p->mb_slot[i] == p->mb_slot[mb];
	return n;
}

/* Divides the visits between the groups and the microbatches that are in no group. Sets b->quota
 * to the visits that the groups make, distributed as evenly as possible. Sets *rest to the visits
 * of the microbatches that are in no group. Returns false if exposure cannot be equal this
 * way. */
static bool split_quotas(struct builder *b, int groups, int group, struct stage_quota *rest)
{
	const struct problem *p = b->p;
	/* `high` is not used. surplus: number of visits that the groups make beyond the least
	 * number of visits of each stage. */
	int high, surplus = groups * (p->length - 1);
	long extra = (long)p->n_mb * (p->length - 1);

	stage_quota_init(rest, p);
	b->quota.out = groups;
	rest->out = p->n_mb - groups * group;
	for (int s = 1; s < p->n_stages; s++) {
		stage_set_exposure(p->c->always, s, p->n_stages, groups, (long)groups * p->length,
				   &b->quota.need[s], &high);
		surplus -= b->quota.need[s];
		extra -= p->low[s];
	}
	for (int s = p->n_stages - 1; s > 0; s--) {
		bool is_droppable = !stage_set_has(p->c->always, s);

		b->quota.need[s] += is_droppable && surplus > 0;
		surplus -= is_droppable;
		rest->need[s] = p->low[s] - group * b->quota.need[s];
	}
	for (; extra > 0; extra--) {
		/* The stage with the lowest quota in *rest, among the stages that may be skipped;
		 * 0: none found yet. */
		int least = 0;

		for (int s = 1; s < p->n_stages; s++)
			if (!stage_set_has(p->c->always, s) &&
			    (least == 0 || rest->need[s] < rest->need[least]))
				least = s;
		rest->need[least]++;
	}
	for (int s = 1; s < p->n_stages; s++) {
		if (rest->need[s] < 0 || rest->need[s] > rest->out || b->quota.need[s] > groups ||
		    rest->need[s] + group * b->quota.need[s] > p->high[s])
			return false;
	}
	return true;
}

/* Gives the path of a group's first microbatch to the group's other microbatches. */
static void copy_path(struct builder *b, int mb, int group, int apart)
{
	const struct problem *p = b->p;
	size_t length = (size_t)p->length;
	const int *path = b->s->path + (size_t)mb * length;

	for (int k = 1; k < group; k++) {
		memcpy(b->s->path + (size_t)(mb + k * apart) * length, path,
		       length * sizeof(*path));
		load_path(b, path);
	}
}

/* Builds a path for each group, and then one for each microbatch that is in no group. order: the
 * microbatches, followed by their ranks, as from order_microbatches. */
static bool build_groups(struct builder *b, const int *order, int group,
			 const struct stage_quota *rest)
{
	const struct problem *p = b->p;
	const int *rank = order + p->n_mb;

	for (int i = 0; i < p->n_mb; i++) {
		int apart = count_siblings(p, order[i]) / group;

		if (rank[order[i]] >= apart)
			continue;
		if (!build_one(b, order[i], NULL))
			return false;
		copy_path(b, order[i], group, apart);
	}
	b->quota = *rest;
	for (int i = 0; i < p->n_mb; i++) {
		int apart = count_siblings(p, order[i]) / group;

		if (rank[order[i]] >= apart * group && !build_one(b, order[i], NULL))
			return false;
	}
	return true;
}

int construct_tied(struct solution *s, const struct problem *p, int group, struct rng *rng)
{
	int *order, groups = 0, rc;
	struct stage_quota rest;
	struct builder b;

	builder_init(&b, s, p, false);
	order = order_microbatches(&b, rng);
	for (int i = 0; i < p->n_mb; i++)
		groups += order[p->n_mb + i] < count_siblings(p, i) / group;
	rc = split_quotas(&b, groups, group, &rest) && build_groups(&b, order, group, &rest)
		? 0 : PLAN_INFEASIBLE;
	arena_free(&b.arena);
	return rc;
}

void construct_rings(int *ring, const struct solution *s, const struct problem *p, int group)
{
	size_t length = (size_t)p->length, size = length * sizeof(*s->path);

	for (int i = 0, rank = 0; i < p->n_mb; i++) {
		int n = count_siblings(p, i), apart = n / group;

		rank = i > 0 && p->mb_slot[i] == p->mb_slot[i - 1] ? rank + 1 : 0;
		ring[i] = i;
		for (int k = 1; rank < apart * group && k * apart <= rank; k++) {
			int y = i - k * apart;

			if (memcmp(s->path + (size_t)i * length, s->path + (size_t)y * length,
				   size) == 0) {
				ring[i] = ring[y];
				ring[y] = i;
				break;
			}
		}
	}
}
