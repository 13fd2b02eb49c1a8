/* cluster.h - the machines a plan is made for: nodes, their speed and memory, the links.
 *
 * The file format is `skippipe.cluster/1` (docs/scheduling.md). The struct is plain data: read
 * it from a file, or allocate one and fill it in, then cluster_validate.
 *
 * Units: seconds, and microbatches for memory. Matrices are row-major: from * n_nodes + to.
 */
#ifndef SCHEDULE_CLUSTER_H
#define SCHEDULE_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define CLUSTER_MOST_NODES 10000
#define CLUSTER_MOST_STAGES 64
#define CLUSTER_MOST_MICROBATCHES 100000 /* per data node */

struct cluster_node {
	char *location; /* owned, from malloc; never NULL after cluster_validate */
	char *address;  /* owned; NULL: not said */
	char *device;   /* owned; NULL: not said */
	int stage;      /* where it is pinned; < 0: anywhere */
	double forward_s, backward_s, loss_s; /* one microbatch */
	int memory;     /* microbatches it can hold at once */
};

struct cluster {
	char *name; /* owned */
	int n_stages;
	int *stages; /* (n_stages) nodes per stage; stage 0 holds the data nodes */
	int n_nodes;
	struct cluster_node *nodes; /* (n_nodes) index = id */
	double *delay_s;     /* (n_nodes, n_nodes) one microbatch's activation; < 0: no such hop.
			      * The diagonal is not read. */
	double *sync_pair_s; /* (n_nodes, n_nodes) one stage's gradient; < 0: unknown, or no way
			      * where there is no hop either. NULL: all unknown. The diagonal
			      * is not read. */
	int microbatches_per_data_node;
	double dispatch_overhead_s;
};

/* An empty cluster of that shape: names empty, nodes not pinned, times 0, memory 1, every link
 * absent, sync_pair_s allocated (all unknown) when with_sync. NULL when memory runs out. */
struct cluster *cluster_alloc(int n_nodes, int n_stages, bool with_sync);
void cluster_free(struct cluster *c); /* NULL is allowed */
struct cluster *cluster_copy(const struct cluster *c);

/* Is it a cluster at all: counts add up, numbers finite and not negative, pins within the
 * stages' sizes. -EINVAL names the key. Whether a plan exists is the search's to say. */
int cluster_validate(const struct cluster *c, struct error *err);

/* -EINVAL: not valid JSON, or not this format; the message names key and expectation. */
int cluster_parse(const char *text, size_t size, struct cluster **out, struct error *err);
/* Errors are the file's, or those of cluster_parse with the path in front. */
int cluster_read(const char *path, struct cluster **out, struct error *err);
/* As cluster_read, where an activation takes `share` (> 0) of the activation_bytes that the file
 * says. Where it says delay_s it says nothing of bytes, and the delays stay. */
int cluster_read_share(const char *path, double share, struct cluster **out, struct error *err);
/* The JSON text (free it), with delay_s (links are not kept apart); NULL: out of memory. */
char *cluster_format(const struct cluster *c);

#endif
