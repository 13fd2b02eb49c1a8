/* The search of pricing.h, layer by layer: each layer has all states with the same number of tasks
 * done. */
#include "schedule/bound/pricing.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

struct state {
	double free_s; /* time at which the machine is free, overhead included */
	double worth;
	/* End of the forward pass of each microbatch under way, oldest first. */
	double sent_s[PRICING_MOST_SLOTS];
	uint16_t visits[PRICING_STAGES];
};

/* States of the present layer and of the next, in lists by the number of microbatches under way. */
struct pricing {
	int most;
	struct state *now, *next;
	int n_now[PRICING_MOST_SLOTS + 1], n_next[PRICING_MOST_SLOTS + 1];
	int64_t work;
	/* The request that is being answered. */
	const struct pricing_request *request;
	double within_s;
	/* When similar states are merged, a difference of this many seconds counts as much as a
	 * difference of 1 in total price. */
	double per_worth;
};

struct pricing *pricing_new(struct arena *a, int most_states)
{
	struct pricing *t = arena_array(a, 1, sizeof(*t));
	size_t states = (size_t)most_states * (PRICING_MOST_SLOTS + 1);

	t->most = most_states;
	t->now = arena_array(a, states, sizeof(*t->now));
	t->next = arena_array(a, states, sizeof(*t->next));
	return t;
}

int64_t pricing_work(const struct pricing *t)
{
	return t->work;
}

static bool no_worse(const struct state *a, const struct state *b, int under_way)
{
	if (a->free_s > b->free_s || a->worth < b->worth)
		return false;
	for (int i = 0; i < under_way; i++)
		if (a->sent_s[i] > b->sent_s[i])
			return false;
	return true;
}

/* Merges the state into the most similar state of the list, which is full. The result
 * gets the higher total price of the two states, and for each time the earlier one. */
static void merge_state(const struct pricing *t, struct state *list, const struct state *s,
			int under_way)
{
	double closest = INFINITY;
	struct state *into = list;

	for (int i = 0; i < t->most; i++) {
		double apart = fabs(list[i].free_s - s->free_s) +
			       t->per_worth * fabs(list[i].worth - s->worth);

		for (int k = 0; k < under_way; k++)
			apart += fabs(list[i].sent_s[k] - s->sent_s[k]);
		if (apart < closest) {
			closest = apart;
			into = &list[i];
		}
	}
	if (s->worth > into->worth) {
		into->worth = s->worth;
		memcpy(into->visits, s->visits, sizeof(into->visits));
	}
	into->free_s = fmin(into->free_s, s->free_s);
	for (int k = 0; k < under_way; k++)
		into->sent_s[k] = fmin(into->sent_s[k], s->sent_s[k]);
}

/* Returns true if the unsent microbatches, all on the shortest route, can still return within the
 * time. */
static bool may_fit(const struct pricing *t, const struct state *s, int under_way, int unsent)
{
	const struct pricing_request *q = t->request;
	double out_s = q->loss_s + q->route_s[0], back_s = q->backward_s + q->overhead_s;
	double ready_s[PRICING_MOST_SLOTS];

	for (int i = 0; i < q->slots; i++)
		ready_s[i] = i < under_way ? fmax(s->free_s, s->sent_s[i] + out_s) + back_s
					   : s->free_s;
	for (; unsent > 0; unsent--) {
		int first = 0;

		for (int i = 1; i < q->slots; i++)
			if (ready_s[i] < ready_s[first])
				first = i;
		ready_s[first] += q->forward_s + out_s + back_s;
		if (ready_s[first] > t->within_s + q->overhead_s)
			return false;
	}
	return true;
}

static void reach_state(struct pricing *t, const struct state *s, int under_way, int unsent)
{
	struct state *list = t->next + (size_t)under_way * (size_t)t->most;
	int *n = &t->n_next[under_way], kept = 0;

	t->work += *n + 1;
	if (!may_fit(t, s, under_way, unsent))
		return;
	for (int i = 0; i < *n; i++)
		if (no_worse(&list[i], s, under_way))
			return;
	for (int i = 0; i < *n; i++) {
		if (no_worse(s, &list[i], under_way))
			continue;
		if (kept < i)
			list[kept] = list[i];
		kept++;
	}
	*n = kept;
	if (kept < t->most)
		list[(*n)++] = *s;
	else
		merge_state(t, list, s, under_way);
}

/* Lets one of the microbatches under way (index `which`) return. Tries the longest route that ends
 * before the machine is free. Also tries all longer routes, which have a higher price but make the
 * machine wait. Skips returns that would start after latest_s. */
static void take_back(struct pricing *t, const struct state *from, int which, int under_way,
		      int unsent, double latest_s)
{
	const struct pricing_request *q = t->request;
	double out_s = from->sent_s[which] + q->loss_s;
	int first = q->n_routes - 1;

	while (first > 0 && out_s + q->route_s[first] > from->free_s)
		first--;
	for (int i = first; i < q->n_routes; i++) {
		double start_s = fmax(from->free_s, out_s + q->route_s[i]);
		struct state s = *from;

		if (start_s > latest_s)
			return;
		s.free_s = start_s + q->backward_s + q->overhead_s;
		s.worth += q->worth[i];
		memmove(s.sent_s + which, s.sent_s + which + 1,
			(size_t)(under_way - which - 1) * sizeof(s.sent_s[0]));
		for (uint64_t left = q->stages[i]; left; left &= left - 1)
			s.visits[__builtin_ctzll(left)]++;
		reach_state(t, &s, under_way - 1, unsent);
	}
}

static void send_out(struct pricing *t, const struct state *from, int under_way, int unsent)
{
	struct state s = *from;

	s.sent_s[under_way] = s.free_s + t->request->forward_s;
	s.free_s = s.sent_s[under_way] + t->request->overhead_s;
	reach_state(t, &s, under_way + 1, unsent - 1);
}

/* Adds one task to every state in which `tasks` tasks are done. The task must start early enough
 * that the machine can still do all its remaining tasks in time. */
static void take_layer(struct pricing *t, int tasks)
{
	const struct pricing_request *q = t->request;
	double send_s = q->forward_s + q->overhead_s, back_s = q->backward_s + q->overhead_s;

	memset(t->n_next, 0, sizeof(t->n_next));
	for (int under_way = tasks % 2; under_way <= q->slots && under_way <= tasks;
	     under_way += 2) {
		int unsent = q->n - (tasks + under_way) / 2;
		double latest_s = t->within_s + q->overhead_s - unsent * (send_s + back_s) -
				  under_way * back_s;

		for (int i = 0; i < t->n_now[under_way]; i++) {
			const struct state *from =
				&t->now[(size_t)under_way * (size_t)t->most + (size_t)i];

			for (int which = 0; which < under_way; which++)
				take_back(t, from, which, under_way, unsent, latest_s);
			if (unsent > 0 && under_way < q->slots && from->free_s <= latest_s)
				send_out(t, from, under_way, unsent);
		}
	}
}

double pricing_most(struct pricing *t, const struct pricing_request *q, double within_s,
		    int *visits)
{
	double span = q->worth[q->n_routes - 1] - q->worth[0];
	const struct state *best;

	t->request = q;
	t->within_s = within_s;
	t->per_worth = span > 0 ? (q->route_s[q->n_routes - 1] - q->route_s[0]) / span : 0;
	memset(t->n_now, 0, sizeof(t->n_now));
	memset(t->now, 0, sizeof(*t->now)); /* the first state: time 0, nothing done */
	t->n_now[0] = 1;
	for (int tasks = 0; tasks < 2 * q->n; tasks++) {
		struct state *were = t->now;

		take_layer(t, tasks);
		t->now = t->next;
		t->next = were;
		memcpy(t->n_now, t->n_next, sizeof(t->n_now));
	}
	best = t->now;
	for (int i = 1; i < t->n_now[0]; i++)
		if (t->now[i].worth > best->worth)
			best = &t->now[i];
	if (t->n_now[0] == 0)
		return -INFINITY;
	for (int stage = 0; stage < PRICING_STAGES; stage++)
		visits[stage] += best->visits[stage];
	return best->worth;
}
