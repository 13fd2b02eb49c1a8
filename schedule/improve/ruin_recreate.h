/* ruin_recreate.h - takes microbatches out of the timetable and puts them back another way (ruin and
 * recreate). Internal to schedule/.
 *
 * Those that are out share the stages they visited before, so exposure stays as it is. Each in
 * turn gets the path, through nodes, stages and exchanges of neighbours, that brings it home
 * first if everyone who is in keeps their times: a beam over the visits. A stage that has as many
 * visits left as microbatches are out must be visited by each of them.
 */
#ifndef SCHEDULE_RUIN_RECREATE_H
#define SCHEDULE_RUIN_RECREATE_H

#include "schedule/improve/timetable.h"
#include "schedule/problem/stage_quota.h"

#define RUIN_RECREATE_MOST TIMETABLE_MORE /* microbatches out at a time */

struct ruin_recreate_state; /* of the search for a path */

struct ruin_recreate {
	const struct problem *p;
	struct timetable *t;     /* borrowed; as before after an undo */
	int out[RUIN_RECREATE_MOST], n_out; /* taken out */
	struct stage_quota quota;          /* of those still out */
	struct ruin_recreate_state *states; /* (length, VISIT_OWINGS * n_nodes) */
	int *place; /* (VISIT_OWINGS * n_nodes) among the states of a level; -1: not there */
};

/* -ENOMEM. */
int ruin_recreate_init(struct ruin_recreate *r, struct timetable *t);
void ruin_recreate_fini(struct ruin_recreate *r);

/* The path is the one that s has. RUIN_RECREATE_MOST of them at most, all before the first is put back. */
void ruin_recreate_take_out(struct ruin_recreate *r, const struct solution *s, int mb);
/* Puts one of them back and writes its path; `charge` as for timetable_route. False: no way. The
 * last is not put into the timetable any more. */
bool ruin_recreate_put_in(struct ruin_recreate *r, const struct solution *s, int mb, double charge,
		     int *path);
/* The timetable is again as it was before the first was taken out. */
void ruin_recreate_undo(struct ruin_recreate *r);

#endif
