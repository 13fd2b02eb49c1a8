/* groups.h - groups the nodes of a fleet that are so similar that a rough estimate can treat them
 * as equal: the same place, device and price, and nearly the same speed and memory. Internal to
 * schedule/fleet/. */
#ifndef SCHEDULE_GROUPS_H
#define SCHEDULE_GROUPS_H

#include "schedule/fleet/fleet.h"

enum { GROUPS_MOST = 40 };

struct groups {
	int n;
	int *of_node;           /* array of n_nodes: group of each node */
	int first[GROUPS_MOST]; /* one node of each group */
	int size[GROUPS_MOST];  /* number of nodes in each group */
	/* Link from a node of the row's group to another node of the column's group; latency
	 * INFINITY: none */
	double latency_s[GROUPS_MOST][GROUPS_MOST], bandwidth[GROUPS_MOST][GROUPS_MOST];
};

/* Groups the nodes of the fleet. Starts with a small tolerance within a group, because measured
 * speeds differ a little from node to node. Doubles the tolerance until there are at most
 * GROUPS_MOST groups. */
void groups_init(struct groups *g, const struct fleet *f);
void groups_fini(struct groups *g);

#endif
