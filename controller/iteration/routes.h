/* routes.h - the microbatches of one iteration: their routes, what is done, who counted what.
 *
 * Pure bookkeeping, no clock, no network. A microbatch's data is (shard, wave): the shard of the
 * data node it was dealt to when the run began, wherever its data node is today. Its stages never
 * change within an iteration once a gradient was counted; its nodes change when they die.
 *
 * Exactly once: a node counts a microbatch's gradient once an iteration whatever the attempt
 * (docs/architecture.md); routes_audit proves it from the nodes' reports before every commit.
 */
#ifndef CONTROLLER_ROUTES_H
#define CONTROLLER_ROUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"
#include "wire/msg.h"

struct microbatch {
	struct route route;
	bool done; /* and every gradient of it has been counted */
	bool has_loss;
	float loss;
	/* Given another node though none died: by what was known that had not counted it */
	bool moved;
	uint8_t replaced; /* the hop that got another node when its own died, last */
	uint8_t passed;   /* positions of the chain (wire/chain.h) that ended, by the furthest */
	bool next_began;  /* the position after them has been begun */
	/* Whoever stands in has not ended these: bits of hops, and the data node its loss. */
	uint64_t owed_forward, owed_backward;
	bool owed_loss;
};

/* What one node counted, in its order. */
struct counted {
	uint32_t microbatch;
	uint8_t kind; /* TASK_LOSS or TASK_BACKWARD */
};

struct counts {
	struct counted *list;
	uint32_t n;
	size_t room;
};

struct routes {
	uint32_t n; /* microbatches; ids are 0 .. n - 1 */
	struct microbatch *microbatches;
	uint32_t done;
	uint32_t rerun;
	uint32_t n_nodes;
	struct counts *counts; /* (n_nodes) */
};

/* Room for n microbatches over n_nodes nodes. -ENOMEM. */
int routes_init(struct routes *r, uint32_t n, uint32_t n_nodes);
void routes_fini(struct routes *r);

/* The iteration's routes as a plan has them. Shard and wave are dealt so that a data node gets its
 * own shard's microbatches first (shard_of: (n_nodes) its shard or -1) and the rest go round.
 * attempt is every microbatch's first. -EINVAL: the plan has another number of microbatches than
 * n_shards * per_shard. */
int routes_from_plan(struct routes *r, const struct plan *p, const int *shard_of, uint32_t n_shards,
		     uint32_t per_shard, uint32_t attempt, struct error *err);

/* Node `gone` takes its counted gradients with it: every microbatch that visits it gets another
 * node of the same stage and a new attempt: the node where what is left to do there and the
 * way from and to its neighbours are shortest together. That hop is its `replaced` then. The other
 * nodes' work stays good, unless slots could be waited for in a circle: then the microbatch starts
 * over. usable: (n_nodes) nodes that hold this iteration's weights; stage_of: (n_nodes). Fills
 * changed (room n) with the ids; returns how many, or -ENOENT when the stage has no usable node
 * left: then nothing was changed. */
int routes_replace(struct routes *r, uint16_t gone, const bool *usable, const int *stage_of,
		   const struct cluster *c, uint32_t *changed);

/* Whether something of the microbatch is still to go between the two nodes, one way or the other.
 */
bool routes_need(const struct microbatch *m, uint16_t a, uint16_t b);

/* The link between two nodes that live is not there: every microbatch that needs it gets another
 * node of the same stage, with links to its neighbours, in the place of one of them: of one that
 * has begun nothing there, or else nothing that counts. That hop is its `replaced` then, and its
 * attempt a new one; what was done stays good, as in routes_replace. Fills changed (room n) with
 * the ids; returns how many, or -ENOENT when one of them cannot be helped so: then nothing was
 * changed. */
int routes_around(struct routes *r, uint16_t a, uint16_t b, const bool *usable, const int *stage_of,
		  const struct cluster *c, uint32_t *changed);

/* Whether position t of the chain has ended, at the node that is there now; whether that node
 * stands in, and has not. */
bool routes_ended(const struct microbatch *m, uint32_t t);
bool routes_owes(const struct microbatch *m, uint32_t t);
bool routes_chain_ended(
	const struct microbatch *m); /* its last backward has ended, at whatever node */
uint16_t routes_node_at(const struct microbatch *m, uint32_t t);

/* Undoes a standstill: one microbatch that waits in its forward pass with swapped stages starts
 * again with its stages ascending; it cannot be part of a circle again. Returns its id, or -1. */
int64_t routes_unswap(struct routes *r);

/* A task of the microbatch at this node began, or ended, in the given attempt. Returns true if that
 * brings the microbatch further. */
bool routes_take(struct microbatch *m, uint16_t node, uint32_t attempt, enum work_event what,
		 enum task_kind kind);

int routes_count(struct routes *r, uint16_t node, uint32_t microbatch, uint8_t kind); /* -ENOMEM */

/* The node's place in the microbatch's route; -1 none. */
int routes_hop(const struct microbatch *m, uint16_t node);

/* Whether the route lets the node count this (TASK_LOSS, TASK_BACKWARD), and it has not yet. */
bool routes_may_count(const struct routes *r, uint16_t node, uint32_t microbatch, uint8_t kind);
/* Whether the node is on the route, and lacks a count that it should have made. */
bool routes_lacks(const struct routes *r, uint16_t node, uint32_t microbatch);

/* Whether every microbatch is counted at every node of this stage. */
bool routes_stage_counted(const struct routes *r, uint8_t stage);

/* Whether some microbatch visits it. */
bool routes_visit(const struct routes *r, uint16_t node);

/* Each microbatch counted once by each node of its route, which is in that stage's sum, and by
 * nobody else in any sum; the loss once by its data node. sum_of: (n_nodes) the stage whose sum has
 * what the node counted, -1 none. The message names the first breach. */
int routes_audit(const struct routes *r, const int *sum_of, struct error *err);

#endif
