/* agent.h - one node of a run: carries out the controller's orders, computes, exchanges tensors.
 *
 * docs/agent.md describes the protocol. The program polls agent_fds and calls in each turn
 *
 *     agent_receive(a, now);   handles messages that have arrived
 *     agent_work(a, now);      ends and starts jobs
 *     agent_send(a, now);      sends tensors that are due, reports, heartbeats
 *
 * None of these functions blocks or computes, and each does a bounded amount of work. All three
 * run in one thread. The agent has other threads that compute, and that encode and decode
 * tensors.
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
/* Exit status of an agent that the controller would refuse again after a restart. */
enum { AGENT_REFUSED_FOR_GOOD = 3 };

/* The agent borrows all memory to which the pointers point, until agent_free. */
struct agent_options {
	const char *join;      /* address of the controller's control plane */
	struct keys_public controller;
	const struct keys_identity *identity;
	const char *listen;    /* address at which the agent listens for tensors */
	/* Address at which other nodes dial this agent; NULL: the agent finds it (wire/reach.h). */
	const char *advertise;
	/* Host part of this machine's address as the controller sees it; NULL: not known. */
	const char *seen;
	const char *place;  /* place of the machine, as given by --place; NULL: not given */
	const char *device; /* name of the computing device (model/device_name.h) */
	enum recompute recompute;
	/* Limit of the machine's memory for the stage and an iteration; 0: all free memory. */
	size_t memory_bytes;
	int32_t node; /* number of the node that this agent asks to be; -1: any */
	/* Folder for checkpoints of the agent's stage; NULL: the agent writes no checkpoints. */
	const char *run_dir;
	/* n_corpus paths, each ended by NUL, that replace the paths in WELCOME. The files must have
	 * the same bytes as the run's corpus.
	 */
	const char *corpus;
	uint32_t n_corpus; /* number of paths in `corpus`; 0: the paths in WELCOME are used */
	uint32_t orphan_s; /* time without a controller after which the agent ends, s */
	/* Longest time for which the agent drains, s. Then it leaves, even if no other node has
	 * its stage. 0: the agent does not drain. */
	uint32_t notice_s;
	uint32_t stuck_s;    /* seconds that one task may take before the agent ends */
	/* Size of the messages with pieces of gradients; a multiple of 4; 0: 2 MiB. */
	size_t piece_bytes;
	/* Limits for tensors; post_options explains the fields with these names. 0: the
	 * default. */
	size_t chunk_bytes, message_bytes, retained_bytes;
	/* Activations of at least this many bytes in fp32 are encoded and decoded by threads;
	 * 0: 256 KiB. */
	size_t threads_from_bytes;
	/* If the chunks of an arriving activation or gradient have at least this many bytes on
	 * average, the chunks are not joined; 0: 16 KiB. */
	size_t piece_least_bytes;
	struct log *log; /* agent_new sets its field `who` to the node's name */
};

/* Makes an agent: finds the device (the CPU if there is no GPU), listens, dials the controller
 * and starts the threads. Gives *out (agent_free). Errors are those of stage_device, post_open,
 * post_listen, post_dial and worker_new. */
int agent_new(struct agent **out, const struct agent_options *options, int64_t now_us,
	      struct error *err);
void agent_free(struct agent *a); /* NULL is allowed */

/* Gives the descriptors to poll for POLLIN; -1: none. */
void agent_fds(const struct agent *a, int fds[AGENT_FDS]);
/* Returns the latest time at which the functions of a turn must be called again. */
int64_t agent_deadline_us(const struct agent *a);

void agent_receive(struct agent *a, int64_t now_us);
void agent_work(struct agent *a, int64_t now_us);
void agent_send(struct agent *a, int64_t now_us);

/* Reports the reason to the controller and begins to end the agent. If `drains` is true and the
 * agent has a stage and a controller, the agent drains first. A second call then ends the agent
 * at once. */
void agent_leave(struct agent *a, const char *why, bool drains, int64_t now_us);
/* Returns true if the agent has ended, and sets *status to the exit status. */
bool agent_over(const struct agent *a, int *status, int64_t now_us);
/* Returns true if a thread still computes, writes a checkpoint, or reads the GPU's figures.
 * agent_free would then wait for this thread. */
bool agent_stuck(const struct agent *a);
/* Returns for how many milliseconds an injected fault suspends the process; 0: no fault. A second
 * call for the same fault returns 0. */
uint32_t agent_hang_ms(struct agent *a);

#endif
