/* iteration.h - runs an iteration from START to its commit, and evaluations between iterations.
 *
 * orders.c passes an order to this module when the agent is READY and settled. An invalid order
 * is reported to the controller and changes nothing.
 */
#ifndef AGENT_ITERATION_H
#define AGENT_ITERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/execution/needs.h"
#include "agent/execution/plans.h"
#include "agent/execution/tasks.h"
#include "agent/network/link_times.h"
#include "agent/network/misuse.h"
#include "agent/network/report.h"
#include "agent/shared/held.h"
#include "agent/shared/progress.h"
#include "agent/shared/requests.h"
#include "agent/shared/route.h"
#include "agent/shared/run.h"
#include "agent/shared/tell.h"
#include "agent/sums/reduction.h"
#include "agent/tensors/links.h"
#include "agent/tensors/outputs.h"
#include "agent/weights/standby.h"
#include "wire/msg.h"

struct job;

/* The newest evaluation that the controller ordered. */
struct evaluation {
	uint64_t iteration;
	struct route *routes; /* the n routes of the evaluation */
	/* For each of the n routes, a bit mask of the inputs that have arrived. The mask 1 stands
	 * for the input of the forward pass, the mask 2 for the input of the loss. */
	uint8_t *arrived;
	uint32_t n;
};

/* The parts of the agent that an iteration works on. All are borrowed. */
struct iteration_uses {
	size_t memory_bytes; /* memory limit, as in agent_options */
	bool saves;          /* this node writes checkpoints */
	struct tell *tell;
	const struct run *run;
	struct held *held;
	struct progress *progress;
	struct requests *requests;
	struct report *report;
	struct misuse *misuse;
	struct link_times *link_times;
	struct links *links;
	struct outputs *outputs;
	struct plans *plans;
	struct tasks *tasks;
	struct device_clock *device_clock;
	struct reduction *reduction;
	const struct standby *standby;
};

/* The state of an agent's present iteration. Each agent has a single struct iteration. */
struct iteration {
	/* the routes of all MSG_MICROBATCHES microbatches; a route without hops is unknown */
	struct route *routes;
	/* The commit that the next step carries out, if requests->step is set. */
	struct msg_commit commit;
	struct evaluation evaluation;
	/* The memory needs that the last check compared with the free memory; total 0: no check
	 * was made yet. */
	struct needs checked;
	/* Bytes left for tensors that arrive early; 0: unknown, because the memory was not
	 * checked yet. */
	size_t early_room;
	struct iteration_uses uses;
};

/* Starts an iteration: a data node queues its microbatches. A repeated order changes nothing; an
 * order with another plan restarts the iteration. */
void iteration_start(struct iteration *x, const struct msg_start *m, int64_t now_us);
/* Applies a reroute, which has newer attempts of microbatches and the nodes that have left. */
void iteration_reroute(struct iteration *x, const struct msg_reroute *m, int64_t now_us);
/* Requests the step if this node's reduction for the commit is complete. If this node has already
 * committed the iteration, repeats the report. */
void iteration_commit(struct iteration *x, const struct msg_commit *m, int64_t now_us);
/* Lets a waiting reduction begin. Does nothing while a task runs, or while this node has not added
 * all gradients of the routes that it knows. */
void iteration_begin_sum(struct iteration *x);
void iteration_evaluate(struct iteration *x, const struct msg_evaluate *m, int64_t now_us);
/* Returns true if the ordered evaluation needs the input at this position and has not received
 * it. */
bool iteration_needs_input(const struct iteration *x, const struct route *r, uint32_t position);
/* Marks an input of an ordered evaluation as received. */
void iteration_takes_input(struct iteration *x, const struct route *r, uint32_t position);

/* Sets *job to the next job: to make a step, to take the layers of a standby copy, or to zero the
 * gradient. Returns false if there is no job. */
bool iteration_next_job(struct iteration *x, struct job *job);
void iteration_job_done(struct iteration *x, const struct job *job, int64_t now_us);

void iteration_forget(struct iteration *x); /* drops the unfinished iteration */
void iteration_forget_evaluation(struct iteration *x);

#endif
