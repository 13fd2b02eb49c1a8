/* regions.h - makes clusters from measured links between cloud regions (deploy/regions.json).
 *
 * The facts are the one-way latencies and bandwidths published with arXiv:2502.19913. A transfer
 * takes latency + bytes / bandwidth, and for activations a transfer overhead.
 */
#ifndef SCHEDULE_REGIONS_H
#define SCHEDULE_REGIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "schedule/format/cluster.h"

struct regions; /* opaque: the facts */

int regions_read(const char *path, struct regions **out, struct error *err);
void regions_free(struct regions *r); /* NULL is allowed */

/* Gives the one-way link between two locations, or within one. -ENOENT: the facts do not have it.
 */
int regions_link(const struct regions *r, const char *a, const char *b, double *latency_s,
		 double *bandwidth_bytes_per_s, struct error *err);

struct regions_request {
	const char *name;    /* name of the cluster; NULL: the setting's name */
	const char *setting; /* NULL: "geo-distributed" */
	int n_nodes, n_stages;
	const int *stages;   /* (n_stages) borrowed; NULL: balanced for equal load, where stage 0
			      * serves all microbatches and each other stage the share
			      * (path_length - 1) / (n_stages - 1) */
	int path_length;     /* only used if stages is NULL; 0: all stages */
	double forward_s, backward_s, loss_s;
	int memory;
	double activation_bytes, weights_bytes_per_stage;
	double transfer_overhead_s, dispatch_overhead_s;
	int microbatches_per_data_node;
	bool shuffle;  /* locations are drawn at random from seed; else dealt round robin */
	uint64_t seed;
};

/* Fills in the paper's own setting: forward_s = 0.055 * layers * samples, backward 1.5 and loss
 * 0.25 times that, memory 3, six microbatches, overheads of 0.35 and 0.13 s, fp32 activations of
 * 2^22 bytes for each sample and 2^26 bytes of weights for each layer. The caller sets the numbers
 * of nodes and stages. */
void regions_request_init(struct regions_request *q, double layers_per_stage,
			  double samples_per_microbatch);

/* Makes a cluster without pinned nodes. Its bytes_s are those of q's activation_bytes. */
int regions_cluster(const struct regions *r, const struct regions_request *q,
		    struct cluster **out, struct error *err);

#endif
