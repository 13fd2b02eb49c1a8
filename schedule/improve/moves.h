/* moves.h - proposes small changes of a solution that keep every rule, and takes them back.
 *
 * Exposure (CC3) fixes the number of visits of each stage. Therefore, if a path gives up a visit,
 * another path nearly always has to take over this visit. The moves are:
 *
 *   node     one visit goes to another node of the same stage
 *   stage    two microbatches exchange two stages, each of which only one of the two visits;
 *            some of these moves also reroute both microbatches
 *   exchange two neighbours in a path change places, if CC2 allows it
 *   reroute  the microbatch takes the nodes on which it finishes first, if all other microbatches
 *            keep their times
 *   unblock  a microbatch waits for another one; one of the two is rerouted
 *   trade    two microbatches exchange their nodes of one stage
 *   paths    two microbatches exchange all nodes but their data nodes
 *   copy     a microbatch takes the path of another microbatch of its data node; each displaced
 *            microbatch takes over a visit that the first one gives up (ejection)
 *   unify    copy, for all microbatches of a data node at once
 *   lanes    in large clusters, in place of all moves above: whole lanes are planned again
 *            (lanes.h)
 *   roles    two nodes exchange their stages and all their visits (only with a free assignment)
 *
 * Tied microbatches have the same path. If a move changes the path of one, all microbatches tied
 * to it take the new path.
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
	struct solution *s;      /* the solution to change, borrowed */
	struct timetable *table; /* timetable of the run of s, borrowed; NULL: no move reroutes */
	struct lanes *lanes;     /* lanes of the run of s, borrowed; NULL: no move plans lanes */
	struct rng rng;
	/* Array of n_mb, borrowed: the next microbatch in a ring of microbatches with the same
	 * path; NULL: none are tied */
	const int *tied;
	struct arena arena; /* owns the arrays below */
	int *visits;        /* array of n_stages: number of visits of each stage (exposure) */
	/* State of the move in progress, with the journal of the paths that it has touched. */
	int n_touched;
	int *touched;     /* array of n_mb: the touched microbatches */
	bool *is_touched; /* array of n_mb */
	/* Array of (n_mb, length): paths before the move, in the order of `touched` */
	int *saved;
	/* The stage whose exposure fell by one, and the stage whose exposure rose by one; -1:
	 * none. */
	int left_stage, joined_stage;
	/* true: the move has planned lanes, and lanes->was_s and lanes->back_s have the
	 * microbatches' finish times before the move and after the move. */
	bool is_planned;
	int role_a, role_b; /* the two nodes that exchanged their stages; -1: none */
	/* Candidate nodes for hops, filled by moves_refresh; empty if moves plan lanes. */
	struct candidate_lists candidates;
};

/* All pointers are borrowed. At most one of table and lanes is given; the caller keeps it filled.
 */
void moves_init(struct moves *m, const struct problem *p, struct solution *s,
		struct timetable *table, struct lanes *lanes, struct rng rng);
void moves_fini(struct moves *m);

/* Counts the visits of each stage and lists near nodes again. Call it after a change of the
 * solution that is not a move. */
void moves_refresh(struct moves *m);

/* Tries one move that preferably concerns microbatch mb. Returns false if no legal move resulted;
 * the solution is then unchanged. If it returns true, the caller must call moves_keep or
 * moves_undo. */
bool moves_propose(struct moves *m, int mb);
/* Like moves_propose, but tries only moves that take less than a microsecond in any cluster. */
bool moves_propose_plain(struct moves *m, int mb);
/* moves_keep makes the move permanent; moves_undo takes all of it back. */
void moves_keep(struct moves *m);
void moves_undo(struct moves *m);

#endif
