/* moves.h - small changes of a solution that keep every rule, and taking them back.
 *
 * Exposure is tight (as many visits as there are places), so a single path can rarely change
 * its stages alone: what one microbatch leaves, another takes. The moves:
 *
 *   node     one visit goes to another node of the same stage
 *   stage    two microbatches exchange a stage that only one of each visits; both are then
 *            rerouted, or not
 *   exchange two neighbours in a path change places, where CC2 allows
 *   reroute  the nodes that bring the microbatch back first, everyone else's times as they are
 *   unblock  what holds the microbatch up, or what waited there, goes another way
 *   trade    two microbatches exchange their nodes of one stage
 *   paths    two microbatches exchange all but their data nodes
 *   copy     a microbatch takes the path of another of its data node; those it pushes out take
 *            the places it left (ejection)
 *   unify    the same for all microbatches of a data node at once
 *   lanes    in large clusters, in place of all these: whole lanes are planned anew (lanes.h)
 *   roles    two nodes exchange stages and all their visitors (where the assignment is free)
 *
 * Where microbatches are tied, those tied to the ones a move has changed take their new paths.
 *
 * Internal to schedule/.
 */
#ifndef SCHEDULE_MOVES_H
#define SCHEDULE_MOVES_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/rng.h"
#include "schedule/improve/lanes.h"
#include "schedule/problem/candidate_lists.h"
#include "schedule/problem/problem.h"
#include "schedule/improve/timetable.h"

struct moves {
	const struct problem *p;
	struct solution *s;      /* borrowed; changed in place */
	struct timetable *table; /* borrowed: of the run of s; NULL: no reroutes */
	struct lanes *lanes;     /* borrowed, the same; NULL: none are planned */
	struct rng rng;
	const int *tied; /* (n_mb) borrowed: the next in a ring of microbatches with the same path;
			  * NULL: none are tied */
	struct arena arena; /* of the arrays below */
	int *visits; /* (n_stages) exposure */
	/* The journal of the move in progress. */
	int n_touched;
	int *touched;     /* (n_mb) microbatches */
	bool *is_touched; /* (n_mb) */
	int *saved;       /* (n_mb, length) their paths before, in the order of touched */
	int left_stage, joined_stage; /* exposure moved from, to; -1: none */
	bool is_planned; /* lanes->was_s and back_s say when those it is about are home */
	int role_a, role_b;           /* nodes that exchanged roles; -1: none */
	struct candidate_lists candidates; /* as of the last moves_refresh; none where lanes are planned */
};

/* All borrowed; at most one of table and lanes is given, and is kept filled by the caller. -ENOMEM. */
int moves_init(struct moves *m, const struct problem *p, struct solution *s,
	       struct timetable *table, struct lanes *lanes, struct rng rng);
void moves_fini(struct moves *m);

/* Counts exposure and lists near nodes anew: after the solution was changed from outside. */
void moves_refresh(struct moves *m);

/* Tries to change the solution, preferring microbatch mb; false: this try came to nothing and
 * the solution is as before. After true the caller keeps or undoes. */
bool moves_propose(struct moves *m, int mb);
/* As moves_propose, only with the moves that take less than a microsecond, however large the cluster. */
bool moves_propose_plain(struct moves *m, int mb);
/* The move stays; or all that it touched is as before it. */
void moves_keep(struct moves *m);
void moves_undo(struct moves *m);

#endif
