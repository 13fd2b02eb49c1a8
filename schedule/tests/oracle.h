/* oracle.h - the best plan of a tiny cluster by plain enumeration: every choice of legal paths
 * for every microbatch, and for each every order of work at the nodes. Written from the
 * execution model's text; shares only the structs with what it judges. All nodes must be
 * pinned.
 */
#ifndef SCHEDULE_TESTS_ORACLE_H
#define SCHEDULE_TESTS_ORACLE_H

#include <stdbool.h>

#include "schedule/format/cluster.h"

struct oracle_request {
	int path_length;
	bool ascending; /* no exchanges of stages */
	bool fifo;      /* first come, first served; else all work-conserving orders */
	long most_runs; /* gives up after so many */
};

struct oracle_answer {
	bool complete;      /* everything was tried */
	double iteration_s; /* the shortest; INFINITY: no legal paths, or all stand still */
	long runs;
};

/* Do legal paths exist that visit the stages equally often? By all paths of each data node and
 * all counts of visits that they can add up to. */
bool oracle_paths_exist(const struct cluster *c, int path_length, bool ascending);

void oracle_solve(const struct cluster *c, const struct oracle_request *q,
		  struct oracle_answer *out);

#endif
