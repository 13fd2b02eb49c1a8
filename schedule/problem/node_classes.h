/* node_classes.h - groups the nodes of a stage that have the same location, speed and memory. In
 * large clusters the first plan and the bounds treat a group as one node. Internal to schedule/.
 */
#ifndef SCHEDULE_NODE_CLASSES_H
#define SCHEDULE_NODE_CLASSES_H

#include "base/arena.h"
#include "schedule/problem/problem.h"

struct node_classes {
	int n;       /* number of groups, which are ordered by stage */
	int *of;     /* array of n_nodes: the group of each node that has a stage */
	int *sample; /* array of n: one node of each group */
	int *first;  /* array of n_stages + 1: first group of each stage */
};

/* Groups the nodes. Each node is a group of its own if may_join is false or the cluster has fewer
 * than 64 nodes. The groups live as long as the arena. */
void node_classes_init(struct node_classes *a, struct arena *arena, const struct problem *p,
		       const struct solution *s, bool may_join);

#endif
