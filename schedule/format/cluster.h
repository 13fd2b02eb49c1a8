/* cluster.h - the input of a plan: nodes with their speed and memory, and the links between them.
 *
 * The file format is `skippipe.cluster/1` (docs/formats.md). The struct is plain data: read it from
 * a file, or allocate it, fill it in and call cluster_validate.
 *
 * Units: seconds, and microbatches for memory. Matrices are row-major: from * n_nodes + to.
 */
#ifndef SCHEDULE_CLUSTER_H
#define SCHEDULE_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/stage_set.h"
#include "base/task_kind.h"
#include "base/tensor_format.h"

#define CLUSTER_MOST_NODES 10000
#define CLUSTER_MOST_STAGES 64
#define CLUSTER_MOST_MICROBATCHES 100000 /* limit of microbatches per data node */

struct cluster_node {
	char *name;     /* owned; name under which the node was admitted; NULL: unknown */
	char *location; /* owned, from malloc; never NULL after cluster_validate */
	char *address;  /* owned; NULL: unknown */
	char *device;   /* owned; NULL: unknown */
	int stage;      /* stage to which the node is pinned; below 0: any stage */
	/* Seconds for one microbatch in a stage with one unit of work (cluster.work); loss_s does
	 * not depend on the work. */
	double forward_s, backward_s, loss_s;
	int memory; /* number of microbatches that the node can hold at once */
};

struct cluster {
	char *name; /* owned */
	int n_stages;
	/* Array of n_stages: number of nodes in each stage; stage 0 holds the data nodes */
	int *stages;
	/* array of n_stages: factor of a node's forward_s and backward_s in each stage; all are 1
	 * if the stages are cut equally */
	double work[CLUSTER_MOST_STAGES];
	int n_nodes;
	struct cluster_node *nodes; /* array of n_nodes; the index is the node's id */
	/* array of (n_nodes, n_nodes): seconds to transfer one microbatch's activation; below 0: no
	 * link. The diagonal is not read. */
	double *delay_s;
	/* array of (n_nodes, n_nodes): the transfer time of an fp32 activation's bytes, as part of
	 * delay_s. In another format this time is shorter, in proportion to the bytes, and the rest
	 * of the delay stays. A transfer occupies its link only for this time. NULL: unknown;
	 * transfers then never wait for one another. */
	double *bytes_s;
	/* array of (n_nodes, n_nodes): seconds to transfer one stage's gradient. Below 0: the time
	 * is unknown, or delay_s has no such link. NULL: all times are unknown. The diagonal is
	 * not read. */
	double *sync_pair_s;
	struct tensor_formats formats; /* the formats to which delay_s and sync_pair_s apply */
	stage_set always;    /* stages that every microbatch visits; stage 0 is one of them */
	int microbatches_per_data_node;
	double dispatch_overhead_s;
};

/* Allocates a cluster with empty names, unpinned nodes, times 0, memory 1 and no links. with_sync:
 * sync_pair_s is allocated, with all values unknown. NULL: there is no memory for the matrices. */
struct cluster *cluster_alloc(int n_nodes, int n_stages, bool with_sync);
void cluster_free(struct cluster *c); /* c may be NULL */
/* Never returns NULL: if there is no memory, the program ends, as in base/alloc.h. */
struct cluster *cluster_copy(const struct cluster *c) __attribute__((returns_nonnull));
/* Copies a cluster, but only n of its nodes. The copy has the stage sizes of c, which do not match
 * n nodes, so call cluster_set_stages next. Never returns NULL. */
struct cluster *cluster_pick(const struct cluster *c, const int *nodes, int n)
	__attribute__((returns_nonnull));

/* Returns true if the nodes may have these stages: every stage has a node, and the number of data
 * nodes divides the batch. stage_of: array of n_nodes; below 0: the node has no stage. */
bool cluster_may_have_stages(const struct cluster *c, const int *stage_of);
/* Pins the nodes to these stages; cluster_may_have_stages must be true for them. The size of a
 * stage becomes the number of its nodes. Each node without a stage then adds 1 to the size of the
 * smallest stage other than stage 0. The number of microbatches in an iteration stays the
 * same. */
void cluster_set_stages(struct cluster *c, const int *stage_of);

/* Returns how many stages a path may skip at most: all stages but those that every microbatch
 * visits. */
static inline int cluster_most_skipped(const struct cluster *c)
{
	return c->n_stages - stage_set_count(c->always);
}

/* Returns the work of the stage; 1 if `stage` is below 0, for a node without a stage. */
static inline double cluster_work(const struct cluster *c, int stage)
{
	return stage < 0 ? 1 : c->work[stage];
}

/* Returns the seconds that a task takes on a node in this stage (below 0: no stage). */
double cluster_task_s(const struct cluster *c, int node, int stage, enum task_kind kind);

/* Returns the seconds for which an activation occupies the link, in the format of the delays. 0:
 * the bytes are unknown. */
double cluster_occupied_s(const struct cluster *c, int from, int to);

/* Checks that counts add up, numbers are finite and not negative, and pins fit the sizes of stages.
 * -EINVAL: the message names the key. A valid cluster can still have no plan. */
int cluster_validate(const struct cluster *c, struct error *err);

/* Parses the text of a cluster. -EINVAL: the text is not valid JSON or not in this format; the
 * message names the key and what was expected. */
int cluster_parse(const char *text, size_t size, struct cluster **out, struct error *err);
/* Errors are those of reading the file and of cluster_parse; messages begin with the path. */
int cluster_read(const char *path, struct cluster **out, struct error *err);

/* Changes delay_s and sync_pair_s to the times of other formats. Treats all of sync_pair_s as
 * transfer time of bytes, because gradients are so long that latency hardly counts. */
void cluster_reformat(struct cluster *c, const struct tensor_formats *is);

/* The bytes of activations and of sums of gradients in their transfer formats, relative to fp32 (>
 * 0). If a file gives links, cluster_read_share computes the delays for activations of this size.
 * If a file gives delay_s, these delays stay as they are. With refuse_delays, such a file is
 * refused unless `activations` is 1. The times of sums are always computed for sums of this
 * size. */
struct cluster_share {
	double activations, sums;
	bool refuse_delays;
};
/* Like cluster_read, for a file whose activations and sums travel in formats other than fp32. */
int cluster_read_share(const char *path, const struct cluster_share *share, struct cluster **out,
		       struct error *err);
/* Returns the JSON text, which the caller frees. The text has delay_s and bytes_s instead of links.
 * NULL: out of memory. */
char *cluster_format(const struct cluster *c);

#endif
