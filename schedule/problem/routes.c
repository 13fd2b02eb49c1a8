#include "schedule/problem/routes.h"

#include <math.h>

struct route {
	const struct problem *p;
	const struct solution *s;
	int path[PLAN_MOST_PATH];
	long hops_left;
	int (*found)(void *arg, const int *path);
	void *arg;
};

static bool is_linked(const struct problem *p, int u, int v)
{
	return isfinite(problem_round_s(p, u, v));
}

/* under: a stage that must come next, since the one above it was taken first; < 0: none. */
static int extend_route(struct route *r, int n, int top, int under);

static int visit_stage(struct route *r, int n, int stage, int top, int under)
{
	const struct problem *p = r->p;
	int rc = 0;

	for (int i = r->s->start[stage]; rc == 0 && i < r->s->start[stage + 1]; i++) {
		int v = r->s->members[i];

		if (r->hops_left-- <= 0)
			return PLAN_NOT_FOUND;
		r->path[n] = v;
		if (p->c->nodes[v].memory > 0 && is_linked(p, r->path[n - 1], v))
			rc = extend_route(r, n + 1, top, under);
	}
	return rc;
}

static int extend_route(struct route *r, int n, int top, int under)
{
	const struct problem *p = r->p;
	int rc = 0;

	if (n == p->length)
		return is_linked(p, r->path[n - 1], r->path[0]) ? r->found(r->arg, r->path) : 0;
	if (under >= 0)
		return visit_stage(r, n, under, top, -1);
	/* Enough stages must be left. */
	for (int stage = top + 1; rc == 0 && stage <= p->n_stages - (p->length - n); stage++) {
		rc = visit_stage(r, n, stage, stage, -1);
		if (rc == 0 && !p->q->ascending && n + 1 < p->length && stage + 1 < p->n_stages)
			rc = visit_stage(r, n, stage + 1, stage + 1, stage);
	}
	return rc;
}

int routes_each(const struct problem *p, const struct solution *s, int data_node,
		long most_hops, int (*found)(void *arg, const int *path), void *arg)
{
	struct route r = { .p = p, .s = s, .hops_left = most_hops, .found = found, .arg = arg };

	r.path[0] = data_node;
	return extend_route(&r, 1, 0, -1);
}
