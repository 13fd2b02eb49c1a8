/* check.h - does a plan keep the rules? Judged independently of the search and the simulator:
 * it shares the structs with them and nothing else.
 *
 *   shape   every node at most once in the assignment, stage sizes as the cluster's, paths of
 *           path_length nodes that exist and are linked, one stage at most once a path
 *   batch   every data node sends microbatches_per_data_node; or, where data nodes are left out,
 *           the others may share their part, so that the iteration's total stays
 *   CC1     every path starts in stage 0, at the microbatch's own data node
 *   CC2     stages ascend, but two that follow one another in number may be exchanged where they
 *           stand next to each other; exchanges do not overlap, and stage 0 stays first
 *   CC3     every other stage is visited by the same number of microbatches, to within one
 *   TC1     no node ever holds more microbatches than its memory (from a trace), and the plan
 *           comes to an end
 *   TC2     that no two microbatches meet at a node is no rule here: one waits, and the plan is
 *           the longer (docs/formats.md, rules 2 and 9)
 */
#ifndef SCHEDULE_CHECK_H
#define SCHEDULE_CHECK_H

#include <stdbool.h>

#include "base/error.h"
#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"
#include "schedule/execution/simulate.h"

struct check_options {
	const bool *excluded; /* (n_nodes) borrowed: nodes that must not be used; NULL: none */
	bool pins;            /* nodes with a stage in the cluster must be in that stage */
};

struct check_report {
	int n_breaches;
	char **breaches; /* (n_breaches) owned: "CC3: stage 2 is visited by ..." */
};

/* trace: of this plan on this cluster, judged for TC1; NULL: TC1 is not judged. options may be
 * NULL. Stages may be smaller than the cluster's by nodes that the plan leaves out. Returns 0,
 * with or without breaches, or -ENOMEM. At most CHECK_MOST_BREACHES are listed. */
#define CHECK_MOST_BREACHES 100
int check_plan(const struct cluster *c, const struct plan *p, const struct simulation *trace,
	       const struct check_options *options, struct check_report *out);
void check_report_fini(struct check_report *r);

#endif
