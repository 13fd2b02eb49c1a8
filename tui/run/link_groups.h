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

/* LINK_GROUPS: most groups. LINK_GROUPS_NODES: most nodes if each node is a group of its own. */
enum { LINK_GROUPS = 64, LINK_GROUPS_NODES = 48, LINK_GROUPS_NONE = 255 };

struct link_groups {
	enum link_grouping by;
	uint32_t n; /* number of groups; 0: the nodes cannot be grouped */
	/* Group of each node, by node id; LINK_GROUPS_NONE: the node is not listed. */
	uint8_t of[MSG_NODES];
	uint16_t one[LINK_GROUPS]; /* id of one node of each group */
};

/* Groups the listed nodes as wanted, if possible. If there are too many nodes, groups them by
 * region; if regions are unknown or too many, by stage. */
void link_groups_make(struct link_groups *g, enum link_grouping wanted, const struct state *s,
		      const struct roster *r);

#endif
