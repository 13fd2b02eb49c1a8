/* The problem and solutions of it.
 *
 * problem_init checks the request against the cluster. Then it works out everything that stays
 * constant during a search: excluded and movable nodes, stage sizes, microbatches and their data
 * nodes, visits of each stage, and matrices of delays. A missing link has a delay of INFINITY, so
 * that no later code needs a test for it. */
#include "schedule/problem/problem.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/skip_schedule.h"

#define TILE 32 /* number of rows and of columns of a tile */

/* Seconds assumed for the transfer of a gradient between two nodes without a link. No iteration
 * takes this long, so two such nodes share a stage only if there is no other possibility. */
#define NO_LINK_S 1e4

static int check_request(const struct cluster *c, const struct plan_request *q,
			 struct error *err)
{
	if (q->path_length < 0 || q->path_length > c->n_stages ||
	    (q->path_length > 0 && q->path_length < stage_set_count(c->always)))
		return error_set(err, -EINVAL,
				 "path length %d: expected %d (the stages that every microbatch "
				 "visits) to %d (all stages)",
				 q->path_length, stage_set_count(c->always), c->n_stages);
	if (q->skip_share < 0 || q->skip_share > 99)
		return error_set(err, -EINVAL,
				 "a share of %d%% of the microbatches: expected 1%% to 99%%, or 0 "
				 "for all of them",
				 q->skip_share);
	if (q->skip_share > 0 && q->algorithm != PLAN_BEST && q->path_length < c->n_stages)
		return error_set(err, -EINVAL,
				 "%s gives all microbatches paths of one length; a share of the "
				 "microbatches that skip stages needs \"best\"",
				 plan_algorithm_name(q->algorithm));
	if (q->budget_s > 0 && !q->clock_us)
		return error_set(err, -EINVAL, "a time budget needs a clock");
	if (!(q->sync_limit_s >= 0))
		return error_set(err, -EINVAL,
				 "the limit for the sums: expected seconds, more than 0");
	if (q->sync_limit_s > 0 && (!q->free_assignment || q->algorithm != PLAN_BEST))
		return error_set(err, -EINVAL,
				 "a limit for the sums needs a free assignment and \"best\"");
	if (q->sync_limit_s > 0 && !c->sync_pair_s)
		return error_set(err, -EINVAL,
				 "a limit for the sums needs sync_pair_s in the cluster");
	if (q->from && q->from->n_stages != c->n_stages)
		return error_set(err, -EINVAL,
				 "the plan to start from has %d stages, the cluster %d",
				 q->from->n_stages, c->n_stages);
	return 0;
}

static void problem_alloc(struct problem *p)
{
	size_t n = (size_t)p->n_nodes, s = (size_t)p->n_stages;

	p->sizes = arena_array(&p->arena, s, sizeof(*p->sizes));
	p->out = arena_array(&p->arena, n, sizeof(*p->out));
	p->movable = arena_array(&p->arena, n, sizeof(*p->movable));
	p->delay = arena_array(&p->arena, n * n, sizeof(*p->delay));
	if (p->c->bytes_s)
		p->occupied = arena_array(&p->arena, n * n, sizeof(*p->occupied));
	/* All values stay zero if sums are not part of the objective. */
	p->sync = arena_array(&p->arena, n * n, sizeof(*p->sync));
	p->round = arena_array(&p->arena, n * n, sizeof(*p->round));
	p->low = arena_array(&p->arena, s, sizeof(*p->low));
	p->high = arena_array(&p->arena, s, sizeof(*p->high));
}

static void fill_matrices(struct problem *p)
{
	const struct cluster *c = p->c;
	size_t n = (size_t)p->n_nodes;
	bool counts = p->weigh_sync || p->sync_limit_s < INFINITY;

	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < n; j++) {
			double d = c->delay_s[i * n + j];

			p->delay[i * n + j] = i == j ? 0 : d < 0 ? INFINITY : d;
			if (p->occupied)
				p->occupied[i * n + j] = cluster_occupied_s(c, (int)i, (int)j);
		}
		for (size_t j = 0; counts && j < n; j++) {
			double sync = c->sync_pair_s[i * n + j];

			/* A negative sync means that the time is unknown or that there is no
			 * link. */
			if (sync < 0)
				sync = c->delay_s[i * n + j] < 0 ? NO_LINK_S : 0;
			p->sync[i * n + j] = i == j ? 0 : sync;
		}
	}
	/* Works in tiles that fit into the cache, because p->delay[j * n + i] is read down a
	 * column. */
	for (size_t row = 0; row < n; row += TILE) {
		for (size_t column = 0; column < n; column += TILE) {
			for (size_t i = row; i < row + TILE && i < n; i++) {
				for (size_t j = column; j < column + TILE && j < n; j++)
					p->round[i * n + j] = p->delay[i * n + j] +
							      p->delay[j * n + i];
			}
		}
	}
}

/* Returns the stage that loses a node because `node` is excluded: the stage to which `node` is
 * pinned, or its stage in the start plan (q->from). If `node` has no such stage, returns the
 * stage with the most room. room: array of n_stages, number of unpinned nodes that each
 * stage can still take. */
static int stage_left(const struct problem *p, int node, const int *stage_of, const int *room)
{
	int stage = p->q->free_assignment ? -1 : p->c->nodes[node].stage, most = 0;

	if (stage >= 0)
		return stage;
	if (stage_of && stage_of[node] >= 0 && room[stage_of[node]] > 0)
		return stage_of[node];
	for (int s = 1; s < p->n_stages; s++)
		most = room[s] > room[most] ? s : most;
	return most;
}

static void shrink_stages(struct problem *p, const int *stage_of)
{
	int room[CLUSTER_MOST_STAGES];

	memcpy(room, p->c->stages, (size_t)p->n_stages * sizeof(room[0]));
	memcpy(p->sizes, p->c->stages, (size_t)p->n_stages * sizeof(room[0]));
	for (int i = 0; i < p->n_nodes; i++) {
		if (!p->q->free_assignment && p->c->nodes[i].stage >= 0)
			room[p->c->nodes[i].stage]--;
	}
	for (int i = 0; i < p->n_nodes; i++) {
		bool pinned = !p->q->free_assignment && p->c->nodes[i].stage >= 0;
		int stage;

		if (!p->out[i])
			continue;
		stage = stage_left(p, i, stage_of, room);
		if (!pinned && room[stage] <= 0)
			continue; /* the stages have no room for this node */
		p->sizes[stage]--;
		room[stage] -= !pinned;
	}
}

static int size_stages(struct problem *p, struct error *err)
{
	int *stage_of = NULL;

	if (p->q->from) {
		stage_of = alloc_array((size_t)p->n_nodes, sizeof(*stage_of));
		plan_stages(p->q->from, p->n_nodes, stage_of);
	}
	shrink_stages(p, stage_of);
	free(stage_of);
	for (int s = 0; s < p->n_stages; s++) {
		if (p->sizes[s] < 1)
			return error_set(err, PLAN_INFEASIBLE, "stage %d has no node left", s);
	}
	return 0;
}

/* Returns an error unless each stage that must be visited has memory for at least one
 * microbatch. */
static int check_memory(const struct problem *p, struct error *err)
{
	for (int s = 0; s < p->n_stages; s++) {
		long slots = 0;

		for (int i = 0; i < p->n_nodes; i++) {
			bool here = p->movable[i] || p->c->nodes[i].stage == s;

			slots += !p->out[i] && here ? p->c->nodes[i].memory : 0;
		}
		if (slots == 0 && (s == 0 || p->low[s] > 0))
			return error_set(err, PLAN_INFEASIBLE,
					 "stage %d has no memory for even one microbatch: "
					 "1 slot short", s);
	}
	return 0;
}

/* Decides which microbatches skip stages in the first plan, and thereby the lengths of all
 * paths. */
static void share_skips(struct problem *p)
{
	int n_skip = 0, first = 0;

	p->skips = arena_array(&p->arena, (size_t)p->n_mb, sizeof(*p->skips));
	for (int i = 1; i <= p->n_mb; i++) {
		if (i < p->n_mb && p->mb_slot[i] == p->mb_slot[first])
			continue;
		for (int k = first; k < i; k++) {
			p->skips[k] = skip_share_takes(p->q->skip_share, i - first, k - first);
			n_skip += p->skips[k];
		}
		first = i;
	}
	p->visits = (long)n_skip * p->short_length + (long)(p->n_mb - n_skip) * p->n_stages;
	p->length = n_skip < p->n_mb ? p->n_stages : p->short_length;
	if (n_skip == 0)
		p->short_length = p->length;
	p->n_whole = p->short_length < p->length ? p->n_mb - n_skip : 0;
}

/* Gives the microbatches, in order of their ids, to the data nodes that are not excluded. Ids have
 * no gaps even if nodes are excluded. A microbatch may therefore have another id in another plan;
 * no code compares the ids of two plans. */
static int deal_microbatches(struct problem *p, struct error *err)
{
	int each = p->c->microbatches_per_data_node, data = p->sizes[0];
	long total = (long)each * (p->q->keep_batch ? p->c->stages[0] : data);

	if (total > 1000000)
		return error_set(err, -EINVAL,
				 "%ld microbatches are more than the planner can plan", total);
	p->n_mb = (int)total;
	p->regimes = strategy_regimes(p->n_mb, p->n_nodes);
	p->mb_slot = arena_array(&p->arena, (size_t)p->n_mb, sizeof(*p->mb_slot));
	for (int i = 0; i < p->n_mb; i++)
		p->mb_slot[i] = (int)((long)i * data / p->n_mb);
	share_skips(p);
	for (int s = 1; s < p->n_stages; s++)
		stage_set_exposure(p->c->always, s, p->n_stages, p->n_mb, p->visits, &p->low[s],
				   &p->high[s]);
	return 0;
}

bool problem_all_alike(const struct cluster *c)
{
	const struct cluster_node *a = &c->nodes[0];

	for (int i = 0; i < c->n_nodes; i++) {
		const struct cluster_node *b = &c->nodes[i];

		if (b->forward_s != a->forward_s || b->backward_s != a->backward_s ||
		    b->loss_s != a->loss_s || b->memory != a->memory)
			return false;
		for (int j = 0; j < c->n_nodes; j++) {
			size_t at = (size_t)i * (size_t)c->n_nodes + (size_t)j;

			if (i != j && (c->delay_s[at] != c->delay_s[1] ||
				       (c->sync_pair_s && c->sync_pair_s[at] != c->sync_pair_s[1])))
				return false;
		}
	}
	return true;
}

/* Returns true if the cluster pins every node, and its stage sizes add up to the number of
 * nodes. */
static bool all_placed(const struct cluster *c)
{
	int places = 0;

	for (int s = 0; s < c->n_stages; s++)
		places += c->stages[s];
	for (int i = 0; i < c->n_nodes; i++)
		if (c->nodes[i].stage < 0)
			return false;
	return places == c->n_nodes;
}

/* With a free assignment, nodes stay in their stages if all nodes and links are equal: another
 * assignment would change nothing. */
int problem_init(struct problem *p, const struct cluster *c, const struct plan_request *q,
		 struct error *err)
{
	int rc = check_request(c, q, err);
	bool stay = q->free_assignment && !q->from && !q->excluded && !(q->sync_limit_s > 0) &&
		    all_placed(c) && problem_all_alike(c);

	*p = (struct problem){
		.c = c, .q = q, .n_nodes = c->n_nodes, .n_stages = c->n_stages
	};
	if (rc != 0)
		return rc;
	p->short_length = q->path_length ? q->path_length : plan_default_path_length(c);
	problem_alloc(p);
	for (int i = 0; i < p->n_nodes; i++) {
		p->out[i] = q->excluded && q->excluded[i];
		p->movable[i] = !p->out[i] && !stay &&
				(q->free_assignment || c->nodes[i].stage < 0);
		p->n_movable += p->movable[i];
	}
	p->sync_limit_s = q->sync_limit_s > 0 ? q->sync_limit_s : INFINITY;
	p->weigh_sync = p->n_movable > 0 && c->sync_pair_s && isinf(p->sync_limit_s);
	rc = size_stages(p, err);
	if (rc == 0)
		rc = deal_microbatches(p, err);
	if (rc == 0)
		rc = check_memory(p, err);
	if (rc == 0)
		fill_matrices(p);
	if (rc == 0)
		return 0;
	problem_fini(p);
	return rc;
}

void problem_fini(struct problem *p)
{
	arena_free(&p->arena);
	*p = (struct problem){ 0 };
}

void solution_init(struct solution *s, const struct problem *p)
{
	size_t n = (size_t)p->n_nodes;

	*s = (struct solution){ 0 };
	s->stage_of = arena_array(&s->arena, n, sizeof(*s->stage_of));
	s->members = arena_array(&s->arena, n, sizeof(*s->members));
	s->start = arena_array(&s->arena, (size_t)p->n_stages + 1, sizeof(*s->start));
	s->work = arena_array(&s->arena, n, sizeof(*s->work));
	s->path = arena_array(&s->arena, (size_t)p->n_mb * (size_t)p->length, sizeof(*s->path));
	for (int i = 0; i < p->n_mb; i++)
		for (int h = p->short_length; h < p->length && p->skips[i]; h++)
			solution_path(s, p, i)[h] = -1;
}

void solution_fini(struct solution *s)
{
	arena_free(&s->arena);
	*s = (struct solution){ 0 };
}

void solution_copy(struct solution *to, const struct solution *from, const struct problem *p)
{
	size_t n = (size_t)p->n_nodes;

	memcpy(to->stage_of, from->stage_of, n * sizeof(*to->stage_of));
	memcpy(to->members, from->members, n * sizeof(*to->members));
	memcpy(to->start, from->start, ((size_t)p->n_stages + 1) * sizeof(*to->start));
	memcpy(to->work, from->work, n * sizeof(*to->work));
	memcpy(to->path, from->path, (size_t)p->n_mb * (size_t)p->length * sizeof(*to->path));
}

void solution_index(struct solution *s, const struct problem *p)
{
	int at = 0;

	for (int stage = 0; stage < p->n_stages; stage++) {
		s->start[stage] = at;
		for (int i = 0; i < p->n_nodes; i++) {
			if (s->stage_of[i] == stage)
				s->members[at++] = i;
		}
	}
	s->start[p->n_stages] = at;
	for (int i = 0; i < p->n_nodes; i++)
		s->work[i] = cluster_work(p->c, s->stage_of[i]);
}

double solution_stage_sync_s(const struct solution *s, const struct problem *p, int stage,
			     int *pair)
{
	const int *nodes = s->members + s->start[stage];
	int r = s->start[stage + 1] - s->start[stage], none[2];
	double slowest = 0;

	pair = pair ? pair : none;
	pair[0] = pair[1] = -1;
	for (int i = 0; i < r; i++) {
		const double *row = p->sync + (size_t)nodes[i] * (size_t)p->n_nodes;

		for (int j = 0; j < r; j++) {
			if (row[nodes[j]] > slowest) {
				slowest = row[nodes[j]];
				pair[0] = nodes[i];
				pair[1] = nodes[j];
			}
		}
	}
	return 2.0 * (r - 1) / r * slowest;
}

double solution_sync_s(const struct solution *s, const struct problem *p, int *pair)
{
	double most = 0;

	for (int stage = 0; stage < p->n_stages; stage++) {
		int slowest[2];
		double t = solution_stage_sync_s(s, p, stage, slowest);

		if (t > most) {
			most = t;
			if (pair)
				memcpy(pair, slowest, sizeof(slowest));
		}
	}
	return most;
}

void solution_exchange(struct solution *s, int a, int b)
{
	int stage = s->stage_of[a];
	int *at_a = NULL, *at_b = NULL;
	double work = s->work[a];

	for (int i = s->start[stage]; i < s->start[stage + 1]; i++)
		at_a = s->members[i] == a ? &s->members[i] : at_a;
	for (int i = s->start[s->stage_of[b]]; i < s->start[s->stage_of[b] + 1]; i++)
		at_b = s->members[i] == b ? &s->members[i] : at_b;
	assert(at_a && at_b);
	*at_a = b;
	*at_b = a;
	s->stage_of[a] = s->stage_of[b];
	s->stage_of[b] = stage;
	s->work[a] = s->work[b];
	s->work[b] = work;
}

struct plan *solution_to_plan(const struct solution *s, const struct problem *p)
{
	struct plan *plan = plan_alloc(p->n_stages, s->start[p->n_stages], p->n_mb, p->length);

	plan->path_length = p->q->path_length ? p->q->path_length : plan_default_path_length(p->c);
	plan->skip_share = plan->path_length < p->n_stages ? p->q->skip_share : 0;
	plan->always = p->c->always;
	plan->overlap_sync = p->q->overlap_sync;
	memcpy(plan->stage_start, s->start, ((size_t)p->n_stages + 1) * sizeof(*s->start));
	memcpy(plan->assigned, s->members, (size_t)s->start[p->n_stages] * sizeof(*s->members));
	memcpy(plan->visits, s->path, (size_t)p->n_mb * (size_t)p->length * sizeof(*s->path));
	for (int i = 0; i < p->n_mb; i++) {
		plan->microbatches[i].length = problem_path_length(p, solution_path(s, p, i));
		plan->microbatches[i].data_node = solution_path(s, p, i)[0];
	}
	return plan;
}
