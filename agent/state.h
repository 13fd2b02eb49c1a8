/* state.h - the state of an agent that several of its modules read.
 *
 * Every module has a header of its own. State that only one module needs is hidden behind its
 * handle in struct modules. Several modules read the other structs here; the module named beside a
 * struct writes it.
 *
 * Only agent.c calls a module of a higher layer. The layers, from the top:
 *
 *     agent            the loop: runs the phases of a turn
 *     orders           carries out the controller's orders, some only once the agent is settled
 *     join assign      admission to a run; assignment of a stage
 *     tensors          passes tensors from peers to the module that needs them
 *     iteration        start, reroutes, commit; below it tasks, reduction, plans
 *     standby restore weight_server save    hold, restore, serve and save copies of stages
 *     corpus_files     finds or fetches the corpus
 *     files            fetches files from the controller and sends it files
 *     heartbeat probe measure trains connections    test, measure and prepare the links
 *     links            sends tensors to peers; below it link_times
 *     misuse report    counts violations of the protocol; reports the tasks' events
 *     tell             sends messages to the controller
 *
 * A module requests work of higher layers, and the loop carries it out: a job for the worker
 * (returned by next_job), a flag in struct requests, a question to the iteration
 * (reduction_asks_for_count), or the end of the process (tell_last).
 */
#ifndef AGENT_STATE_H
#define AGENT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/assign.h"
#include "agent/shared/fault.h"
#include "agent/join.h"
#include "agent/execution/needs.h"
#include "agent/network/connections.h"
#include "agent/heartbeat.h"
#include "agent/network/link_times.h"
#include "agent/network/measure.h"
#include "agent/network/misuse.h"
#include "agent/network/peers.h"
#include "agent/network/probe.h"
#include "agent/network/report.h"
#include "agent/network/trains.h"
#include "agent/orders.h"
#include "agent/sums/reduction.h"
#include "agent/shared/held.h"
#include "agent/shared/progress.h"
#include "agent/shared/requests.h"
#include "agent/shared/run.h"
#include "agent/shared/tell.h"
#include "agent/tensors/delay_queue.h"
#include "agent/tensors/early.h"
#include "agent/tensors/links.h"
#include "agent/tensors/outputs.h"
#include "agent/arrivals.h"
#include "agent/weights/corpus_files.h"
#include "agent/weights/files.h"
#include "agent/weights/restore.h"
#include "agent/weights/save.h"
#include "agent/weights/standby.h"
#include "agent/weights/weight_server.h"
#include "agent/execution/compute.h"
#include "agent/execution/iteration.h"
#include "agent/execution/plans.h"
#include "agent/execution/queue.h"
#include "agent/shared/route.h"
#include "agent/execution/tasks.h"
#include "agent/shared/worker.h"
#include "wire/msg.h"
#include "wire/post.h"

/* This process as other processes see it. */
struct identity {
	char who[32];                  /* name of this process in log lines */
	char address[128];             /* address at which peers dial this process */
	char bound[LINK_ADDRESS_SIZE]; /* address at which this process listens */
	/* Reason why the controller is not reached, as last logged. */
	char trouble[512];
	uint64_t incarnation; /* random number that identifies the process */
	/* The agent has logged that other machines cannot dial its address. */
	bool warned_of_address;
	int64_t awake_us;     /* when the process started, or continued after a suspension */
	int64_t turn_us;      /* when the last turn began */
};

/* Detects a job that does not end. */
struct stuck_check {
	int64_t job_from_us; /* when the present job began */
	/* Duration of the longest job so far among those that an iteration waits for. */
	int64_t longest_us;
	bool found;
};

/* The state of each module, visible only to that module. */
struct modules {
	struct orders *orders;
	struct report *report;
	struct heartbeat *heartbeat;
	struct gpu_monitor *gpu_monitor; /* NULL: the device is no GPU */
	struct link_times link_times;
	struct misuse misuse;
	struct links links;
	struct measure *measure;
	struct connections *connections;
	struct trains *trains;
	struct delay_queue *delay_queue;
	struct early *early;
	struct outputs *outputs;
	struct plans plans;
	struct tasks *tasks;
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
	struct requests requests; /* modules set them, the loop acts on them */
	struct worker *worker;
	struct job job;     /* the worker's present job */
	struct stuck_check stuck;
	struct faults faults; /* orders.c */

	struct run run;          /* join.c */
	struct compute *compute; /* used by the worker */
	struct peers peers;      /* join.c */

	struct held held;         /* assign.c, restore.c */
	struct progress progress; /* iteration.c */
	struct iteration iteration;
	struct modules modules;
};

/* Makes an agent without a device, threads and connections (state_free). The options are copied. */
struct agent *state_new(const struct agent_options *options);
/* Frees what state_new has made. NULL is allowed. */
void state_free(struct agent *a);

#endif
