/* Summarises the iterations of each plan. The Compare view shows the predicted and the measured
 * times. */
#include "tui/run/used_plans.h"

#include <string.h>

enum { SAMPLE = 256, PLANS_MOST = 64 /* plans older than the newest PLANS_MOST are ignored */ };

/* Summarises the iterations of one plan: from *from up to, but not including, *to. */
static void fill_ran(struct used_plan *r, const struct msg_see_iteration *from,
		     const struct msg_see_iteration *to)
{
	float took[SAMPLE], sync[SAMPLE];
	const struct msg_see_iteration *last = to - 1;
	size_t n = 0;

	r->epoch = last->epoch;
	memcpy(r->algorithm, last->algorithm, sizeof(r->algorithm));
	r->n_stages = last->n_stages;
	r->path_length = last->path_length;
	r->skip_share = last->skip_share;
	r->first = from->iteration;
	r->last = last->iteration;
	r->predicted_s = last->predicted_s;
	r->predicted_sync_s = last->predicted_sync_s;
	for (const struct msg_see_iteration *it = last; it >= from && n < SAMPLE; it--, n++) {
		took[n] = it->iteration_s;
		sync[n] = it->sync_s;
	}
	r->measured_s = state_median(took, n);
	r->measured_sync_s = state_median(sync, n);
}

/* Lists the newest plans, `room` at most. */
static uint32_t list_all(const struct state *s, struct used_plan *list, uint32_t room)
{
	const struct msg_see_plan *live = &s->plan.see;
	size_t to = s->history.n_iterations;
	uint32_t n = 0;

	if (s->plan.known && (to == 0 || s->history.iterations[to - 1].epoch != live->epoch)) {
		list[n] = (struct used_plan){ .epoch = live->epoch,
					      .n_stages = live->n_stages,
					      .path_length = live->path_length,
					      .skip_share = live->skip_share,
					      .predicted_s = live->iteration_s,
					      .predicted_sync_s = live->sync_s };
		memcpy(list[n++].algorithm, live->algorithm, sizeof(live->algorithm));
	}
	while (to > 0 && n < room) {
		size_t from = to - 1;

		while (from > 0 && s->history.iterations[from - 1].epoch ==
					   s->history.iterations[to - 1].epoch)
			from--;
		fill_ran(&list[n++], &s->history.iterations[from], &s->history.iterations[to]);
		to = from;
	}
	return n;
}

static bool has_newer(const struct used_plan *list, uint32_t i)
{
	for (uint32_t k = 0; k < i; k++)
		if (list[k].n_stages == list[i].n_stages &&
		    list[k].path_length == list[i].path_length &&
		    list[k].skip_share == list[i].skip_share &&
		    strcmp(list[k].algorithm, list[i].algorithm) == 0)
			return true;
	return false;
}

uint32_t used_plans_list(const struct state *s, struct used_plan *list, uint32_t most)
{
	struct used_plan all[PLANS_MOST];
	uint32_t n = list_all(s, all, PLANS_MOST);

	while (n > most) {
		uint32_t out = n - 1;

		while (out > 0 && !has_newer(all, out))
			out--;
		/* The oldest plan that has a newer plan of its kind is dropped. If there is none,
		 * the oldest plan of all is dropped. */
		out = out > 0 ? out : n - 1;
		memmove(&all[out], &all[out + 1], (--n - out) * sizeof(*all));
	}
	memcpy(list, all, n * sizeof(*list));
	return n;
}
