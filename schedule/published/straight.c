/* The baselines dtfm and dtfm-skip. Comparing them with SkipPipe's search shows the gain from
 * skipping stages and from avoiding collisions. */
#include "schedule/published/straight.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "schedule/problem/stage_quota.h"
#include "schedule/published/allocate.h"

#define DRAWS 200 /* number of random plans that are tried before giving up */

/* Extends n pipelines to `stage`, which has at least n nodes. ends: array of n, the last node of
 * each pipeline. next: array of n, gets the node of `stage` that is matched to each pipeline. */
static int match_next(const struct solution *s, const struct problem *p, const int *ends, int n,
		      int stage, int *next)
{
	int size = s->start[stage + 1] - s->start[stage];
	struct arena arena = { 0 };
	double *cost = arena_array(&arena, (size_t)n * (size_t)size, sizeof(*cost)), worst;
	int *match = arena_array(&arena, (size_t)n, sizeof(*match));

	for (int i = 0; i < n; i++) {
		for (int j = 0; j < size; j++) {
			int v = s->members[s->start[stage] + j];

			cost[i * size + j] = problem_round_s(p, ends[i], v) +
					     problem_forward_s(p, s->work, v) +
					     problem_backward_s(p, s->work, v);
		}
	}
	worst = allocate_match(cost, n, size, match);
	for (int i = 0; i < n && isfinite(worst); i++)
		next[i] = s->members[s->start[stage] + match[i]];
	arena_free(&arena);
	return isfinite(worst) ? 0 : PLAN_INFEASIBLE;
}

/* Picks the n data nodes that start a pipeline. These are the data nodes nearest to any node of
 * stage 1. */
static void pick_heads(const struct solution *s, const struct problem *p, int n, int *heads)
{
	int size = s->start[1];
	struct arena arena = { 0 };
	int *left = arena_array(&arena, (size_t)size, sizeof(*left));

	for (int i = 0; i < size; i++)
		left[i] = s->members[i];
	for (int i = 0; i < n; i++) {
		int best = i;
		double least = INFINITY;

		for (int k = i; k < size; k++) {
			for (int j = s->start[1]; j < s->start[2]; j++) {
				double d = problem_round_s(p, left[k], s->members[j]);

				if (d < least) {
					least = d;
					best = k;
				}
			}
		}
		heads[i] = left[best];
		left[best] = left[i];
	}
	arena_free(&arena);
}

/* Gives each data node one pipeline. A bottleneck matching between data nodes and pipelines
 * decides which. Each pipeline serves at most its share of the data nodes. */
static int deal_pipelines(struct solution *s, const struct problem *p, const int *pipes, int n)
{
	int heads = p->sizes[0], share = (heads + n - 1) / n, places = n * share;
	int last = p->length - 1;
	struct arena arena = { 0 };
	double *cost = arena_array(&arena, (size_t)heads * (size_t)places, sizeof(*cost)), worst;
	int *match = arena_array(&arena, (size_t)heads, sizeof(*match));

	for (int i = 0; i < heads * places; i++) {
		const int *pipe = pipes + (size_t)(i % places / share) * (size_t)p->length;
		size_t row = (size_t)s->members[i / places] * (size_t)p->n_nodes;

		cost[i] = p->round[row + (size_t)pipe[1]] + p->round[row + (size_t)pipe[last]];
	}
	worst = allocate_match(cost, heads, places, match);
	for (int mb = 0; mb < p->n_mb && isfinite(worst); mb++) {
		int *path = solution_path(s, p, mb);

		memcpy(path, pipes + (size_t)(match[p->mb_slot[mb]] / share) * (size_t)p->length,
		       (size_t)p->length * sizeof(*path));
		path[0] = s->members[p->mb_slot[mb]];
	}
	arena_free(&arena);
	return isfinite(worst) ? 0 : PLAN_INFEASIBLE;
}

int straight_paths(struct solution *s, const struct problem *p, struct error *err)
{
	struct arena arena = { 0 };
	int n = p->sizes[0], rc = 0, *pipes, *ends, *next;

	for (int k = 1; k < p->n_stages; k++)
		n = p->sizes[k] < n ? p->sizes[k] : n;
	pipes = arena_array(&arena, (size_t)n * (size_t)p->length, sizeof(int));
	ends = arena_array(&arena, (size_t)n, sizeof(int));
	next = arena_array(&arena, (size_t)n, sizeof(int));
	if (p->n_stages > 1)
		pick_heads(s, p, n, ends);
	else
		memcpy(ends, s->members, (size_t)n * sizeof(int));
	for (int k = 0; rc == 0 && k < p->n_stages; k++) {
		if (k > 0) {
			rc = match_next(s, p, ends, n, k, next);
			memcpy(ends, next, (size_t)n * sizeof(int));
		}
		for (int i = 0; i < n; i++)
			pipes[(size_t)i * (size_t)p->length + (size_t)k] = ends[i];
	}
	if (rc == 0 && p->n_stages > 1)
		rc = deal_pipelines(s, p, pipes, n);
	for (int mb = 0; rc == 0 && p->n_stages == 1 && mb < p->n_mb; mb++)
		s->path[mb] = s->members[p->mb_slot[mb]];
	arena_free(&arena);
	if (rc == 0)
		return 0;
	return error_set(err, rc, "no links for straight pipelines through all stages");
}

/* Draws the stages of one microbatch: first the stages that it must visit, then other stages,
 * each with a probability proportional to its quota. */
static bool draw_stages(const struct stage_quota *quota, struct rng *rng, bool *in)
{
	const struct problem *p = quota->p;
	int n = 0;

	for (int s = 1; s < p->n_stages; s++) {
		in[s] = quota->need[s] == quota->out;
		n += in[s];
	}
	while (n < p->length - 1) {
		long sum = 0, draw;

		for (int s = 1; s < p->n_stages; s++)
			sum += in[s] ? 0 : quota->need[s];
		if (sum == 0)
			return false;
		draw = (long)rng_below(rng, (uint32_t)sum);
		for (int s = 1; s < p->n_stages; s++) {
			if (!in[s] && (draw -= quota->need[s]) < 0) {
				in[s] = true;
				n++;
				break;
			}
		}
	}
	return n == p->length - 1;
}

/* Chooses, in each of the stages, the linked node with the fewest visits so far; ties are decided
 * at random. */
static bool draw_path(struct solution *s, const struct problem *p, int mb, const bool *in,
		      int *visits, struct rng *rng)
{
	int *path = solution_path(s, p, mb), n = 1;

	path[0] = s->members[p->mb_slot[mb]];
	for (int stage = 1; stage < p->n_stages; stage++) {
		int best = -1, equals = 0;

		for (int i = s->start[stage]; in[stage] && i < s->start[stage + 1]; i++) {
			int v = s->members[i];

			if (p->c->nodes[v].memory < 1 ||
			    isinf(problem_round_s(p, path[n - 1], v)))
				continue;
			if (best >= 0 && visits[v] > visits[best])
				continue;
			if (best < 0 || visits[v] < visits[best])
				equals = 0;
			if (rng_below(rng, (uint32_t)++equals) == 0)
				best = v;
		}
		if (!in[stage])
			continue;
		if (best < 0)
			return false;
		path[n++] = best;
		visits[best]++;
	}
	return !isinf(problem_round_s(p, path[n - 1], path[0]));
}

static bool draw_all(struct solution *s, const struct problem *p, int *visits, bool *in,
		     struct rng *rng)
{
	struct stage_quota quota;

	memset(visits, 0, (size_t)p->n_nodes * sizeof(*visits));
	stage_quota_init(&quota, p);
	stage_quota_deal(&quota, 1);
	for (int mb = 0; mb < p->n_mb; mb++) {
		if (!draw_stages(&quota, rng, in) || !draw_path(s, p, mb, in, visits, rng))
			return false;
		stage_quota_return(&quota, s, solution_path(s, p, mb));
	}
	return true;
}

int random_paths(struct solution *s, const struct problem *p, struct rng *rng,
		 struct error *err)
{
	struct arena arena = { 0 };
	int *visits = arena_array(&arena, (size_t)p->n_nodes, sizeof(int));
	bool *in = arena_array(&arena, (size_t)p->n_stages, sizeof(bool)), found = false;

	for (int k = 0; k < DRAWS && !found; k++)
		found = draw_all(s, p, visits, in, rng);
	arena_free(&arena);
	return found ? 0 : error_set(err, PLAN_INFEASIBLE, "no legal paths found at random");
}
