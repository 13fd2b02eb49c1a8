/* oracle.h - finds the best plan of a tiny cluster by plain enumeration: all choices of legal paths
 * for all microbatches and, for each choice, all orders of tasks at the nodes. It is written from
 * the text of the execution model and shares only structs with the code that it tests. All nodes
 * must be pinned. */
#ifndef SCHEDULE_TESTS_ORACLE_H
#define SCHEDULE_TESTS_ORACLE_H

#include <stdbool.h>

#include "schedule/format/cluster.h"

struct oracle_request {
	int path_length;
	bool ascending; /* stages are never exchanged */
	bool fifo;      /* true: first come, first served; false: all work-conserving orders */
	long most_runs; /* number of runs after which the enumeration gives up */
};

struct oracle_answer {
	bool complete;      /* all possibilities were tried */
	/* The shortest iteration; INFINITY: there are no legal paths, or only standstills */
	double iteration_s;
	long runs;
};

/* Returns true if legal paths with equal exposure exist. It tries all paths of each data node, and
 * computes all combinations of the stages' visits that the paths can make together. */
bool oracle_paths_exist(const struct cluster *c, int path_length, bool ascending);

void oracle_solve(const struct cluster *c, const struct oracle_request *q,
		  struct oracle_answer *out);

#endif
