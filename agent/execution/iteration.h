/* iteration.h - runs an iteration from START to its commit, and evaluations between iterations.
 *
 * orders.c passes an order once the agent is READY and settled. An invalid order is reported to the
 * controller and changes nothing.
 */
#ifndef AGENT_ITERATION_H
#define AGENT_ITERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/shared/route.h"
#include "wire/msg.h"

struct agent;
struct job;

/* The evaluation that the controller has ordered last. */
struct evaluation {
	uint64_t iteration;
	struct route *routes; /* (n) */
	/* (n) bits of the inputs that have arrived: one for the visit, one for the loss */
	uint8_t *arrived;
	uint32_t n;
};

/* Starts an iteration: a data node queues its microbatches. A repeated order changes nothing; an
 * order with another plan restarts the iteration. */
void iteration_start(struct agent *a, const struct msg_start *m, int64_t now_us);
/* Applies a reroute: newer attempts of microbatches, and the nodes that have left. */
void iteration_reroute(struct agent *a, const struct msg_reroute *m, int64_t now_us);
/* Requests the step if the commit's reduction is complete here. Reports again an iteration that is
 * already committed. */
void iteration_commit(struct agent *a, const struct msg_commit *m, int64_t now_us);
/* Begins the sum that waits for the counts, once this node has added all gradients of the routes
 * that it knows and no task runs. */
void iteration_begin_sum(struct agent *a);
void iteration_evaluate(struct agent *a, const struct msg_evaluate *m, int64_t now_us);

/* Gives the next job: a step, or zeroing the gradient. Returns true if there is one. */
bool iteration_next_job(struct agent *a, struct job *job);
void iteration_job_done(struct agent *a, const struct job *job, int64_t now_us);

void iteration_forget(struct agent *a); /* drops the unfinished iteration */
void iteration_forget_evaluation(struct agent *a);

#endif
