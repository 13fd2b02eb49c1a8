/* regions.h - makes clusters from measured links between cloud regions (deploy/regions.json).
 *
 * The facts are the one-way latencies and bandwidths published with arXiv:2502.19913. A transfer
 * takes latency + bytes / bandwidth. The transfer of an activation also takes a transfer overhead.
 */
#ifndef SCHEDULE_REGIONS_H
#define SCHEDULE_REGIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "schedule/format/cluster.h"

struct regions; /* opaque: the facts */

int regions_read(const char *path, struct regions **out, struct error *err);
void regions_free(struct regions *r); /* r may be NULL */

/* Gives the link from one location to another, or within a location. -ENOENT: the facts have no
 * such link. */
int regions_link(const struct regions *r, const char *a, const char *b, double *latency_s,
		 double *bandwidth_bytes_per_s, struct error *err);

struct regions_request {
	const char *name;    /* name of the cluster; NULL: the name of the setting */
	const char *setting; /* name of the setting; NULL: "geo-distributed" */
	int n_nodes, n_stages;
	/* Array of n_stages, borrowed: number of nodes in each stage. NULL: sizes that give all
	 * nodes about equal load. Stage 0 then serves all microbatches, and each other stage serves
	 * the share (path_length - 1) / (n_stages - 1) of them. */
	const int *stages;
	int path_length; /* used only if stages is NULL; 0: paths visit all stages */
	double forward_s, backward_s, loss_s;
	int memory;
	double activation_bytes, weights_bytes_per_stage;
	double transfer_overhead_s, dispatch_overhead_s;
	int microbatches_per_data_node;
	/* true: the locations of the nodes are drawn at random with the seed; false: they are
	 * assigned round robin. */
	bool shuffle;
	uint64_t seed;
};

/* Fills in the setting of the paper, for stages of this many layers and microbatches of this many
 * samples. forward_s is 0.055 * layers * samples; backward_s is 1.5 times and loss_s 0.25 times
 * forward_s. Nodes hold 3 microbatches, and data nodes send 6. A transfer has 0.35 s of overhead,
 * and a task 0.13 s. An fp32 activation has 2^22 bytes for each sample, and a stage 2^26 bytes of
 * weights for each layer. The caller sets the numbers of nodes and stages. */
void regions_request_init(struct regions_request *q, double layers_per_stage,
			  double samples_per_microbatch);

/* Makes a cluster without pinned nodes. Its bytes_s apply to q's activation_bytes. */
int regions_cluster(const struct regions *r, const struct regions_request *q,
		    struct cluster **out, struct error *err);

#endif
