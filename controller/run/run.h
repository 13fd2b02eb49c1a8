/* run.h - the state of the run itself: its training, its progress, its record, its journal and its
 * consoles.
 *
 * This is the lowest part of the controller. The parts above it are, in order:
 *
 *     struct run        this header
 *     struct members    controller/members/members.h: nodes, links, admission, death
 *     struct planning   controller/planning/planning.h: requests to the planner and its answers
 *     struct backups    controller/weights/backups.h: checkpoints, standby copies, lost stages
 *     struct iteration  controller/iteration/iteration.h: routes, reports, sums, commits
 *     struct operators  controller/operator/command.h: leases, acts, previews
 *
 * A part may use the parts before it, and never a part after it. A function receives the highest
 * part that it uses and reaches the lower ones through it (it->members->run). To affect a higher
 * part, a module returns a value to its caller, or queues a request in run->requests, which the
 * loop carries out. The subfolders of controller/ have the same order. The whole order, with the
 * subfolders that are not named here, is floors_controller in the Makefile. `make layers` checks
 * this order.
 *
 * Times are microseconds of this process's monotonic clock; agents' times are converted on arrival.
 * "Plan seconds" are real seconds / unit_s. */
#ifndef CONTROLLER_RUN_RUN_H
#define CONTROLLER_RUN_RUN_H

#include <stdbool.h>
#include <stdio.h>

#include "base/skip_schedule.h"
#include "base/log.h"
#include "controller/options.h"
#include "controller/run/disk.h"
#include "controller/run/journal.h"
#include "controller/run/phase.h"
#include "controller/run/rates.h"
#include "controller/run/record.h"
#include "controller/run/requests.h"
#include "controller/run/stream.h"
#include "model/config.h"
#include "model/files/origin.h"
#include "model/files/run_parts.h"
#include "schedule/format/cluster.h"
#include "store/store.h"
#include "wire/faults.h"
#include "wire/keys.h"
#include "wire/msg.h"
#include "wire/post.h"
#include "wire/sessions/link.h"

struct planned; /* planning/planner.h defines it */

/* The model, its hyperparameters and its data. All fields are set once, before the first iteration,
 * except `skipped` and the end of the hyperparameters' schedule (rates_change_length). */
struct training {
	struct model_config model;
	struct hyperparameters hyper;
	uint64_t parameters;
	uint64_t stage_parameters[MSG_STAGES];
	char *model_json;
	/* Origin of the first weights; its folder is "" if the weights are made from the seed */
	struct origin origin;
	/* The part of the run that began with the newest change of stages. Only the fields
	 * `after`, `skipped` and `position` are used. after == 0: the stages have not changed
	 * since the run began */
	struct run_part part;
	uint64_t corpus_hash; /* hash of the corpus that the majority of data nodes read */
	/* Number of data nodes, and number of microbatches of each data node in an iteration */
	uint32_t n_shards, per_shard;
	/* array of n_nodes: the data shard of each node; -1: not a data node when the run began */
	int *shard_of;
	bool has_tokenizer; /* the tokens on which the first weights were trained are not bytes */
	uint64_t skipped;   /* number of attempts whose data was skipped (--skip-bad-steps) */
	double baseline_s;  /* predicted iteration time of the plain pipeline, plan seconds */
};

/* The run's record: its store, its events as JSON lines, and its newest losses. */
struct run_record {
	struct store *store;
	FILE *jsonl; /* stream to which events are written as JSON lines; NULL: not requested */
	struct curves curves;
	int64_t gpus_us; /* time of the newest record of the figures of GPUs */
	/* Number of returns to a checkpoint. Consoles treat the run after each return as a new run.
	 */
	uint32_t n_rewinds;
	/* Number of events that a member's state did not allow (lifecycle.c). Each such event is a
	 * bug in the controller. */
	uint32_t refused_events;
	struct json_t *drill; /* the operator's acts so far, for drill.c; NULL: none */
};

/* The operator's order to divide the model into other stages (joining/recut.h). */
struct recut {
	bool is_ordered;               /* the record has an order that is not carried out yet */
	bool is_done;                  /* this controller divided the model at its start */
	struct recut_cutting *cutting; /* a thread that cuts the model; NULL: none */
	bool is_stale;                 /* the order has changed since `cutting` was started */
	/* reason why an order was dropped, until the journal has reported the reason; "": none */
	char failure[192];
};

/* Settings that the operator changes during the run. */
struct wanted {
	uint32_t path_length; /* number of stages on the path of a microbatch that skips */
	uint32_t skip_share;  /* percent of the microbatches that skip stages; 0: all */
	struct tensor_formats formats;
	/* Text of the skip schedule, owned; NULL: only commands change the skip ratio */
	char *schedule_text;
	struct skip_schedule schedule;
	uint32_t phase; /* index of the schedule's present phase */
	bool pause;
	bool step; /* the run computes one iteration and then pauses */
	/* true: no microbatch has visited the stages that may be skipped, and these stages will
	 * start from copies of trained stages (--stack, weights/stacking.c) */
	bool stack;
	struct finish_order finish;
	struct recut recut;
};

/* An injected failure (operator/faults.c). */
struct fault {
	uint32_t id;
	enum fault_kind kind;
	/* node: the affected node. peer: the other end of the affected link; -1: the fault
	 * affects all links of the node, or no link */
	int node, peer;
	float factor;
	uint32_t ttl_ms;
	int64_t started_us, ends_us, started_wall_us;
	bool active;
};

struct fault_list {
	struct fault *list; /* array of n */
	uint32_t n;
	size_t room;
	/* Entry i of the list has the id first + i + 1. The ids thus continue those of an earlier
	 * controller. */
	uint32_t first;
};

struct run_keys {
	struct keys_identity *own;
	struct keys_list *admitted;
};

struct run_started {
	int64_t us, wall_us;
	/* the address at which the controller listens; "": not yet */
	char listening[LINK_ADDRESS_SIZE];
};

struct run {
	struct options options;
	struct log log;
	struct post *post;
	struct run_keys keys;
	int supervisor; /* descriptor of the socket to the supervisor; -1: none */
	int64_t now_us;
	struct run_started started;

	uint64_t id;
	struct training training;
	/* The cluster for which the planner plans; its shape never changes. Its formats are those
	 * of the iteration under way or, between iterations, of the last iteration */
	struct cluster *cluster;
	/* The cluster as the operator described it; only its delays are used */
	struct cluster *cluster_as_given;
	double unit_s;                    /* number of real seconds in one plan second */
	struct planned *plan;             /* the plan in force */
	uint64_t epoch;                   /* number (epoch) of the plan in force */
	struct wanted wanted;
	struct fault_list faults;

	enum run_phase phase;
	uint64_t committed;
	uint64_t iteration; /* number of the iteration under way: committed + 1 */
	/* The lowest attempt number of this iteration. Attempts under an earlier controller have
	 * lower numbers. */
	uint32_t first_attempt;
	int64_t committed_us; /* time at which the controller decided the last commit */
	/* Number of tasks, sums and answers that have advanced the run. If the number stays the
	 * same for too long, the run is stalled. */
	uint64_t progress;
	bool resumed; /* this controller continues a run of an earlier controller */
	/* The last commit as announced. The announcement is repeated to nodes that may have missed
	 * it. */
	struct msg_commit last_commit;
	struct requests requests; /* queued by the parts, and carried out by the loop */
	struct ending ending;

	struct run_record record;
	struct journal journal;
	struct stream stream;
	struct disk disk;
};

/* Returns true if the run is a rehearsal: agents only pretend to compute, and nothing is
 * trained. */
static inline bool run_is_rehearsal(const struct run *run)
{
	return run->training.model.rehearsal > 0;
}

#endif
