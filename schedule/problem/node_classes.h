/* node_classes.h - of each stage, the nodes that stand in the same place with the same speed and memory:
 * in large clusters they are looked at as one. Internal to schedule/.
 */
#ifndef SCHEDULE_ALIKE_H
#define SCHEDULE_ALIKE_H

#include "schedule/problem/problem.h"

struct alike {
	int n;       /* groups, by stage */
	int *of;     /* (n_nodes) the group of a node that is in */
	int *sample; /* (n) a node of each */
	int *first;  /* (n_stages + 1) groups of each stage */
};

/* Below 64 nodes, and where they may not be joined, each node is a group of its own. -ENOMEM. */
int alike_init(struct alike *a, const struct problem *p, const struct solution *s, bool may_join);
void alike_fini(struct alike *a); /* zeroed is allowed */

#endif
