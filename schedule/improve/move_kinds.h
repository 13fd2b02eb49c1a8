/* move_kinds.h - the kinds of moves, one function each: what moves.h says of them.
 *
 * Each prefers microbatch mb and touches every microbatch before it changes its path. False: it came to nothing, and
 * what was touched is to be undone. Internal to moves.c and the files of the kinds.
 */
#ifndef SCHEDULE_MOVE_KINDS_H
#define SCHEDULE_MOVE_KINDS_H

#include "schedule/improve/moves.h"

static inline int *path_of(const struct moves *m, int mb)
{
	return m->s->path + (size_t)mb * (size_t)m->p->length;
}

static inline int draw_below(struct moves *m, int n)
{
	return (int)rng_below(&m->rng, (uint32_t)n);
}

/* Into the journal: its path as it was. */
void moves_touch(struct moves *m, int mb);
/* Whether any path that was touched is another now. */
bool moves_changed(const struct moves *m);

/* move_plain.c: without times */
bool move_node(struct moves *m, int mb);     /* a visit goes to another node of its stage */
bool move_stage(struct moves *m, int mb);    /* two exchange a stage */
bool move_exchange(struct moves *m, int mb); /* two neighbours in the path change places */
bool move_trade(struct moves *m, int mb);    /* two exchange their nodes of a stage */
bool move_paths(struct moves *m, int mb);    /* two exchange all but their data nodes */
bool move_copy(struct moves *m, int mb);     /* it takes the path of another, whom it pushes out take its own */
bool move_unify(struct moves *m, int mb);    /* copy, for all of its data node */
bool move_roles(struct moves *m, int mb);    /* two nodes exchange stages, whatever mb is */

/* move_timed.c: through the gaps of the timetable */
bool move_reroute(struct moves *m, int mb);       /* by other nodes of its stages */
bool move_unblock(struct moves *m, int mb);       /* what holds it up goes another way */
bool move_stage_reroute(struct moves *m, int mb); /* stage, then both rerouted */

/* move_lanes.c */
bool move_lanes(struct moves *m, int mb);

#endif
