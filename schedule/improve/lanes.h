/* lanes.h - removes whole lanes from a run and plans them again. Used for large clusters. This is
 * a large neighbourhood search with prioritised planning, as in multi-agent path finding
 * (MAPF-LNS, Li et al. 2021).
 *
 * A lane is the list of the microbatches that take turns in one slot of a data node. The data
 * node sends each of them when the one before it has finished. If a microbatch is taken out of
 * the run, the later microbatches of its lane are taken out too. Together, the new paths visit
 * each stage as often as the old paths did, so exposure stays the same.
 *
 * The microbatches are planned in the order of sending. Each gets the path on which it finishes
 * first, with its tasks in idle times of the nodes. A beam search over nodes, stages and
 * exchanges of neighbours finds this path. The time from a visit's F to its B is nearly known
 * beforehand. The search can therefore check at once if the node will be idle for B and has an
 * unused slot until then. If the path still delays other microbatches, some of its nodes are
 * replaced.
 *
 * Internal to schedule/.
 */
#ifndef SCHEDULE_LANES_H
#define SCHEDULE_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "schedule/improve/slot_timeline.h"
#include "schedule/problem/candidate_lists.h"
#include "schedule/problem/problem.h"
#include "schedule/problem/stage_quota.h"

#define LANES_MOST 24 /* largest number of microbatches taken out at a time */

struct lanes_state; /* a state of the search for a path, defined in lanes.c */

/* A hop to a node. */
struct lanes_hop {
	int32_t node; /* node of the hop; -1 after the last */
	float out_s;
	/* Seconds of the round trip to the node, with its forward and backward task */
	float more_s;
};

struct lanes {
	const struct problem *p;
	struct slot_timeline timeline;
	struct arena arena;      /* owns the arrays below */
	/* arrays of n_mb: start of each microbatch's first forward task, and end of its last
	 * backward task */
	float *sent_s, *home_s;
	float *was_sent_s; /* array of n_mb: sent_s at the last lanes_fill */
	/* Arrays of n_mb: next and previous microbatch in the lane; -1: none */
	int *next, *before;
	/* Seconds of one forward and one backward task together: mean over all nodes */
	float work_s;
	float hop_s; /* least seconds that one more visit adds to a path */
	struct candidate_lists candidates;
	/* Array of n_nodes: seconds of the round trip to the data node whose microbatch is being
	 * planned. */
	float *away_s;
	/* array of (n_nodes, n_stages, candidates.most): hops from each node, nearest first */
	struct lanes_hop *hops;
	/* State of the move in progress. */
	/* Microbatches taken out by this move. They stay in the list after they have got a new
	 * path. */
	int out[LANES_MOST], n_out;
	float was_s[LANES_MOST]; /* home_s of each microbatch in `out` before this move */
	/* home_s of each microbatch in `out` with its new path, saved by lanes_restore. */
	float back_s[LANES_MOST];
	int n_back; /* number of entries of back_s */
	/* array of n_mb; true: the microbatch is taken out and has no new path yet */
	bool *is_out;
	float over_s;               /* seconds by which new paths delay other microbatches */
	/* The delayed microbatches; if there are more than LANES_MOST, only the first
	 * LANES_MOST */
	int in_way[LANES_MOST], n_in_way;
	struct stage_quota quota; /* visits of stages that the microbatches taken out may make */
	/* Array of (length, VISIT_OWINGS * n_nodes): states of the search */
	struct lanes_state *states;
	/* array of VISIT_OWINGS * n_nodes, for each node and value of `owing`: index of the state
	 * in its level; -1: there is no such state */
	int *place;
};

/* Allocates lanes. Hops and times are empty until lanes_fill_hops and lanes_fill. */
void lanes_init(struct lanes *l, const struct problem *p);
void lanes_fini(struct lanes *l);
/* Fills in the hops for the assignment of s. */
void lanes_fill_hops(struct lanes *l, const struct solution *s);
/* Fills in the times of the simulation's last run, which must be complete. */
void lanes_fill(struct lanes *l, const struct fast_simulate *e);

/* Takes the microbatch and all later microbatches of its lane out of the run. Takes out none if
 * there are more than LANES_MOST. */
void lanes_take_out(struct lanes *l, const struct solution *s, int mb);
/* Plans the microbatches among out[0] .. out[n - 1] that have no path yet, and writes their paths.
 *
 * A microbatch is planned after the one before it in its lane. Apart from this, microbatches are
 * planned in the order in which they are sent. With in_turn, they are instead planned in the order
 * in which they were taken out. home_s gets their finish times, which hold if all other
 * microbatches keep their times. over_s gets the seconds by which other microbatches are delayed.
 * For the search, one second of such a delay costs as much as `charge` seconds of the microbatch's
 * own time.
 *
 * Returns false if a microbatch finds no path, or if over_s exceeds most_s. */
bool lanes_put_in(struct lanes *l, const struct solution *s, int n, bool in_turn, float charge,
		  float most_s);
/* Takes the delayed microbatches and the rest of their lanes out of the run. Returns false if there
 * are too many, or if one of them has already got a new path in this move. */
bool lanes_eject(struct lanes *l, const struct solution *s);
/* Ends the move: restores everything except the paths to its state before the first microbatch
 * was taken out. */
void lanes_restore(struct lanes *l);

#endif
