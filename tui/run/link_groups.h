/* link_groups.h - the rows and columns of the map of links: nodes, regions or stages.
 *
 * A region is a place ("Belgium") with all of its nodes. A cell of the map stands for two groups,
 * and shows the worst link between them.
 */
#ifndef TUI_LINK_GROUPS_H
#define TUI_LINK_GROUPS_H

#include "tui/run/roster.h"
#include "tui/run/state.h"

enum link_grouping { LINKS_BY_NODE, LINKS_BY_REGION, LINKS_BY_STAGE, LINK_GROUPINGS };

/* LINK_GROUPS: largest number of groups. LINK_GROUPS_NODES: largest number of nodes that can be
 * groups of one node each. */
enum { LINK_GROUPS = 64, LINK_GROUPS_NODES = 48, LINK_GROUPS_NONE = 255 };

struct link_groups {
	enum link_grouping by;
	uint32_t n; /* number of groups; 0: the nodes cannot be grouped */
	/* Group of each node, by node id; LINK_GROUPS_NONE: the node is not listed. */
	uint8_t of[MSG_NODES];
	uint16_t one[LINK_GROUPS]; /* id of one node of each group */
};

/* Groups the listed nodes as wanted, if possible. If there are more than LINK_GROUPS_NODES nodes,
 * groups by region instead of by node. If there is only one region, a region is unknown, or there
 * are too many regions, groups by stage instead of by region. */
void link_groups_make(struct link_groups *g, enum link_grouping wanted, const struct state *s,
		      const struct roster *r);

#endif
