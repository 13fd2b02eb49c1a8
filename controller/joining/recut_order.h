/* recut_order.h - the order to continue the run with other stages, as the record keeps it until it
 * is carried out (recut.h). */
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

/* Nodes without a stage: one that is away, and one that a choice does not use. */
enum { RECUT_AWAY = -1, RECUT_LEFT_OUT = -2 };

struct recut_order {
	struct stage_layers layers; /* n == 0: equally, into as many stages as `nodes` has */
	/* (n_nodes) number of nodes of each stage; n_nodes == 0: in proportion to their work */
	int nodes[MSG_STAGES];
	uint32_t n_nodes;
	/* (n_places) The stage and the slots of each node, as a choice gives them. n_places == 0:
	 * the nodes are dealt (recut_nodes.h). */
	int stage_of[MSG_NODES], slots[MSG_NODES];
	uint32_t n_places;
	/* (n_here) 1 for each node that can have a stage now. n_here == 0: the nodes of the last
	 * commits */
	int here[MSG_NODES];
	uint32_t n_here;
};

/* Reads the order of the command line. Returns false if it has none. */
bool recut_order_of_options(struct recut_order *out, const struct options *o);
/* Takes the stages that a choice prefers for a run of n_nodes nodes. */
void recut_order_of_candidate(struct recut_order *out, const struct candidate *x,
			      const struct stage_question *q, uint32_t n_nodes);
/* Returns the order as JSON, which the caller frees; NULL if memory runs out. */
char *recut_order_print(const struct recut_order *o);
/* -EINVAL: damaged. */
int recut_order_parse(struct recut_order *out, const char *text, struct error *err);

#endif
