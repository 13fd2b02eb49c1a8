/* moves.h - proposes small changes of a solution that keep every rule, and takes them back.
 *
 * Exposure (CC3) fixes the number of visits of each stage, so a path can rarely change its stages
 * alone: another path must take the visit that it gives up. The moves:
 *
 *   node     one visit goes to another node of the same stage
 *   stage    two microbatches exchange stages, each giving one that the other does not visit;
 *            some of these moves also reroute both
 *   exchange two neighbours in a path change places, if CC2 allows it
 *   reroute  the microbatch takes the nodes that bring it home first if all others keep their
 *            times
 *   unblock  the microbatch that causes a wait, or the one that waits, is rerouted
 *   trade    two microbatches exchange their nodes of one stage
 *   paths    two microbatches exchange all nodes but their data nodes
 *   copy     a microbatch takes the path of another of its data node; the microbatches that it
 *            displaces take the visits that it gave up (ejection)
 *   unify    copy, for all microbatches of a data node at once
 *   lanes    in large clusters, instead of all these: whole lanes are planned again (lanes.h)
 *   roles    two nodes exchange stages and all their visitors (only with a free assignment)
 *
 * If microbatches are tied, all those tied to a changed microbatch take its new path.
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
	struct timetable *table; /* borrowed: timetable of the run of s; NULL: no reroutes */
	struct lanes *lanes;     /* borrowed: lanes of the run of s; NULL: no lanes */
	struct rng rng;
	const int *tied; /* (n_mb) borrowed: the next in a ring of microbatches with the same path;
			  * NULL: none are tied */
	struct arena arena; /* owns the arrays below */
	int *visits; /* (n_stages) exposure */
	/* The journal of the move in progress. */
	int n_touched;
	int *touched;     /* (n_mb) microbatches */
	bool *is_touched; /* (n_mb) */
	int *saved;       /* (n_mb, length) paths before the move, in the order of touched */
	/* Stages whose exposure fell by one and rose by one; -1: none. */
	int left_stage, joined_stage;
	/* The move is one of lanes: lanes->was_s and back_s have the times of return. */
	bool is_planned;
	int role_a, role_b;           /* nodes that exchanged roles; -1: none */
	/* Candidates for hops, filled by moves_refresh; empty with lanes. */
	struct candidate_lists candidates;
};

/* All pointers are borrowed. At most one of table and lanes is given; the caller keeps it filled.
 */
void moves_init(struct moves *m, const struct problem *p, struct solution *s,
		struct timetable *table, struct lanes *lanes, struct rng rng);
void moves_fini(struct moves *m);

/* Counts exposure and lists near nodes again. Needed after a change of the solution that is not a
 * move. */
void moves_refresh(struct moves *m);

/* Tries one move that preferably concerns microbatch mb. Returns false if no legal move resulted;
 * the solution is then unchanged. After true the caller calls moves_keep or moves_undo. */
bool moves_propose(struct moves *m, int mb);
/* Like moves_propose, but tries only moves that take less than a microsecond in any cluster. */
bool moves_propose_plain(struct moves *m, int mb);
/* Makes the move permanent, or takes all of it back. */
void moves_keep(struct moves *m);
void moves_undo(struct moves *m);

#endif
