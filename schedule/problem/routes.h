/* routes.h - every legal path of a data node, one by one: stages ascend but for exchanges of
 * neighbours (unless the request forbids them), nodes are linked both ways and have memory. For
 * small clusters. Internal to schedule/.
 */
#ifndef SCHEDULE_ROUTES_H
#define SCHEDULE_ROUTES_H

#include "schedule/problem/problem.h"

/* Calls found with each path (length node ids, the data node first), borrowed during the call.
 * A result other than 0 ends the walk and is returned. PLAN_NOT_FOUND: beyond most_hops. s
 * gives the assignment. */
int routes_each(const struct problem *p, const struct solution *s, int data_node,
		long most_hops, int (*found)(void *arg, const int *path), void *arg);

#endif
