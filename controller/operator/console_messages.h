/* console_messages.h - what consoles are told, where a live run and a recorded one tell it alike. */
#ifndef CONTROLLER_CONSOLE_MESSAGES_H
#define CONTROLLER_CONSOLE_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/planning/planner.h"
#include "model/config.h"
#include "store/store.h"
#include "wire/msg.h"
#include "wire/post.h"

struct member;

uint64_t count_parameters(const struct model_config *m);

/* What a phase is, for a person who waits: "replicas sum their gradients". Borrowed, for good. */
const char *phase_in_words(enum run_phase phase);
/* "it7: 3 of 12 microbatches done", "it7: replicas sum their gradients". done of total: microbatches. */
void describe_iteration(char *out, size_t room, enum run_phase phase, uint64_t iteration, uint32_t done,
			uint32_t total);

/* A node as a message: of a run as it stands, and of a recorded one as far as its record has it. w: what is known of
 * it; n: what is planned against; lost_s as in msg_see_node. */
void node_message(struct msg *out, const struct member *w, const struct cluster_node *n, double lost_s);

/* What a plan does not say of the run it is for. Borrowed. */
struct message_run {
	uint32_t n_nodes, n_shards, per_shard;
	const int *shard_of; /* (n_nodes) -1: not a data node when the run began */
	double unit_s;       /* real seconds of one plan second */
};

/* A plan as a message; its arrays live until plan_message_fini. */
struct plan_message {
	struct msg message; /* MSG_SEE_PLAN */
	struct route *routes;
	struct msg_task_event *events;
	uint32_t visits[MSG_STAGES];
	struct microbatch *microbatches; /* what routes point into */
};

/* candidate: its name for the console's Compare view; NULL: the plan is in force. -ENOMEM; -EINVAL:
 * the plan has another number of microbatches than the run. */
int plan_message_init(struct plan_message *s, const struct message_run *run, const struct planned *p,
		  const char *candidate);
void plan_message_fini(struct plan_message *s);

/* Which algorithm made the plan of an iteration. */
void fill_algorithm(struct msg_see_iteration *s, const struct plan *p);
/* What rows of iterations do not say of their plan: the same, and how long it predicts that sums take. For those of
 * the list (n, ascending) that were run by this one. */
void fill_planned(struct msg_see_iteration *list, size_t n, const struct store_plan *p);

/* Encodes and sends. -EAGAIN: no room, nothing was sent; -EINVAL: over a limit; -ENOMEM. */
int send_message_to(struct post *post, post_peer_id to, const struct msg *m, int64_t now_us);

/* "What if so many stages were skipped, and that node left out?" Fills q's algorithm, path length,
 * budget and kind (PLANNER_COMPARE) from a MSG_COMMAND of COMMAND_COMPARE, the node in excluded
 * (n_nodes), and the candidate's name. q->from must be the plan in force, excluded who is out
 * already. The text is an algorithm's name, or "branch", the best one under that name; a list may
 * follow of the nodes that are out instead of those in excluded: "branch 3,7", "branch -" nobody.
 * -EINVAL with the reason. */
int compare_request(const struct msg_command *m, int n_stages, uint32_t n_nodes, bool *excluded,
		struct planner_request *q, char *name, size_t room, struct error *err);

#endif
