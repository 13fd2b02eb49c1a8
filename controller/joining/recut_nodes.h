/* recut_nodes.h - assigns the nodes of a run to the stages that an operator named. If the
 * controller chooses the stages (stage_choice.h), the choice assigns the nodes too. */
#ifndef CONTROLLER_JOINING_RECUT_NODES_H
#define CONTROLLER_JOINING_RECUT_NODES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/config.h"

struct recut_order;

struct recut_nodes {
	const struct model_config *model; /* the model, divided into the new stages */
	uint32_t n;                       /* number of nodes */
	const int *was;                   /* array of n: the former stage of each node; < 0: none */
	const bool *here;                 /* array of n: nodes that can have a stage now */
	int n_microbatches;               /* number of microbatches in an iteration */
};

/* Writes the stage of each node. An absent node may get RECUT_AWAY instead of a stage, and gets a
 * stage when it returns. Nodes that were neighbours along the stages stay neighbours. If the
 * order does not say how many nodes each stage gets, each stage gets nodes in proportion to its
 * work. -EINVAL: there are not enough nodes. */
int recut_deal(const struct recut_nodes *nodes, const struct recut_order *o, int *stage_of,
	       struct error *err);

#endif
