/* recut_order.h - the operator's order to continue the run with other stages. The order stays in
 * the record until it is carried out (recut.h). */
#ifndef CONTROLLER_JOINING_RECUT_ORDER_H
#define CONTROLLER_JOINING_RECUT_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/cut.h"
#include "wire/msg.h"

struct candidate;
struct options;
struct stage_question;

#define RECUT_ORDER_KEY "recut"

/* Values instead of a node's stage. RECUT_AWAY: the node is absent. RECUT_LEFT_OUT: the choice of
 * stages does not use the node. */
enum { RECUT_AWAY = -1, RECUT_LEFT_OUT = -2 };

struct recut_order {
	/* Number of layers of each stage. n == 0: `nodes` gives the number of stages, whose
	 * numbers of layers are as equal as possible. */
	struct stage_layers layers;
	/* Array of n_nodes: number of nodes of each stage. n_nodes == 0: each stage gets nodes in
	 * proportion to its work. */
	int nodes[MSG_STAGES];
	uint32_t n_nodes;
	/* Arrays of n_places: the stage and the slots of each node, from a choice of stages. If
	 * there was no choice, n_places is 0, and recut_deal assigns nodes (recut_nodes.h). */
	int stage_of[MSG_NODES], slots[MSG_NODES];
	uint32_t n_places;
	/* Array of n_here: 1 for each node that can have a stage now. n_here == 0: the nodes that
	 * took part in the last commits can have a stage */
	int here[MSG_NODES];
	uint32_t n_here;
};

/* Reads the order from the command line. Returns false if the command line has none. */
bool recut_order_of_options(struct recut_order *out, const struct options *o);
/* Fills in the order for the candidate that a choice of stages prefers, in a run of n_nodes
 * nodes. */
void recut_order_of_candidate(struct recut_order *out, const struct candidate *x,
			      const struct stage_question *q, uint32_t n_nodes);
/* Returns the order as JSON, which the caller frees; NULL if memory runs out. */
char *recut_order_print(const struct recut_order *o);
/* Reads an order that recut_order_print made. -EINVAL: the text is damaged. */
int recut_order_parse(struct recut_order *out, const char *text, struct error *err);

#endif
