/* state.h - all parts of an agent, for the loop and for the handlers of orders and messages.
 *
 * Each part has its own struct and header. The functions of a part receive its struct, which has
 * pointers to the other parts that they work on. Only the files in agent/ itself see all parts.
 * From the top:
 *
 *     agent.c           the loop: runs the phases of a turn
 *     orders.c          carries out the controller's orders, some only once the agent is settled
 *     join.c assign.c   admission to a run; assignment of a stage
 *     arrivals.c        checks tensors from peers, and passes each to the part that needs it
 *     heartbeat.c       reports what all parts do
 *     execution/        start, reroutes and commit of an iteration; its plans, tasks and queue
 *     weights/          keeps, restores, serves and saves copies of stages; files
 *     sums/             sums the gradients of a stage's replicas
 *     tensors/          sends tensors to peers, and keeps what arrives early
 *     network/          connects to peers, and tests and measures the links
 *     shared/           what several parts read, and the connection to the controller
 *
 * A part calls only parts below it (floors_agent in the Makefile). It requests work of higher parts
 * from the loop: a job for the worker (returned by next_job), a flag in struct requests, or the end
 * of the process (tell_last).
 */
#ifndef AGENT_STATE_H
#define AGENT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/execution/iteration.h"
#include "agent/execution/plans.h"
#include "agent/network/link_times.h"
#include "agent/network/misuse.h"
#include "agent/network/peers.h"
#include "agent/shared/fault.h"
#include "agent/shared/held.h"
#include "agent/shared/job.h"
#include "agent/shared/progress.h"
#include "agent/shared/requests.h"
#include "agent/shared/run.h"
#include "agent/shared/tell.h"
#include "agent/tensors/links.h"

/* How other processes know this process. */
struct identity {
	char who[32];                  /* name of this process in log lines */
	char address[128];             /* address at which peers dial this process */
	/* Addresses at which peers dial this process if they share this machine's outside address;
	 * "": none. */
	char inside[256];
	char bound[LINK_ADDRESS_SIZE]; /* address at which this process listens */
	/* Reason why the controller cannot be reached, as logged last. */
	char trouble[512];
	uint64_t incarnation; /* random number that identifies the process */
	/* The agent has logged that other machines cannot dial its address. */
	bool warned_of_address;
	/* Time at which the process started, or continued after a suspension. */
	int64_t awake_us;
	int64_t turn_us;      /* time at which the newest turn began */
};

/* The check for a job of the worker that does not end. */
struct stuck_check {
	int64_t job_from_us; /* time at which the present job began */
	/* Duration of the longest short job so far (job_is_short in agent.c). */
	int64_t longest_us;
	bool found;
};

/* The parts in subfolders. Each struct is visible only to its own module. state.c makes all
 * modules, except gpu_monitor and save (made by agent.c) and early (made by join.c). */
struct modules {
	struct orders *orders;
	struct report *report;
	struct heartbeat *heartbeat;
	struct gpu_monitor *gpu_monitor; /* figures of the GPU; NULL: the device is no GPU */
	struct link_times link_times;
	struct misuse misuse;
	struct links links;
	struct measure *measure;
	struct connections *connections;
	struct packet_trains *trains;
	struct delay_queue *delay_queue;
	struct early *early;
	struct outputs *outputs;
	struct plans plans;
	struct tasks *tasks;
	struct device_clock *device_clock;
	struct reduction *reduction;
	struct standby *standby;
	struct files *files;
	struct corpus_files *corpus_files;
	struct restore *restore;
	struct save *save;
	struct weight_server *weight_server;
};

struct agent {
	/* ---- agent.c ---- */
	struct agent_options options;
	struct identity self;
	struct stage_device device; /* the computing device, found at the start */
	struct keys_list *admitted;
	struct tell tell;
	struct requests requests; /* modules set the requests, and the loop acts on them */
	struct worker *worker;
	struct job job; /* the worker's running job; if the worker is idle, its previous job */
	struct stuck_check stuck;
	struct faults faults; /* written by orders.c */

	struct run run;          /* written by join.c */
	struct compute *compute; /* used by the worker */
	struct peers peers;      /* made by join.c; peer.h says who writes each field */

	struct held held;         /* written by assign.c, restore.c and iteration.c */
	struct progress progress; /* written by iteration.c */
	struct iteration iteration;
	struct modules modules;
};

/* Makes an agent without a device, threads and connections (state_free). The options are copied. */
struct agent *state_new(const struct agent_options *options);
/* Frees what state_new has made. NULL is allowed. */
void state_free(struct agent *a);

#endif
