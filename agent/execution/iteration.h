/* iteration.h - one iteration, from its START to its commit; and evaluations between iterations.
 *
 * Orders come once the agent is READY and settled (orders.h). What is wrong with one is told, and
 * changes nothing.
 */
#ifndef AGENT_ITERATION_H
#define AGENT_ITERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/execution/route.h"
#include "wire/msg.h"

struct agent;
struct job;

/* The evaluation that the controller has ordered last. */
struct evaluation {
	uint64_t iteration;
	struct route *routes; /* (n) */
	uint8_t *arrived;     /* (n) bits: the input of the visit, of the loss */
	uint32_t n;
};

/* Begins it: its data node's microbatches are queued. Said twice: nothing. By another plan: anew. */
void iteration_start(struct agent *a, const struct msg_start *m, int64_t now_us);
/* Newer attempts of microbatches, and nodes that are gone. */
void iteration_reroute(struct agent *a, const struct msg_reroute *m, int64_t now_us);
/* Asks for the step, if the reduction that it names is complete here. Of one that is committed: told again. */
void iteration_commit(struct agent *a, const struct msg_commit *m, int64_t now_us);
/* Whether all gradients that this node adds by the routes that it knows are added, or are by the task that runs. */
bool iteration_counted(const struct agent *a);
void iteration_evaluate(struct agent *a, const struct msg_evaluate *m, int64_t now_us);

/* A step, or a gradient that is to be zero. */
bool iteration_next_job(struct agent *a, struct job *job);
void iteration_job_done(struct agent *a, const struct job *job, int64_t now_us);

void iteration_forget(struct agent *a); /* the one under way, unfinished */
void iteration_forget_evaluation(struct agent *a);

#endif
