/* Moves that give a microbatch a route through the idle times of the nodes in the present run. */
#include "schedule/improve/move_kinds.h"

#define MOST_WAITS 16

static bool reroute_around(struct moves *m, int mb, int banned)
{
	return timetable_route(m->table, m->s, &m->candidates, mb, banned, 2 * rng_uniform(&m->rng),
			       path_of(m, mb));
}

/* Bans a random node of the present path, so that the new path differs. */
bool move_reroute(struct moves *m, int mb)
{
	if (length_of(m, mb) < 2)
		return false;
	moves_touch(m, mb);
	return reroute_around(m, mb, path_of(m, mb)[1 + draw_below(m, length_of(m, mb) - 1)]);
}

bool move_unblock(struct moves *m, int mb)
{
	struct timetable_wait waits[MOST_WAITS];
	int n = timetable_waits(m->table, mb, waits, MOST_WAITS), y;
	const struct timetable_wait *w;

	if (n == 0)
		return false;
	w = &waits[draw_below(m, n)];
	y = draw_below(m, 2) ? w->blocking : w->waiting;
	moves_touch(m, y);
	return reroute_around(m, y, w->node);
}

bool move_stage_reroute(struct moves *m, int mb)
{
	bool good = move_stage(m, mb);

	for (int i = 0; good && i < m->n_touched; i++)
		good = reroute_around(m, m->touched[i], -1);
	return good;
}
