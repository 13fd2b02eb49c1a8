/* move_kinds.h - one function for each kind of move (moves.h describes the kinds).
 *
 * Each function preferably moves microbatch mb. It calls moves_touch for a microbatch before it
 * changes the path of this microbatch. It returns false if no legal move results; the caller then
 * undoes the touched paths. Internal to moves.c and the files of the kinds.
 */
#ifndef SCHEDULE_MOVE_KINDS_H
#define SCHEDULE_MOVE_KINDS_H

#include "schedule/improve/moves.h"

static inline int *path_of(const struct moves *m, int mb)
{
	return m->s->path + (size_t)mb * (size_t)m->p->length;
}

static inline int length_of(const struct moves *m, int mb)
{
	return problem_path_length(m->p, path_of(m, mb));
}

static inline int draw_below(struct moves *m, int n)
{
	return (int)rng_below(&m->rng, (uint32_t)n);
}

/* Copies the microbatch's path to the journal, if it is not there yet. */
void moves_touch(struct moves *m, int mb);
/* Returns true if any touched path has changed. */
bool moves_changed(const struct moves *m);

/* ---- move_plain.c: moves that do not depend on the times of the run ---- */

bool move_node(struct moves *m, int mb);     /* a visit goes to another node of the same stage */
bool move_stage(struct moves *m, int mb);    /* two microbatches exchange a stage */
bool move_exchange(struct moves *m, int mb); /* two neighbours in the path change places */
/* Two microbatches exchange their nodes of one stage. */
bool move_trade(struct moves *m, int mb);
/* Two microbatches exchange all their nodes except the data nodes. */
bool move_paths(struct moves *m, int mb);
/* Microbatch mb takes the path of another microbatch of its data node. Each microbatch that mb
 * displaces takes over a visit that mb gives up. */
bool move_copy(struct moves *m, int mb);
/* Like move_copy, for all microbatches of the data node. */
bool move_unify(struct moves *m, int mb);
bool move_roles(struct moves *m, int mb); /* two nodes exchange their stages, whatever mb is */

/* ---- move_timed.c: moves that use idle times in the timetable ---- */

/* The path of mb gets other nodes of the same stages. */
bool move_reroute(struct moves *m, int mb);
/* Picks a microbatch that waits for another microbatch, and gives one of the two a new route. */
bool move_unblock(struct moves *m, int mb);
/* Like move_stage; then both microbatches get new routes. */
bool move_stage_reroute(struct moves *m, int mb);

/* ---- move_lanes.c ---- */

/* Plans whole lanes of a data node again. */
bool move_lanes(struct moves *m, int mb);

#endif
