/* roster.h - the nodes in the order in which all views show them: by stage, then by id. A node
 * keeps its place as long as it keeps its stage. */
#ifndef TUI_ROSTER_H
#define TUI_ROSTER_H

#include "tui/run/state.h"

struct roster {
	uint32_t n; /* number of listed nodes */
	uint16_t nodes[MSG_NODES];
	uint32_t
		/* The nodes of stage s are nodes[first[s]] .. nodes[first[s + 1] - 1]. */
		first[MSG_STAGES + 1];
	uint32_t n_stages;
	/* Number of nodes in the largest stage; if unplaced, number of rows of the grid. */
	uint32_t largest;
	bool unplaced;    /* no node has a stage yet, and all are reported in stage 0 */
	int digits;       /* number of digits of the highest id; at least 2 */
};

/* Returns true if the word is the name of the node: "n07", or "n007" as in large runs. */
bool roster_names(const char *word, uint16_t node);
/* Lists the nodes whose id ("n12", "12"), stage ("S3"), location, host, device or state contains
 * the filter, in any case; "": all nodes. */
void roster_make(struct roster *r, const struct state *s, const char *filter);
/* Returns the node's index in the list; -1: it is not listed. */
int roster_find(const struct roster *r, uint16_t node);

#endif
