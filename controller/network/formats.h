/* formats.h - changes the times of links when activations or sums are sent in another format.
 *
 * The delays and sum times in a cluster are valid for one pair of formats. In the run's cluster
 * these are the formats of the iteration under way. A plan for other formats is made on a copy of
 * the cluster. */
#ifndef CONTROLLER_NETWORK_FORMATS_H
#define CONTROLLER_NETWORK_FORMATS_H

#include "base/tensor_format.h"
#include "schedule/format/cluster.h"

struct link_table;
struct members;
struct training;

bool formats_equal(const struct tensor_formats *a, const struct tensor_formats *b);
/* Sets, for these formats, the bytes of an activation and of the largest stage's gradient. */
void formats_set_bytes(struct link_table *t, const struct training *training,
		       const struct tensor_formats *formats);
/* Returns a copy of the run's cluster with the times of these formats (free it with cluster_free).
 * NULL: no copy is needed, because the run's own cluster has these times. */
struct cluster *formats_cluster(const struct members *members,
				const struct tensor_formats *formats);
/* Sends the next iteration's tensors in these formats. Updates the times in the clusters and in the
 * table of measured links. */
void formats_apply(struct members *members, const struct tensor_formats *formats);

#endif
