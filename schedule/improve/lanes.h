/* lanes.h - takes whole lanes out of a run and plans them anew (large neighbourhood search with
 * prioritised planning, as in multi-agent path finding: MAPF-LNS, Li et al. 2021). For large clusters.
 *
 * A lane is a slot of a data node: the microbatches that use it one after the other, each sent when
 * the one before it is home. Who is out with a microbatch are therefore those after it in its lane.
 * Those that are out share the stages they visited before, so exposure stays as it is. In the order
 * in which they are sent each gets the path, through nodes, stages and exchanges of neighbours, that
 * brings it home first through the gaps that everyone else leaves: a beam over the visits. How long
 * the way home from a visit takes is nearly known beforehand, so it looks there already whether the
 * node is free again for B, and has a slot until then. The nodes of a way that then does not fit are
 * replaced one by one.
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

#define LANES_MOST 24 /* microbatches out at a time */

struct lanes_state; /* of the search for a path */

/* A way on to a node. */
struct lanes_hop {
	int32_t node; /* -1 after the last */
	float out_s;
	float more_s; /* there and back, F and B */
};

struct lanes {
	const struct problem *p;
	struct slot_timeline timeline;
	struct arena arena;      /* of the arrays below */
	float *sent_s, *home_s;  /* (n_mb) start of the first F, end of the last B */
	float *was_sent_s;       /* (n_mb) as they were filled */
	int *next, *before;      /* (n_mb) in its lane; -1: none */
	float work_s;            /* F and B of a node, the mean */
	float hop_s;             /* the least that one visit more takes */
	struct candidate_lists candidates;
	float *away_s;           /* (n_nodes) from and to the data node of the one that is put in */
	struct lanes_hop *hops;  /* (n_nodes, n_stages, near.most) nearest first */
	/* The move. */
	int out[LANES_MOST], n_out; /* taken out */
	float was_s[LANES_MOST];    /* when they were home */
	float back_s[LANES_MOST];   /* and will be; stays after lanes_restore, with n_back */
	int n_back;
	bool *is_out;               /* (n_mb) and not yet back */
	float over_s;               /* that others are put off */
	int in_way[LANES_MOST], n_in_way; /* they, as far as there is room */
	struct stage_quota quota;       /* of those still out */
	struct lanes_state *states; /* (length, VISIT_OWINGS * n_nodes) */
	int *place;                 /* the same shape as a level: among its states; -1: not there */
};

/* -ENOMEM. Hops and times are to be filled in. */
int lanes_init(struct lanes *l, const struct problem *p);
void lanes_fini(struct lanes *l);
/* For the assignment of s. */
void lanes_fill_hops(struct lanes *l, const struct solution *s);
/* From the simulation's last run, which must have come to its end. */
void lanes_fill(struct lanes *l, const struct fast_simulate *e);

/* The microbatch, and those after it in its lane, leave; none where LANES_MOST would be too few. */
void lanes_take_out(struct lanes *l, const struct solution *s, int mb);
/* Of the first n that were taken out those that are still out come back; their paths are written.
 * The one that is sent first is first, or with in_turn the one that was taken out first, as far as lanes
 * allow. home_s then says when they are home if the rest keep their times, over_s by how much
 * these would be put off; a second of that weighs `charge` seconds of a microbatch's own. False: no
 * way, or more than `most_s` are put off. */
bool lanes_put_in(struct lanes *l, const struct solution *s, int n, bool in_turn, float charge,
		  float most_s);
/* Microbatches that have been put off so far leave as well. False: too many, or one that has just come
 * back. */
bool lanes_eject(struct lanes *l, const struct solution *s);
/* As before the first was taken out, but for the paths. */
void lanes_restore(struct lanes *l);

#endif
