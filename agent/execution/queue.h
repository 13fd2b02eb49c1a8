/* queue.h - decides which task a node runs next, and records which gradients it has added.
 *
 * This is the execution model of docs/formats.md for one node. The node runs one task at a time
 * and never interrupts it. It is never idle while a task that may start is waiting. A task of a
 * newer attempt runs first, because a repeated microbatch is late already. Tasks of equal attempts
 * run by rank, then those without a rank by arrival, then by microbatch. A microbatch holds one of
 * the node's slots from the start of its F to the end of its B, and no F starts without a slot.
 *
 * Only the newest attempt of a microbatch counts. If the attempt continues the one before
 * (queue_continue), the slot, the waiting tasks and the running task stay. If the microbatch
 * restarts (queue_supersede), older tasks are dropped and their slot becomes free; a running task
 * keeps the slot to its end. In each iteration a gradient is added at most once for the loss and
 * once for the backward pass of a microbatch, because all attempts compute the same bits. A
 * substitute for a dead node may get the gradient before the activation: its B then waits for its
 * F.
 *
 * Pure: no clock, no threads. Evaluation tasks run between the others, hold no slot and are never
 * counted.
 */
#ifndef AGENT_QUEUE_H
#define AGENT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/shared/route.h"
#include "agent/tensors/body.h"
#include "model/codec/codec.h"

#define QUEUE_NOBODY UINT32_MAX /* no microbatch */

struct task {
	struct route route; /* the microbatch's route, of the newest attempt that needs this task */
	uint32_t position;
	bool evaluate;
	/* An F on its data node: no other node sent its input, so its wait is not reported. */
	bool first;
	int64_t arrived_us;
	struct tensor_bytes input; /* in the memory of `owner`; NULL: the task reads the corpus */
	struct body *owner;        /* the task is a user; the worker may be another */
	uint64_t number;           /* the input's number, unique in the process; 0: no input */
	/* Fields that the queue sets. */
	uint32_t attempt;   /* the attempt with which the task arrived */
	enum task_kind kind;
	uint32_t blocker;   /* microbatch that delayed the task; QUEUE_NOBODY: none */
	bool announced;     /* queue_announce_waiter has already returned this task */
	int slot;           /* the slot that the microbatch holds; -1: evaluation */
	bool count;         /* the task must add its gradient */
	bool stale;         /* the task was superseded while it ran, so its output is dropped */
};

void task_free(struct task *t); /* NULL is allowed */

struct queue; /* opaque */

/* Makes an empty queue. slots >= 1; the number comes from a message. -ENOMEM. */
int queue_new(struct queue **out, uint32_t slots);
void queue_free(struct queue *q); /* NULL is allowed; a running task is freed too */

/* Forgets the iteration: waiting tasks, attempts, counted gradients, slots, ranks. A running task
 * becomes stale and keeps its slot to its end. Evaluations stay. */
void queue_clear(struct queue *q);
void queue_clear_evaluations(struct queue *q);
/* Sets the node's order for the iteration, the first task at index 0. Invalid entries are ignored;
 * of two equal entries the first counts. */
void queue_rank(struct queue *q, const struct msg_rank *ranks, size_t n);

enum queue_verdict {
	QUEUE_TAKEN,  /* the queue now owns the task */
	QUEUE_OLD,    /* the queue knows a newer attempt of the microbatch */
	QUEUE_TWICE,  /* this task arrived before in the same attempt */
	QUEUE_ORPHAN, /* an L or B of an unknown attempt */
	QUEUE_FULL    /* the queue holds as many evaluations as any plan has */
};
/* Adds a task whose input is available. Unless the result is QUEUE_TAKEN, the caller keeps the
 * task. A newer attempt supersedes the microbatch's tasks in the queue. */
enum queue_verdict queue_arrive(struct queue *q, struct task *t);
/* Restarts the microbatch with this attempt: drops older tasks and frees their slot. Returns false
 * if this attempt or a newer one is already known. */
bool queue_supersede(struct queue *q, uint32_t microbatch, uint32_t attempt);
/* Continues the microbatch with a newer attempt, whose route must continue the known one
 * (route_continues). Returns false if the attempt is not newer than the known one. */
bool queue_continue(struct queue *q, const struct route *r);

/* Starts the best task that may start. NULL: none, or a task is running. The task is borrowed and
 * runs until queue_end. */
struct task *queue_start(struct queue *q, int64_t now_us);
/* Returns the task that will start when the running task has ended, if no other task arrives;
 * borrowed. NULL: none. */
const struct task *queue_next(const struct queue *q);
/* Ends the running task and gives it to the caller (task_free). A B frees the slot. */
struct task *queue_end(struct queue *q);
/* Returns the running task, borrowed; NULL: none. */
const struct task *queue_running(const struct queue *q);

/* Returns each task that arrived from another node and could not start at once, one per call; NULL:
 * no more. Call it after queue_start. Sets the blocker: if an F lacks a slot, the microbatch that
 * has held a slot longest, otherwise the microbatch that runs or ran last. */
const struct task *queue_announce_waiter(struct queue *q);

/* Returns true if the gradient of the microbatch's task of this kind (loss or backward pass) was
 * added in any attempt, or the task runs now. */
bool queue_counted(const struct queue *q, uint32_t microbatch, enum task_kind kind);
/* Returns the number of gradients that the queue has counted since it was made. */
uint32_t queue_counts(const struct queue *q);

uint32_t queue_waiting(const struct queue *q);    /* number of waiting tasks */
uint32_t queue_slots_held(const struct queue *q);
/* Returns true if tasks wait, nothing runs, and none may start. */
bool queue_blocked(const struct queue *q);

#endif
