/* agent.h - one node of a run: carries out the controller's orders, computes, exchanges tensors.
 *
 * docs/agent.md describes the protocol. The program polls agent_fds and calls in each turn
 *
 *     agent_receive(a, now);   handles messages that have arrived
 *     agent_work(a, now);      ends and starts jobs
 *     agent_send(a, now);      sends tensors that are due, reports, heartbeats
 *
 * None of these functions blocks or computes, and each does a bounded amount of work. All run in
 * one thread. The agent has other threads that compute, and that encode and decode tensors.
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

enum { AGENT_FDS = 9 };
/* Exit status of an agent that would be refused again if it were started again. */
enum { AGENT_REFUSED_FOR_GOOD = 3 };

/* The agent borrows what the pointers point to, until agent_free. */
struct agent_options {
	const char *join;      /* address of the controller's control plane */
	struct keys_public controller;
	const struct keys_identity *identity;
	const char *listen;    /* address at which the agent listens for tensors */
	/* Address at which other nodes dial this agent; NULL: the agent finds it (wire/reach.h). */
	const char *advertise;
	const char *seen;   /* host of this machine as the controller sees it; NULL: not known */
	const char *place;  /* place of the machine; NULL: not given */
	const char *device; /* name of the computing device (model/device_name.h) */
	enum recompute recompute;
	size_t memory_bytes; /* limit of the machine's memory for the stage and an iteration; 0:
			      * the free memory */
	int32_t node;        /* the node that this agent asks to be; -1: any */
	/* Folder for checkpoints of the agent's stage; NULL: the agent writes no checkpoints. */
	const char *run_dir;
	/* n_corpus paths, each ended by NUL, that replace the run's paths; the bytes must be equal
	 */
	const char *corpus;
	uint32_t n_corpus;   /* number of paths; 0: the run's paths */
	uint32_t orphan_s;   /* seconds without a controller after which the agent ends */
	/* Limit, in seconds, for which a draining agent stays while its stage needs it; 0: the
	 * agent does not drain */
	uint32_t notice_s;
	uint32_t stuck_s;    /* seconds that one task may take before the agent ends */
	size_t piece_bytes;  /* message size for slices of gradients; a multiple of 4; 0: 2 MiB */
	/* Limits for tensors, as the fields of the same names in post_options; 0: the defaults. */
	size_t chunk_bytes, message_bytes, retained_bytes;
	/* Activations from this size in fp32 on are encoded and decoded by threads; 0: 256 KiB. */
	size_t threads_from_bytes;
	/* Activations and gradients between stages stay in the buffers of their chunks if these
	 * have so many bytes on average; 0: 16 KiB. */
	size_t piece_least_bytes;
	struct log *log;     /* agent_new sets its `who` to the node's name */
};

/* Finds the device (the CPU if there is no GPU), listens, dials the controller, starts the compute
 * thread. Gives *out (agent_free). Errors are those of stage_device, post_open, post_listen,
 * post_dial and worker_new. */
int agent_new(struct agent **out, const struct agent_options *options, int64_t now_us,
	      struct error *err);
void agent_free(struct agent *a); /* NULL is allowed */

/* Gives the descriptors to poll for POLLIN; -1: none. */
void agent_fds(const struct agent *a, int fds[AGENT_FDS]);
/* Returns the time at which the agent must be called at the latest. */
int64_t agent_deadline_us(const struct agent *a);

void agent_receive(struct agent *a, int64_t now_us);
void agent_work(struct agent *a, int64_t now_us);
void agent_send(struct agent *a, int64_t now_us);

/* Reports the reason to the controller and begins to end the agent. drains: an agent that has a
 * stage and a controller drains first; the second call ends it at once. */
void agent_leave(struct agent *a, const char *why, bool drains, int64_t now_us);
/* Returns true if the agent has ended, and sets *status to the exit status. */
bool agent_over(const struct agent *a, int *status, int64_t now_us);
/* Returns true if a thread still computes or reads the GPU: agent_free would wait for it. */
bool agent_stuck(const struct agent *a);
/* Returns the milliseconds for which an injected fault suspends the process, once for each fault;
 * 0: no fault. */
uint32_t agent_hang_ms(struct agent *a);

#endif
