/* Quotas of visits, for code that builds paths: the first plan (construct.c) and lanes
 * (lanes.c). */
#include "schedule/problem/stage_quota.h"

void stage_quota_init(struct stage_quota *v, const struct problem *p)
{
	*v = (struct stage_quota){ .p = p };
}

void stage_quota_deal(struct stage_quota *v, int first)
{
	const struct problem *p = v->p;
	int others = p->n_stages - 1;
	long extra;

	v->out = p->n_mb - p->n_whole;
	extra = (long)v->out * (p->short_length - 1);
	for (int s = 1; s < p->n_stages; s++) {
		v->need[s] = p->low[s] - p->n_whole;
		extra -= v->need[s];
	}
	for (int k = 0; k < others && extra > 0; k++) {
		int s = 1 + (first - 1 + k) % others;

		if (v->need[s] < p->high[s] - p->n_whole) {
			v->need[s]++;
			extra--;
		}
	}
}

static bool visits_all(const struct problem *p, const int *path)
{
	return problem_path_length(p, path) > p->short_length;
}

void stage_quota_leave(struct stage_quota *v, const struct solution *s, const int *path)
{
	if (visits_all(v->p, path))
		return;
	for (int h = 1; h < v->p->short_length; h++)
		v->need[s->stage_of[path[h]]]++;
	v->out++;
}

void stage_quota_return(struct stage_quota *v, const struct solution *s, const int *path)
{
	if (visits_all(v->p, path))
		return;
	for (int h = 1; h < v->p->short_length; h++)
		v->need[s->stage_of[path[h]]]--;
	v->out--;
}

static bool is_open(const struct stage_quota *v, int stage)
{
	return v->is_whole || v->need[stage] > 0;
}

void stage_quota_count(struct stage_quota *v, const int *path)
{
	v->length = problem_path_length(v->p, path);
	v->is_whole = visits_all(v->p, path);
	for (int s = v->p->n_stages - 1, open = 0, forced = 0; s >= 0; s--) {
		v->open_after[s] = open;
		v->forced_after[s] = forced;
		open += is_open(v, s);
		forced += stage_quota_forces(v, s);
	}
}

bool stage_quota_may_visit(const struct stage_quota *v, int stage, int more)
{
	return is_open(v, stage) && v->open_after[stage] >= more && v->forced_after[stage] <= more;
}

int stage_quota_next(const struct stage_quota *v, int level, const struct visit *last,
		     struct visit *list)
{
	/* Number of visits after this one, and number of stages found so far. */
	int more = v->length - 1 - level, n = 0;

	if (last->owing == OWES_EARLIER) {
		list[0] = (struct visit){ last->top - 1, last->top, HAS_PAID };
		return 1;
	}
	for (int stage = last->top + 1; stage < v->p->n_stages; stage++) {
		if (stage_quota_may_visit(v, stage, more))
			list[n++] = (struct visit){ stage, stage, OWES_NOTHING };
		if (more > 0 && !v->p->q->ascending && stage + 1 < v->p->n_stages &&
		    is_open(v, stage) && stage_quota_may_visit(v, stage + 1, more - 1))
			list[n++] = (struct visit){ stage + 1, stage + 1, OWES_EARLIER };
		if (stage_quota_forces(v, stage))
			break;
	}
	return n;
}
