/* node_classes.h - of each stage, the nodes that stand in the same place with the same speed and memory:
 * in large clusters they are looked at as one. Internal to schedule/.
 */
#ifndef SCHEDULE_NODE_CLASSES_H
#define SCHEDULE_NODE_CLASSES_H

#include "base/arena.h"
#include "schedule/problem/problem.h"

struct node_classes {
	int n;       /* groups, by stage */
	int *of;     /* (n_nodes) the group of a node that is in */
	int *sample; /* (n) a node of each */
	int *first;  /* (n_stages + 1) groups of each stage */
};

/* Below 64 nodes, and where they may not be joined, each node is a group of its own. It
 * lives as long as the arena. -ENOMEM. */
int node_classes_init(struct node_classes *a, struct arena *arena, const struct problem *p,
		      const struct solution *s, bool may_join);

#endif
