/* roster.h - the nodes in the order in which all views show them: by stage, then by id. A node's
 * place in the list changes only with its stage. */
#ifndef TUI_ROSTER_H
#define TUI_ROSTER_H

#include "tui/run/state.h"

struct roster {
	uint32_t n; /* number of listed nodes */
	uint16_t nodes[MSG_NODES];
	uint32_t
		/* The nodes of stage s are nodes[first[s]] to nodes[first[s + 1] - 1]. */
		first[MSG_STAGES + 1];
	uint32_t n_stages;
	/* Number of nodes in the largest stage. If no node has a stage: number of rows in which all
	 * nodes are listed. */
	uint32_t largest;
	bool unplaced; /* no node has a stage yet; messages then report stage 0 for every node */
	int digits;    /* number of digits of the highest node id, at least 2 */
};

/* Returns true if the word is the node's name: "n07", or "n007" as large runs write it. */
bool roster_names(const char *word, uint16_t node);
/* Lists the nodes that match the filter. A node matches if its id ("n12", "12"), stage ("S3"),
 * location, host, device or state contains the filter, in upper or lower case. filter "": all
 * nodes. */
void roster_make(struct roster *r, const struct state *s, const char *filter);
/* Returns the node's index in r->nodes; -1: the node is not listed. */
int roster_find(const struct roster *r, uint16_t node);

#endif
