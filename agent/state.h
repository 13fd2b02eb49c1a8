/* state.h - an agent as its loop sees it: what all of its modules may read, and a handle of each.
 *
 * Every module has a header of its own, and what only it needs is behind its handle. What stands here
 * openly several read, and one writes: the module that the group names. The agent stands
 * somewhere between UNASSIGNED and READY.
 *
 * Nobody but agent.c calls a module that stands higher, in this order from above:
 *
 *     agent        the turn: the order in which all of this happens
 *     orders       what the controller orders, now or once the agent is settled
 *     join assign  into a run; to a stage
 *     tensors      what peers send: to whom it belongs
 *     iteration    start, reroutes, commit; below it tasks, reduction, plans
 *     standby restore weight_server save    copies of stages: one kept, fetched, given, written
 *     heartbeat probe measure trains        what links can do, and whether they are cut
 *     links        what leaves for peers; below it link_times
 *     misuse report    what others send that breaks the protocol; what tasks did
 *     tell         the controller's ear
 *
 * What a module wants done that is not below it, it leaves as a request, and the loop acts: a job for
 * the worker (returned by its next_job), another look at what came early (look_again), the agent's
 * end (tell_last).
 */
#ifndef AGENT_STATE_H
#define AGENT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/assign.h"
#include "agent/fault.h"
#include "agent/join.h"
#include "agent/needs.h"
#include "agent/network/heartbeat.h"
#include "agent/network/link_times.h"
#include "agent/network/measure.h"
#include "agent/network/misuse.h"
#include "agent/network/peer.h"
#include "agent/network/probe.h"
#include "agent/network/report.h"
#include "agent/network/trains.h"
#include "agent/orders.h"
#include "agent/sums/reduction.h"
#include "agent/tell.h"
#include "agent/tensors/delay_queue.h"
#include "agent/tensors/early.h"
#include "agent/tensors/links.h"
#include "agent/tensors/outputs.h"
#include "agent/tensors/tensors.h"
#include "agent/weights/restore.h"
#include "agent/weights/save.h"
#include "agent/weights/standby.h"
#include "agent/weights/weight_server.h"
#include "agent/execution/compute.h"
#include "agent/execution/iteration.h"
#include "agent/execution/plans.h"
#include "agent/execution/queue.h"
#include "agent/execution/route.h"
#include "agent/execution/tasks.h"
#include "agent/execution/worker.h"
#include "base/rng.h"
#include "wire/msg.h"
#include "wire/post.h"

#define EARLY_MOST_BYTES ((size_t)1 << 30) /* tensors that are ahead of their time */

struct agent {
	/* ---- agent.c ---- */
	struct agent_options options;
	char who[32];
	struct stage_device device; /* what computes, as found at the start */
	struct keys_list *admitted;
	struct post *control, *tensors;
	post_peer_id controller;
	char address[128];
	char bound[LINK_ADDRESS_SIZE]; /* where it listens itself */
	uint64_t incarnation;
	int64_t started_us;
	int64_t now_us;     /* this part of the turn's time */
	uint64_t sequence;  /* of the last message to anybody; all count it up */
	uint64_t refused;   /* what peers and the controller sent that fits nothing, */
	uint64_t dropped;   /* or came too late, or could not leave; all count both up */
	bool look_again;    /* wanted: at what came early */
	uint32_t hang_ms;   /* wanted, by an injected fault: that the process does nothing for so long */
	struct worker *worker;
	struct job job;     /* the worker's */
	struct {            /* whether its job comes back */
		int64_t job_from_us, longest_us; /* the job; of those an iteration waits for */
		int64_t turn_us;                 /* the last turn */
		bool found;
	} stuck;
	struct rng rng;     /* which tries an injected loss takes; pauses between trains */
	struct faults faults; /* orders.c */

	/* ---- tell.c: the end ---- */
	bool leaving;
	int status;
	int64_t leave_by_us, leave_from_us;

	/* ---- join.c: of WELCOME ---- */
	bool welcomed;
	struct msg_welcome run;  /* its arrays: delay_s and sync_s below, no corpus */
	float *delay_s, *sync_s; /* (n_nodes) */
	struct route_limits limits;
	struct model_config config;
	struct compute *compute; /* the worker's */
	struct peer *peers;      /* (n_nodes) */

	/* ---- assign.c, restore.c: the stage ---- */
	enum standing standing;
	struct msg_assign assign;      /* the newest */
	uint8_t stage;                 /* MSG_NO_STAGE */
	size_t parameters, activation; /* P, B * T * C: floats */
	size_t stage_bytes;            /* of the machine's memory */
	bool whole;                    /* the stage is here, of `committed` */
	uint64_t committed, hash;      /* iteration.c too */
	uint64_t told; /* orders.c: iterations that are committed by the controller's newest word; 0: no word yet */

	/* ---- iteration.c, plans.c ---- */
	struct plan plans[PLANS_KEPT];
	uint64_t iteration; /* under way: committed + 1; 0 none */
	uint64_t epoch;
	uint32_t per_shard;
	struct queue *queue;
	struct route *routes; /* (MSG_MICROBATCHES) by id; no hops: not known */
	bool zero_wanted;     /* the gradient is of an attempt that is void; assign.c, restore.c too */
	bool step_wanted;     /* by `commit` */
	struct msg_commit commit;
	struct evaluation evaluation;
	struct needs checked; /* that there is memory for; total 0: not looked */
	size_t early_room;    /* bytes that are left for what comes early; 0: not looked */

	/* ---- the modules' own ---- */
	struct orders *orders;
	struct report *report;
	struct heartbeat *heartbeat;
	struct link_times link_times;
	struct measure *measure;
	struct trains *trains;
	struct delay_queue *delay_queue;
	struct early *early;
	struct outputs *outputs;
	struct tasks *tasks;
	struct reduction *reduction;
	struct standby *standby;
	struct restore *restore;
	struct save *save;
	struct weight_server *weight_server;
};

#endif
