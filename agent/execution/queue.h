/* queue.h - which task a node runs next, and what it has counted.
 *
 * The execution model of docs/formats.md for one node: one task at a time, never interrupted,
 * never idle while a task it may start is waiting. Among those the best rank goes first, then
 * those without rank by (attempt, arrival, microbatch): what runs again is late already and goes
 * before the rest. A microbatch holds one of the node's slots from
 * the start of its F to the end of its B, and no F starts without one.
 *
 * Each microbatch's newest attempt is the only one that counts. Where it goes on (queue_go_on)
 * what is here stays: slot, waiting tasks, the running one. Where it begins again
 * (queue_supersede) older tasks are dropped, and a slot the older attempt held is free again
 * (after the task that is using it, if one is). A gradient is added at most once an iteration
 * for the loss and once for the backward pass, whatever the attempts: they compute the same bits.
 * A node that stands in for one that died may get the gradient before the activation: its B
 * waits for its F.
 *
 * Pure: no clock, no threads. Evaluation tasks take turns with the others but hold no slot and
 * are never counted.
 */
#ifndef AGENT_QUEUE_H
#define AGENT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/execution/route.h"

#define QUEUE_NOBODY UINT32_MAX /* no microbatch */

struct task {
	struct route route; /* the newest that goes on */
	uint32_t position;
	bool evaluate;
	bool first;         /* an F on its data node: was never on the way, so never waits */
	int64_t arrived_us;
	float *input;       /* owned (malloc); NULL where the task reads the corpus */
	/* Set by the queue. */
	uint32_t attempt;   /* in which it came */
	enum task_kind kind;
	uint32_t blocker;   /* microbatch it waited for; QUEUE_NOBODY: it did not wait */
	bool announced;     /* queue_waiter has returned it */
	int slot;           /* the slot its microbatch holds; -1 evaluation */
	bool count;         /* its gradient is to be added */
	bool stale;         /* superseded while it ran: nobody wants its output */
};

void task_free(struct task *t); /* NULL is allowed */

struct queue; /* opaque */

/* slots >= 1. -ENOMEM. */
int queue_new(struct queue **out, uint32_t slots);
void queue_free(struct queue *q); /* NULL is allowed; a running task too */

/* Forgets the iteration: waiting tasks, attempts, what was counted, slots, ranks. A running task
 * is stale and keeps its slot to its end. Evaluations stay. */
void queue_clear(struct queue *q);
void queue_clear_evaluations(struct queue *q);
/* The node's order for the iteration: earlier in the array, sooner. Entries that name no
 * possible microbatch are passed over; of two equal ones the first counts. */
void queue_rank(struct queue *q, const struct msg_rank *ranks, size_t n);

enum queue_verdict {
	QUEUE_TAKEN,  /* the queue owns the task now */
	QUEUE_OLD,    /* a newer attempt is known */
	QUEUE_TWICE,  /* this attempt's task was here before */
	QUEUE_ORPHAN, /* L or B of an attempt that nobody has told of */
	QUEUE_FULL    /* out of memory, or more evaluations than any plan has */
};
/* A task that may run as soon as the node likes. Anything but QUEUE_TAKEN leaves it the
 * caller's. A newer attempt supersedes what the queue has of the microbatch. */
enum queue_verdict queue_arrive(struct queue *q, struct task *t);
/* The microbatch runs again: false when this attempt, or a newer one, is known already. */
bool queue_supersede(struct queue *q, uint32_t microbatch, uint32_t attempt);
/* The microbatch goes on by this route, a newer attempt than what is known here, to which it is as
 * route_goes_on says: false when it is not newer. */
bool queue_go_on(struct queue *q, const struct route *r);

/* Starts the best task that may start, unless one is running: NULL none. Borrowed; it runs until
 * queue_end. */
struct task *queue_start(struct queue *q, int64_t now_us);
/* The running task has ended: given to the caller (task_free). Its slot is free after a B. */
struct task *queue_end(struct queue *q);
const struct task *queue_running(const struct queue *q); /* NULL none */

/* The next waiting task that arrived from elsewhere and could not start at once, each once:
 * NULL none. Call it after queue_start. Sets its blocker: what holds a slot longest where an F
 * lacks one, else what runs or ran last. */
const struct task *queue_waiter(struct queue *q);

/* Whether the gradient of the microbatch's loss, or of its backward pass, is added here, whatever the attempt; or
 * by the task that runs. And how many ever were. */
bool queue_counted(const struct queue *q, uint32_t microbatch, enum task_kind kind);
uint32_t queue_counts(const struct queue *q);

uint32_t queue_waiting(const struct queue *q);    /* tasks */
uint32_t queue_slots_held(const struct queue *q);
bool queue_blocked(const struct queue *q);        /* tasks wait, nothing runs, none may start */

#endif
