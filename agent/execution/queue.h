/* queue.h - decides which task a node runs next, and records which gradients it has added.
 *
 * This is the execution model of docs/formats.md for one node: F is the forward task of a
 * microbatch, L its loss, and B its backward task. The node runs one task at a time and never
 * interrupts it. The node is never idle while a task that may start is waiting. A task of a newer
 * attempt runs first, because a repeated microbatch is late already. Tasks of equal attempts run
 * in ascending order of rank. Tasks without a rank follow, the earliest arrival first. If two
 * tasks arrived at the same time, the lower microbatch runs first. No F starts without a slot. A
 * microbatch holds one of the node's slots from the start of its F to the end of its B.
 *
 * Only the newest attempt of a microbatch counts. If the newest attempt continues the previous
 * attempt (queue_continue), the slot, the waiting tasks and the running task stay. If the
 * microbatch restarts (queue_supersede), the queue drops its older tasks and frees its slot; a
 * running task keeps the slot until it ends. In each iteration the node adds a microbatch's
 * gradient at most once for the loss and once for the backward pass. One addition suffices,
 * because all attempts compute the same bits. A substitute for a dead node may get the gradient
 * before the activation. The B then waits for the F.
 *
 * Pure: no clock, no threads. Evaluation tasks run between the tasks of the iteration, hold no
 * slot and are never counted.
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
	/* Route of the microbatch, updated when a newer attempt continues the route. */
	struct route route;
	uint32_t position;
	bool evaluate;
	/* The task is an F on the microbatch's data node. No other node sent the input, so this
	 * node does not report how long the task waits. */
	bool first;
	int64_t arrived_us;
	/* The input's bytes, which are in the memory of `owner`. `at` NULL: the task reads the
	 * corpus. */
	struct tensor_bytes input;
	/* Owner of the input's bytes. This task is a user of the owner. If a job of the worker
	 * reads the bytes, this job is a user too. */
	struct body *owner;
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

/* Makes an empty queue with this number of slots, at least 1. -ENOMEM: the number is too large,
 * because it comes from a message. */
int queue_new(struct queue **out, uint32_t slots);
void queue_free(struct queue *q); /* NULL is allowed; a running task is freed too */

/* Forgets the iteration: waiting tasks, attempts, counted gradients, slots and ranks. A running
 * task becomes stale and keeps its slot until it ends. Evaluations stay. */
void queue_clear(struct queue *q);
void queue_clear_evaluations(struct queue *q);
/* Sets the ranks of the node's tasks in the iteration. The task at index 0 has the first rank.
 * Ignores invalid entries, and repetitions of an entry. */
void queue_rank(struct queue *q, const struct msg_rank *ranks, size_t n);

enum queue_verdict {
	QUEUE_TAKEN,  /* the queue now owns the task */
	QUEUE_OLD,    /* the queue knows a newer attempt of the microbatch */
	QUEUE_TWICE,  /* the task arrived earlier in the same attempt */
	QUEUE_ORPHAN, /* an L or B of an unknown attempt */
	QUEUE_FULL    /* the queue holds evaluation tasks up to its limit */
};
/* Adds a task whose input is available. The queue owns the task only if the result is QUEUE_TAKEN.
 * A newer attempt supersedes the microbatch's tasks in the queue. */
enum queue_verdict queue_arrive(struct queue *q, struct task *t);
/* Restarts the microbatch with this attempt: drops older tasks and frees their slot. Returns false
 * if this attempt or a newer one is already known. */
bool queue_supersede(struct queue *q, uint32_t microbatch, uint32_t attempt);
/* Continues the microbatch with a newer attempt, whose route must continue the known one
 * (route_continues). Returns false if the attempt is not newer than the known one. */
bool queue_continue(struct queue *q, const struct route *r);

/* Starts the best task that may start, and returns it, borrowed until queue_end. NULL: no task may
 * start, or one is running. */
struct task *queue_start(struct queue *q, int64_t now_us);
/* Returns the task that starts after the running task if no other task arrives; borrowed. NULL: no
 * task may start. */
const struct task *queue_next(const struct queue *q);
/* Ends the running task and gives it to the caller (task_free). A B frees the slot. */
struct task *queue_end(struct queue *q);
/* Returns the running task, borrowed; NULL: none. */
const struct task *queue_running(const struct queue *q);

/* Returns a waiting task that arrived from another node and could not start at once; each call
 * returns another task. NULL: no more. Call it after queue_start. Sets the task's `blocker`. If
 * an F lacks a slot, the blocker is the microbatch that has held a slot longest. In all other
 * cases the blocker is the microbatch of the running task. If no task runs, the blocker is the
 * microbatch of the task that ran last. */
const struct task *queue_announce_waiter(struct queue *q);

/* Returns true if the gradient of this task was added in any attempt, or is being added. kind: loss
 * or backward pass. */
bool queue_counted(const struct queue *q, uint32_t microbatch, enum task_kind kind);
/* Returns how many gradients the queue has counted since it was made. */
uint32_t queue_counts(const struct queue *q);

uint32_t queue_waiting(const struct queue *q);    /* number of waiting tasks */
uint32_t queue_slots_held(const struct queue *q);
/* Returns true if tasks wait, no task runs, and no waiting task may start. */
bool queue_blocked(const struct queue *q);

#endif
