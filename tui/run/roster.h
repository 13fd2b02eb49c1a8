/* roster.h - the nodes in the order in which every view shows them: by stage, then id. A node
 * keeps its place as long as its stage is the same.
 */
#ifndef TUI_ROSTER_H
#define TUI_ROSTER_H

#include "tui/run/state.h"

struct roster {
	uint32_t n; /* nodes listed */
	uint16_t nodes[MSG_NODES];
	uint32_t
		first[MSG_STAGES + 1]; /* stage s: nodes[first[s]] .. nodes[first[s + 1] - 1] */
	uint32_t n_stages;
	uint32_t largest; /* nodes of the largest stage; unplaced: rows of as many columns */
	bool unplaced;    /* no node has a stage yet: all are told to be in the first */
	int digits;       /* of the highest id, at least 2 */
};

/* filter: "" all; else a node is listed when its id ("n12", "12"), stage ("S3"), location,
 * host, device or state's name holds it, in any case. */
void roster_make(struct roster *r, const struct state *s, const char *filter);
/* The node's place in the order, -1 when it is not listed. */
int roster_find(const struct roster *r, uint16_t node);

#endif
