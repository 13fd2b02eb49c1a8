/* routes.h - the routes of the microbatches of one iteration, and the gradients that each node
 * counted.
 *
 * This module has no clock and no network. The pair (shard, wave) names a microbatch's data. A
 * shard has the same number in the whole run, even if another data node reads it later. Once a
 * gradient of a microbatch has been counted, the microbatch keeps its stages for the iteration. The
 * nodes on its route can still be replaced, because of deaths and cut links.
 *
 * Each node counts a microbatch's gradient exactly once in an iteration, however often the
 * microbatch is attempted (docs/architecture.md). routes_audit checks this against the nodes'
 * reports before every commit. */
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
	/* The microbatch's chain of tasks has ended, and every gradient has been counted */
	bool done;
	float loss;
	/* A cut link has caused a substitute to replace a living node of this microbatch. The
	 * replaced node had not reported that it counted the microbatch. */
	bool moved;
	uint8_t replaced; /* the hop whose node was replaced last */
	/* Number of tasks of the chain (wire/chain.h) up to the furthest task that has ended */
	uint8_t passed;
	bool next_began; /* the task at position `passed` has begun */
	/* Forward and backward passes that substitutes still have to repeat: a bit for each hop */
	uint64_t owed_forward, owed_backward;
	bool owed_loss; /* the data node's substitute still has to repeat the loss */
	/* Bit h: the present node of hop h has counted its gradient */
	uint64_t counted;
	bool counted_loss; /* the present data node has counted the loss */
};

/* Says that a node has counted a gradient or a loss once. The counts of a node are stored in the
 * order in which the node made them. */
struct counted {
	uint32_t microbatch;
	uint8_t kind; /* TASK_BACKWARD: the gradient; TASK_LOSS: the loss */
};

struct counts {
	struct counted *list;
	uint32_t n;
	size_t room;
	uint32_t awaited; /* number of gradients and losses that the node still has to count */
};

struct routes {
	uint64_t version; /* increased by each change of the routes */
	uint32_t n; /* number of microbatches; their ids are 0 .. n - 1 */
	struct microbatch *microbatches;
	uint32_t done;
	uint32_t rerun;
	uint32_t n_nodes;
	struct counts *counts; /* array of n_nodes */
	/* For each stage: number of gradients that are not counted yet */
	uint32_t awaited[ROUTE_HOPS];
};

/* Allocates n microbatches on n_nodes nodes. */
void routes_init(struct routes *r, uint32_t n, uint32_t n_nodes);
void routes_fini(struct routes *r);

/* Takes the routes of a plan. Each data node first gets microbatches of its own shard. Each
 * remaining microbatch gets the lowest shard that has microbatches left. shard_of has n_nodes
 * entries; -1: not a data node. attempt: the first attempt number of every microbatch. -EINVAL:
 * the plan does not have n_shards * per_shard microbatches. */
int routes_from_plan(struct routes *r, const struct plan *p, const int *shard_of, uint32_t n_shards,
		     uint32_t per_shard, uint32_t attempt, struct error *err);

/* Replaces a dead node, whose counted gradients are lost. Every microbatch that visits the node
 * gets a substitute of the same stage and a new attempt number. The microbatch's field `replaced`
 * is set to the hop of the substitute. The substitute is the node with the least predicted delay:
 * the time of the node's unfinished work plus the delays of the links to its neighbours. Work of
 * other nodes stays valid. If the substitute could make slots wait in a circle, the microbatch
 * starts over.
 *
 * usable: array of n_nodes, true for the nodes that hold this iteration's weights. stage_of: array
 * of n_nodes, the stage of each node. Writes the ids of the changed microbatches to `changed`,
 * which has room for n ids, and returns their number. -ENOENT: the stage has no usable node; no
 * route was changed. */
int routes_replace(struct routes *r, uint16_t gone, const bool *usable, const int *stage_of,
		   const struct cluster *c, uint32_t *changed);

/* Returns true if the microbatch still has a transfer between the two nodes, in either direction.
 */
bool routes_need(const struct microbatch *m, uint16_t a, uint16_t b);

/* Routes around a cut link between two living nodes. In every microbatch that needs the link, a
 * substitute replaces one of the two nodes. The substitute has the same stage and has links to its
 * neighbours. A node that has begun nothing of the microbatch is replaced first. A node is never
 * replaced once it has begun a task that ends with a count. `replaced` is set to the hop of the
 * substitute, and the attempt number is new. Other work stays valid, as in routes_replace.
 *
 * Writes the ids of these microbatches to `changed`, which has room for n ids, and returns their
 * number. -ENOENT: some microbatch has no substitute; no route was changed. */
int routes_around(struct routes *r, uint16_t a, uint16_t b, const bool *usable, const int *stage_of,
		  const struct cluster *c, uint32_t *changed);

/* Returns true if the task at chain position t belongs to a substitute that still has to run it. */
bool routes_owes(const struct microbatch *m, uint32_t t);
/* Returns true after the last backward pass of the microbatch */
bool routes_chain_ended(const struct microbatch *m);
uint16_t routes_node_at(const struct microbatch *m, uint32_t t);

/* Resolves a circle of waiting slots. Chooses a microbatch that is in its forward pass and visits
 * stages in swapped order. Starts this microbatch over with ascending stages, which cannot wait
 * in a circle. Returns the microbatch's id; -1: no microbatch has swapped stages. */
int64_t routes_unswap(struct routes *r);

/* Takes a node's report that a task of the microbatch began or ended, in the given attempt. Returns
 * true if this advances the microbatch. */
bool routes_take(struct microbatch *m, uint16_t node, uint32_t attempt, enum work_event what,
		 enum task_kind kind);

void routes_count(struct routes *r, uint16_t node, uint32_t microbatch, uint8_t kind);

/* Returns the node's hop in the microbatch's route; -1: none. */
int routes_hop(const struct microbatch *m, uint16_t node);

/* Returns true if the node should count the task (TASK_LOSS or TASK_BACKWARD) and has not done so
 * yet. */
bool routes_may_count(const struct routes *r, uint16_t node, uint32_t microbatch, uint8_t kind);
/* Returns the first microbatch for which the node has not made all of its counts; -1: there is
 * none. */
int64_t routes_lacking(const struct routes *r, uint16_t node);

/* Returns true if every microbatch is counted at every node of this stage. */
bool routes_stage_counted(const struct routes *r, uint8_t stage);

/* Counts how many microbatches visit each stage. visits has n_stages entries. */
void routes_visits(const struct routes *r, uint16_t *visits, uint32_t n_stages);

/* Marks the nodes that microbatches visit. visited has n_nodes entries. */
void routes_visited(const struct routes *r, bool *visited);

/* Checks that the sums contain each gradient once. Every node on a microbatch's route must have
 * counted its gradient once, and must be in its stage's sum. No other node in a sum may have
 * counted this microbatch. The data node must have counted the loss once. The check adds up the
 * nodes' lists of counts, because the record stores these lists.
 *
 * sum_of has n_nodes entries: the stage whose sum contains the node's counts; -1: none. If the
 * check fails, err names one wrong count. */
int routes_audit(const struct routes *r, const int *sum_of, struct error *err);

#endif
