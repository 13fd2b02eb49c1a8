/* agent.h - one node of a run: obeys the controller, computes, talks to the other nodes.
 *
 * docs/agent.md tells the protocol. The program polls agent_fds and calls, each turn,
 *
 *     agent_receive(a, now);   what has arrived: messages, finished jobs
 *     agent_work(a, now);      what can be started or ended
 *     agent_send(a, now);      tensors that are due, reports, heartbeats
 *
 * None of them blocks or computes; each does a bounded amount of work. Single-threaded, but for
 * the one compute thread inside.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "model/stage.h"
#include "wire/keys.h"

struct agent; /* opaque */

enum { AGENT_FDS = 5 };

/* Borrowed until agent_free. */
struct agent_options {
	const char *join;      /* address of the controller's control plane */
	struct keys_public controller;
	const struct keys_identity *identity;
	const char *listen;    /* where the tensor plane listens */
	const char *advertise; /* as others dial it; NULL: where it listens */
	const char *device;    /* as in model/device_name.h */
	enum recompute recompute;
	size_t memory_bytes; /* most of the machine's memory, for the stage and an iteration; 0:
			      * what is free */
	int32_t node;        /* the node it would be; -1: any */
	const char *run_dir; /* for checkpoints of the stage it holds; NULL: none are written */
	uint32_t orphan_s;   /* leaves after so long without a controller */
	uint32_t stuck_s;    /* and when a task has not ended for so long */
	size_t piece_bytes;  /* of a gradient's slice, a message; a multiple of 4; 0: 2 MiB */
	/* Of the tensor plane, as post_options has them: a frame's part of a message (0: the post's),
	 * a message, what is sent to one peer and not acknowledged (0: ours). */
	size_t chunk_bytes, message_bytes, retained_bytes;
	struct log *log;     /* its `who` is set to the node's name */
};

/* Looks for its device (the CPU where there is no GPU at all), listens, dials the controller,
 * starts the compute thread. Gives *out (agent_free). Errors are those of stage_device, post_open,
 * post_listen, post_dial and worker_new. */
int agent_new(struct agent **out, const struct agent_options *options, int64_t now_us,
	      struct error *err);
void agent_free(struct agent *a); /* NULL is allowed */

void agent_fds(const struct agent *a, int fds[AGENT_FDS]); /* poll for POLLIN; never read; -1: none */
int64_t agent_deadline_us(const struct agent *a);          /* when there is something to do */

void agent_receive(struct agent *a, int64_t now_us);
void agent_work(struct agent *a, int64_t now_us);
void agent_send(struct agent *a, int64_t now_us);

/* Tells the controller, and is over soon. */
void agent_leave(struct agent *a, const char *why, int64_t now_us);
/* Whether it is over, and with which exit status. */
bool agent_over(const struct agent *a, int *status, int64_t now_us);
/* Once it is over: the compute thread is still at work, and agent_free would wait for it. */
bool agent_stuck(const struct agent *a);
/* An injected hang: milliseconds for which the process is to do nothing at all; 0 none. Said
 * once. */
uint32_t agent_hang_ms(struct agent *a);

#endif
