/* formats.h - changes the times of links when activations or sums travel in another format.
 *
 * A cluster's delays and sums are those of one pair of formats. The run's cluster has those of the
 * iteration under way. A plan for other formats is made on a copy. */
#ifndef CONTROLLER_NETWORK_FORMATS_H
#define CONTROLLER_NETWORK_FORMATS_H

#include "base/tensor_format.h"
#include "schedule/format/cluster.h"

struct link_table;
struct members;
struct training;

bool formats_equal(const struct tensor_formats *a, const struct tensor_formats *b);
/* Sets the bytes of an activation and of the largest stage's gradient in these formats. */
void formats_set_bytes(struct link_table *t, const struct training *training,
		       const struct tensor_formats *formats);
/* Returns a copy of the run's cluster with the times of these formats (cluster_free). NULL: the
 * run's own cluster has them. */
struct cluster *formats_cluster(const struct members *members,
				const struct tensor_formats *formats);
/* Lets the next iteration's tensors travel in these formats. The clusters and the table of measured
 * links have the new times afterwards. */
void formats_apply(struct members *members, const struct tensor_formats *formats);

#endif
