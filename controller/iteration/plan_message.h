/* plan_message.h - shows plans to consoles, in a live run and in a replay alike. */
#ifndef CONTROLLER_ITERATION_PLAN_MESSAGE_H
#define CONTROLLER_ITERATION_PLAN_MESSAGE_H

#include <stdint.h>

#include "controller/planning/planner.h"
#include "store/store.h"
#include "wire/msg.h"

struct console;
struct iteration;

/* Properties of a run that a plan does not contain. Borrowed. */
struct message_run {
	uint32_t n_nodes, n_shards, per_shard;
	/* Array of n_nodes: data shard of each node; -1: not a data node when the run began */
	const int *shard_of;
	double unit_s;       /* number of real seconds in one plan second */
};

/* A plan as a message; its arrays live until plan_message_fini. */
struct plan_message {
	struct msg message; /* the message to send, of type MSG_SEE_PLAN */
	struct route *routes;
	struct msg_task_event *events;
	uint32_t visits[MSG_STAGES];
	struct microbatch *microbatches; /* owns the arrays of the routes */
};

/* Describes a plan without its routes and tasks. candidate: as in plan_message_init. */
void describe_plan(struct msg_see_plan *s, const struct planned *p, const char *candidate);
/* Fills *s with the plan as a message. candidate: the plan's name in the console's Compare view;
 * NULL: the plan is in force. -EINVAL: the plan and the run differ in the number of
 * microbatches. */
int plan_message_init(struct plan_message *s, const struct message_run *run,
		      const struct planned *p, const char *candidate);
void plan_message_fini(struct plan_message *s);

/* Fills in the properties of the iteration's plan: its algorithm, number of stages and share of
 * skipping microbatches. */
void fill_from_plan(struct msg_see_iteration *s, const struct plan *p);
/* For each iteration in the list that used this plan, fills in the plan's properties and the
 * predicted time of the sums. The store has these figures in the plan's row, not in the rows of
 * iterations. The list has n iterations in ascending order. */
void fill_planned(struct msg_see_iteration *list, size_t n, const struct store_plan *p);

/* Sends a plan to the console `only`, or to all consoles if `only` is NULL. candidate: the name of
 * a plan that is not in force, else NULL.
 *
 * For the plan in force, the message has the current routes while an iteration runs. After a
 * reroute, the current routes differ from the planned routes. -EINVAL: the plan does not fit the
 * run. */
int announce_plan_to(struct iteration *it, const struct planned *p, const char *candidate,
		     struct console *only);
/* Sends all consoles the plan that takes effect. */
void consoles_plan(struct iteration *it, const struct planned *p);
/* Sends a candidate plan to one console. -EINVAL: the plan does not fit the run. */
int console_candidate(struct iteration *it, struct console *to, const struct planned *p,
		      const char *name);

#endif
