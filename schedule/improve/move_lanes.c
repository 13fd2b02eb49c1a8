/* The move that takes some lanes out of the run and plans them again (lanes.h). It chooses the
 * lanes; lanes.c finds the new paths. */
#include "schedule/improve/move_kinds.h"

#include <math.h>
#include <string.h>

/* Cost of delaying other microbatches by one second, in seconds of the planned microbatch's own
 * time. */
#define CHARGE 2
/* Largest value that force_lane uses in place of CHARGE. */
#define FIRST_CHARGE 0.5
/* Limit of the seconds by which a move may delay other microbatches, as a multiple of the mean work
 * of a visit. */
#define MOST_DELAY 1.4
#define LENT 3 /* take_lenders takes at most LENT - 1 random lanes out of the run */

/* Takes a part of mb's lane out of the run. The part begins with mb or with a random earlier
 * microbatch, and goes to the end of the lane. */
static void take_lane(struct moves *m, int mb)
{
	while (m->lanes->before[mb] >= 0 && draw_below(m, 2))
		mb = m->lanes->before[mb];
	lanes_take_out(m->lanes, m->s, mb);
}

/* Picks a microbatch that shares a node with this one. */
static int pick_neighbour(struct moves *m, int mb)
{
	const struct slot_timeline *g = &m->lanes->timeline;
	int length = length_of(m, mb);
	int node = path_of(m, mb)[length > 1 ? 1 + draw_below(m, length - 1) : 0];
	const struct slot_timeline_list *list = &g->list[node];

	return g->task[list->first + draw_below(m, list->n)] / g->steps;
}

/* Takes up to LENT - 1 random lanes out of the run, so that the planned microbatches may exchange
 * stages with the microbatches of these lanes. */
static void take_lenders(struct moves *m)
{
	for (int n = draw_below(m, LENT); n > 0; n--)
		take_lane(m, draw_below(m, m->p->n_mb));
}

static void touch_out(struct moves *m)
{
	for (int i = 0; i < m->lanes->n_out; i++)
		moves_touch(m, m->lanes->out[i]);
}

/* Plans the first n microbatches with a small charge for delaying other microbatches, so that they
 * get nearly their best paths. Then removes the lanes that these microbatches delay. */
static bool force_lane(struct moves *m, int n)
{
	float charge = (float)(FIRST_CHARGE * rng_uniform(&m->rng));

	touch_out(m);
	return lanes_put_in(m->lanes, m->s, n, true, charge, INFINITY) &&
	       lanes_eject(m->lanes, m->s);
}

/* Takes a lane out of the run: alone, with a random lane, with lanes that share its nodes, or with
 * the lanes that its best paths delay. */
static bool gather_lanes(struct moves *m, int mb)
{
	int kind = draw_below(m, 4), n;
	int other = pick_neighbour(m, mb), third = pick_neighbour(m, mb);

	take_lane(m, mb);
	n = m->lanes->n_out;
	if (kind == 1)
		take_lane(m, draw_below(m, m->p->n_mb));
	if (kind == 2) {
		take_lane(m, other);
		if (draw_below(m, 2))
			take_lane(m, third);
	}
	if (kind == 3) {
		take_lenders(m);
		return force_lane(m, n);
	}
	return n > 0;
}

static void swap_paths(struct moves *m, int a, int b)
{
	size_t size = (size_t)m->p->length * sizeof(int);
	int was[PLAN_MOST_PATH];

	moves_touch(m, a);
	moves_touch(m, b);
	memcpy(was, path_of(m, a), size);
	memcpy(path_of(m, a), path_of(m, b), size);
	memcpy(path_of(m, b), was, size);
}

/* Exchanges paths so that the microbatches of the data node are sent in the order of their ids, as
 * the execution model requires. */
static void sort_by_sending(struct moves *m, int mb)
{
	int first = mb, place = m->p->mb_slot[mb];
	float *sent_s = m->lanes->sent_s;

	while (first > 0 && m->p->mb_slot[first - 1] == place)
		first--;
	for (int y = first + 1; y < m->p->n_mb && m->p->mb_slot[y] == place; y++) {
		for (int at = y; at > first && sent_s[at - 1] > sent_s[at]; at--) {
			float was = sent_s[at];

			sent_s[at] = sent_s[at - 1];
			sent_s[at - 1] = was;
			swap_paths(m, at, at - 1);
		}
	}
}

bool move_lanes(struct moves *m, int mb)
{
	struct lanes *l = m->lanes;
	bool good = gather_lanes(m, mb), in_turn = draw_below(m, 2);

	touch_out(m);
	good = good &&
	       lanes_put_in(l, m->s, l->n_out, in_turn, CHARGE, (float)MOST_DELAY * l->work_s) &&
	       moves_changed(m);
	for (int i = 0; good && i < l->n_out; i++)
		sort_by_sending(m, l->out[i]);
	lanes_restore(l);
	m->is_planned = good;
	return good;
}
