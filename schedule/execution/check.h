/* check.h - checks that a plan keeps the rules. The checker shares only structs and the arithmetic
 * of quotas with the search and the simulator, so that it cannot repeat their mistakes.
 *
 *   shape   Every node is assigned at most once. Stages have the sizes of the cluster. Paths have
 *           path_length nodes that exist and are linked, and visit no stage twice.
 *   share   In a plan with skip_share, this percentage of each data node's microbatches visits
 *           path_length nodes. The other microbatches visit every stage.
 *   batch   Every data node sends microbatches_per_data_node. If data nodes are excluded, the
 *           remaining data nodes may send the excluded nodes' microbatches too, so that the total
 *           is the same.
 *   CC1     Every path starts in stage 0, at the microbatch's own data node.
 *   CC2     Stages ascend along a path, with one exception: the path may visit stage s + 1 just
 *           before stage s. Such exchanges do not overlap, and stage 0 stays first.
 *   CC3     All stages but 0 are visited by the same number of microbatches, to within one.
 *   TC1     In the trace, no node ever holds more microbatches than its memory allows, and the
 *           plan comes to an end.
 *   TC2     Two microbatches may meet at a node: one waits, and the plan takes longer
 *           (docs/formats.md, rules 2 and 9).
 */
#ifndef SCHEDULE_CHECK_H
#define SCHEDULE_CHECK_H

#include <stdbool.h>

#include "base/error.h"
#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"
#include "schedule/execution/simulate.h"

struct check_options {
	/* Array of n_nodes, borrowed: nodes that must not be used; NULL: none */
	const bool *excluded;
	/* A node that has a stage in the cluster must have this stage in the plan */
	bool pins;
};

struct check_report {
	int n_breaches;
	/* array of n_breaches, owned: descriptions such as "CC3: stage 2 is visited by ..." */
	char **breaches;
};

#define CHECK_MOST_BREACHES 100

/* Fills the report with at most CHECK_MOST_BREACHES broken rules; check_report_fini frees it.
 * trace: the simulated run of this plan on this cluster, needed for TC1; NULL: TC1 is not checked.
 * options may be NULL. A stage may have fewer nodes than in the cluster, because a plan may leave
 * nodes unused. */
void check_plan(const struct cluster *c, const struct plan *p, const struct simulation *trace,
		const struct check_options *options, struct check_report *out);
void check_report_fini(struct check_report *r);

#endif
