/* link_groups.h - the rows and columns of the map of links: nodes, regions or stages.
 *
 * A region is a place ("Belgium") with all of its nodes. A cell of the map is a pair of groups and
 * shows the worst of their links.
 */
#ifndef TUI_LINK_GROUPS_H
#define TUI_LINK_GROUPS_H

#include "tui/run/roster.h"
#include "tui/run/state.h"

enum link_grouping { LINKS_BY_NODE, LINKS_BY_REGION, LINKS_BY_STAGE, LINK_GROUPINGS };

/* LINK_GROUPS: limit of groups. LINK_GROUPS_NODES: limit of nodes if each node is a group. */
enum { LINK_GROUPS = 64, LINK_GROUPS_NODES = 48, LINK_GROUPS_NONE = 255 };

struct link_groups {
	enum link_grouping by;
	uint32_t n;                /* number of groups; 0: there is no such map */
	uint8_t of[MSG_NODES];     /* group of each node id; LINK_GROUPS_NONE: not listed */
	uint16_t one[LINK_GROUPS]; /* one node of each group */
};

/* Groups the listed nodes. Too many nodes are grouped by region, and unknown or too many regions by
 * stage. */
void link_groups_make(struct link_groups *g, enum link_grouping wanted, const struct state *s,
		      const struct roster *r);

#endif
