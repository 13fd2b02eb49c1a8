/* recorded_run.h - a recorded run, read from its store and sorted on one timeline.
 *
 * The store's rows have times from two clocks. Tasks carry the controller's monotonic time.
 * Notes, validations and faults carry wall time. Moments carry both times, and so relate the
 * clocks to each other. The timeline is the monotonic clock of the first controller. A restarted
 * controller on another machine has another monotonic clock. The wall clocks show by how much the
 * times of that clock must be shifted. Rows of one kind are in the order of their time, even if
 * their clocks disagree.
 *
 * A recorded run holds the rows that the store had at the time of the reading. While the run
 * continues, the server reads the store again. */
#ifndef CONTROLLER_RECORDED_RUN_H
#define CONTROLLER_RECORDED_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "controller/planning/planner.h"
#include "schedule/format/cluster.h"
#include "store/store.h"
#include "wire/msg.h"

/* Happenings at the same time are replayed in this order. */
enum happening_kind {
	HAPPENED_CONTROLLER,
	HAPPENED_COMMIT, HAPPENED_BELIEF, HAPPENED_NODE, HAPPENED_GPU, HAPPENED_DEVICE,
	HAPPENED_PLAN, HAPPENED_PHASE, HAPPENED_CHECKPOINT, HAPPENED_VALIDATION, HAPPENED_NOTE,
	HAPPENED_FAULT, HAPPENED_HEAL
};

struct happening {
	int64_t at_us;
	uint8_t kind; /* enum happening_kind */
	/* Index into the array for this kind. HEAL and FAULT share the array of faults. CONTROLLER
	 * is the first row of another controller. Its index is the index of the part that this
	 * controller continues. */
	uint32_t index;
};

/* A part of the run in which the stages stayed the same (model/files/run_parts.h) */
struct recorded_part {
	uint64_t after;              /* last iteration committed before the part */
	uint64_t first_writer;       /* the part's first controller */
	struct cluster *cluster;     /* the cluster, with each node in its newest stage */
	char model[64];              /* the model's name as consoles show it */
	uint16_t layers[MSG_STAGES]; /* number of layers of each stage */
	uint32_t n_shards, per_shard; /* data shards, and microbatches of each in an iteration */
	int *shard_of;               /* array of n_nodes: data shard of each node; -1: none */
	uint32_t path_length;        /* newest path length requested */
	/* Seconds of an iteration of the plain pipeline; 0 until the caller sets it */
	double baseline_s;
};

struct recorded_node { /* a change of a node's state */
	uint16_t node;
	int stage; /* stage of the node; -1: none yet */
	enum node_state state;
	double forward_s, backward_s, loss_s; /* measured times; 0: not measured yet */
	int64_t pid;                          /* process id of the agent; 0: not recorded */
	char why[96], device[128], host[64], name[64], place[32];
};

struct recorded_belief { /* a correction of the times that plans assume, in plan seconds */
	uint16_t node;
	/* -1: `node` has these task times; otherwise forward_s is the delay from `node` to the node
	 * `to` */
	int32_t to;
	double forward_s, backward_s, loss_s;
};

struct recorded_gpu {
	uint16_t node;
	struct gpu_figures figures;
};

struct recorded_device {
	uint16_t node;
	struct device_time spent;
};

struct recorded_checkpoint {
	enum { CHECKPOINT_COMPLETES, CHECKPOINT_FAILS, CHECKPOINT_IS_NEWEST } event;
	/* iteration of the checkpoint that completed or is the newest; 0: none */
	uint64_t iteration;
	struct checkpoint_failure failure;
};

struct recorded_plan {
	uint64_t epoch, iteration;
	uint32_t path_length, skip_share;
	char *reason, *text; /* reason for the plan, and its text in the format skippipe.plan/1 */
};

struct recorded_phase {
	enum run_phase phase;
	uint64_t iteration;
};

struct recorded_run {
	struct store *store;         /* borrowed until recorded_run_free */
	const struct store_run *run; /* owned by the store */
	/* The parts in their order in the run. If the record does not describe the stages of an
	 * early part, the list begins after that part. */
	LIST(struct recorded_part) parts;
	uint64_t parameters;
	/* Divisor of the bytes of tensors, as in struct model_config; 0: not a rehearsal */
	uint32_t rehearsal;
	uint64_t iterations_wanted; /* length of the run in iterations; 0: no limit */
	double time_scale, unit_s;
	uint32_t n_nodes, n_microbatches; /* the same in all parts */

	LIST(struct msg_see_iteration) iterations;
	LIST(struct msg_see_validation) validations;
	LIST(struct msg_see_note) notes;
	LIST(struct msg_see_fault) faults; /* faults, each described as active */
	LIST(struct recorded_plan) plans;
	LIST(struct recorded_node) nodes; /* the changes of all nodes' states */
	LIST(struct recorded_gpu) gpus;
	LIST(struct recorded_device) devices;
	LIST(struct recorded_phase) phases;
	LIST(struct recorded_checkpoint) checkpoints;
	LIST(struct recorded_belief) beliefs;
	/* For each iteration: microseconds to add to the times of its tasks, to put the tasks on
	 * the timeline */
	int64_t *shifts;

	LIST(struct happening) happenings; /* sorted by time */
	int64_t first_us, last_us;
	uint64_t last_moment;
};

/* Reads a recorded run from an open store, which the caller closes after recorded_run_free.
 * -ENODATA: nothing has happened in the run yet. -EINVAL: the stored rows contradict each other.
 * Other errors come from the store. */
int recorded_run_read(struct recorded_run **out, struct store *store, struct error *err);
void recorded_run_free(struct recorded_run *r); /* r may be NULL */
/* Returns 1 if the store has rows that are newer than the recorded run, 0 if not, or a negative
 * errno. */
int recorded_run_grew(const struct recorded_run *r, struct error *err);

/* Reads the task events of a committed iteration, sorted by time on the timeline. The caller frees
 * *out. If the store has no tasks of the iteration, *n is 0 and *out is NULL. */
int recorded_run_tasks(const struct recorded_run *r, uint64_t iteration,
		       struct msg_task_event **out, uint32_t *n, struct error *err);
/* Returns the formats of the iteration that follows the first n_committed iterations in the
 * list. */
struct tensor_formats recorded_run_formats(const struct recorded_run *r, size_t n_committed);
/* Returns the cluster with the times that plans assumed after the first `upto` happenings. The
 * caller frees it with cluster_free. */
struct cluster *recorded_run_cluster(const struct recorded_run *r, size_t upto);
/* Reads a plan and simulates it to get its trace. The caller frees both with planned_free. */
int recorded_run_planned(const struct recorded_run *r, size_t plan, struct planned **out,
		      struct error *err);

#endif
