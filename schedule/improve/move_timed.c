/* Moves through the gaps that the others leave at the nodes, as in the present run. */
#include "schedule/improve/move_kinds.h"

#define MOST_WAITS 16
#define TOGETHER 3 /* microbatches reinserted */
#define CHARGE 4   /* most, for what others are put off by a reinsertion */

static bool reroute(struct moves *m, int mb, int banned)
{
	return timetable_route(m->table, m->s, &m->candidates, mb, banned, 2 * rng_uniform(&m->rng),
			       path_of(m, mb));
}

/* Never by the same nodes as before. */
bool move_reroute(struct moves *m, int mb)
{
	moves_touch(m, mb);
	return reroute(m, mb, path_of(m, mb)[1 + below(m, m->p->length - 1)]);
}

/* What holds a microbatch up goes another way, or what waited there. */
bool move_unblock(struct moves *m, int mb)
{
	struct timetable_wait waits[MOST_WAITS];
	int n = timetable_waits(m->table, mb, waits, MOST_WAITS), y;
	const struct timetable_wait *w;

	if (n == 0)
		return false;
	w = &waits[below(m, n)];
	y = below(m, 2) ? w->blocking : w->waiting;
	moves_touch(m, y);
	return reroute(m, y, w->node);
}

bool move_stage_reroute(struct moves *m, int mb)
{
	bool good = move_stage(m, mb);

	for (int i = 0; good && i < m->n_touched; i++)
		good = reroute(m, m->touched[i], -1);
	return good;
}

/* The next to leave the timetable with those of the list: one of its first's data node, one that
 * kept it waiting, or any. */
static int companion(struct moves *m, const int *list, int n, int kind)
{
	struct timetable_wait waits[MOST_WAITS];
	int next = list[0] + n, n_waits;

	if (kind == 0 && next < m->p->n_mb && path_of(m, next)[0] == path_of(m, list[0])[0])
		return next;
	n_waits = kind == 1 ? timetable_waits(m->table, list[0], waits, MOST_WAITS) : 0;
	if (n_waits > 0) {
		const struct timetable_wait *w = &waits[below(m, n_waits)];

		return below(m, 2) ? w->blocking : w->waiting;
	}
	return below(m, m->p->n_mb);
}

/* Different ones, in an order drawn at random. */
static int gather(struct moves *m, int mb, int *list)
{
	int want = 1 + below(m, TOGETHER), kind = below(m, 3), n = 1;

	list[0] = mb;
	for (int tries = 0; n < want && tries < 2 * TOGETHER; tries++) {
		int y = companion(m, list, n, kind);
		bool is_new = true;

		for (int i = 0; i < n; i++)
			is_new = is_new && list[i] != y;
		if (is_new)
			list[n++] = y;
		else
			kind = 2;
	}
	for (int i = n - 1; i > 0; i--) {
		int j = below(m, i + 1), was = list[i];

		list[i] = list[j];
		list[j] = was;
	}
	return n;
}

bool move_reinsert(struct moves *m, int mb)
{
	int list[TOGETHER], n = gather(m, mb, list);
	double charge = CHARGE * rng_uniform(&m->rng);
	bool good = true;

	for (int i = 0; i < n; i++)
		ruin_recreate_take_out(&m->reinsert, m->s, list[i]);
	for (int i = 0; good && i < n; i++) {
		moves_touch(m, list[i]);
		good = ruin_recreate_put_in(&m->reinsert, m->s, list[i], charge,
				       path_of(m, list[i]));
	}
	ruin_recreate_undo(&m->reinsert);
	return good && moves_changed(m);
}
