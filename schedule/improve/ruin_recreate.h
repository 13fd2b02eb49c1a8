/* ruin_recreate.h - takes microbatches out of the timetable and puts them back another way (ruin and
 * recreate). Internal to schedule/.
 *
 * Those that are out share the stages they visited before, so exposure stays as it is. Each in
 * turn gets the path, through nodes, stages and exchanges of neighbours, that brings it home
 * first if everyone who is in keeps their times: a beam over the visits. A stage that has as many
 * visits left as microbatches are out must be visited by each of them.
 */
#ifndef SCHEDULE_REINSERT_H
#define SCHEDULE_REINSERT_H

#include "schedule/improve/timetable.h"
#include "schedule/problem/stage_quota.h"

#define REINSERT_MOST TIMETABLE_MORE /* microbatches out at a time */

struct reinsert_state; /* of the search for a path */

struct reinsert {
	const struct problem *p;
	struct timetable *t;     /* borrowed; as before after an undo */
	int out[REINSERT_MOST], n_out; /* taken out */
	struct visits visits;          /* of those still out */
	struct reinsert_state *states; /* (length, VISITS_OWING * n_nodes) */
	int *place; /* (VISITS_OWING * n_nodes) among the states of a level; -1: not there */
};

/* -ENOMEM. */
int reinsert_init(struct reinsert *r, struct timetable *t);
void reinsert_fini(struct reinsert *r);

/* The path is the one that s has. REINSERT_MOST of them at most, all before the first is put back. */
void reinsert_take_out(struct reinsert *r, const struct solution *s, int mb);
/* Puts one of them back and writes its path; `charge` as for timetable_route. False: no way. The
 * last is not put into the timetable any more. */
bool reinsert_put_in(struct reinsert *r, const struct solution *s, int mb, double charge,
		     int *path);
/* The timetable is again as it was before the first was taken out. */
void reinsert_undo(struct reinsert *r);

#endif
