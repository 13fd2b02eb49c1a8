/* Quotas of visits, for builders of paths: the first plan (construct.c) and lanes (lanes.c). */
#include "schedule/problem/stage_quota.h"

void stage_quota_init(struct stage_quota *v, const struct problem *p)
{
	*v = (struct stage_quota){ .p = p };
}

void stage_quota_deal(struct stage_quota *v, int first)
{
	const struct problem *p = v->p;
	long extra = (long)p->n_mb * (p->length - 1);
	int others = p->n_stages - 1;

	v->out = p->n_mb;
	for (int s = 1; s < p->n_stages; s++) {
		v->need[s] = p->low[s];
		extra -= p->low[s];
	}
	for (int k = 0; k < others && extra > 0; k++) {
		int s = 1 + (first - 1 + k) % others;

		if (v->need[s] < p->high[s]) {
			v->need[s]++;
			extra--;
		}
	}
}

void stage_quota_leave(struct stage_quota *v, const struct solution *s, const int *path)
{
	for (int h = 1; h < v->p->length; h++)
		v->need[s->stage_of[path[h]]]++;
	v->out++;
}

void stage_quota_return(struct stage_quota *v, const struct solution *s, const int *path)
{
	for (int h = 1; h < v->p->length; h++)
		v->need[s->stage_of[path[h]]]--;
	v->out--;
}

void stage_quota_count(struct stage_quota *v)
{
	for (int s = v->p->n_stages - 1, open = 0, forced = 0; s >= 0; s--) {
		v->open_after[s] = open;
		v->forced_after[s] = forced;
		open += v->need[s] > 0;
		forced += v->need[s] == v->out;
	}
}

bool stage_quota_may_visit(const struct stage_quota *v, int stage, int more)
{
	return v->need[stage] > 0 && v->open_after[stage] >= more && v->forced_after[stage] <= more;
}

int stage_quota_next(const struct stage_quota *v, int level, const struct visit *last,
		     struct visit *list)
{
	/* Number of visits after this one; number of stages found. */
	int more = v->p->length - 1 - level, n = 0;

	if (last->owing == OWES_EARLIER) {
		list[0] = (struct visit){ last->top - 1, last->top, HAS_PAID };
		return 1;
	}
	for (int stage = last->top + 1; stage < v->p->n_stages; stage++) {
		if (stage_quota_may_visit(v, stage, more))
			list[n++] = (struct visit){ stage, stage, OWES_NOTHING };
		if (more > 0 && !v->p->q->ascending && stage + 1 < v->p->n_stages &&
		    v->need[stage] > 0 && stage_quota_may_visit(v, stage + 1, more - 1))
			list[n++] = (struct visit){ stage + 1, stage + 1, OWES_EARLIER };
		if (v->need[stage] == v->out)
			break;
	}
	return n;
}
