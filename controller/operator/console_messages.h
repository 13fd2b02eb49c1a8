/* console_messages.h - builds the messages that both a live run and a replay send to consoles. */
#ifndef CONTROLLER_CONSOLE_MESSAGES_H
#define CONTROLLER_CONSOLE_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/planning/planner.h"
#include "model/config.h"
#include "wire/msg.h"
#include "wire/post.h"

struct member;

uint64_t count_parameters(const struct model_config *m);

/* Describes a phase for a person who waits, as in "replicas sum their gradients". The text is
 * static. */
const char *phase_in_words(enum run_phase phase);
/* Describes an iteration: "it7: 3 of 12 microbatches done", "it7: replicas sum their gradients".
 * done, total: microbatches. */
void describe_iteration(char *out, size_t room, enum run_phase phase, uint64_t iteration,
			uint32_t done, uint32_t total);

/* Fills MSG_SEE_NODE. w: the node's state; a replay has only the recorded part of this state. n:
 * the times that the planner assumes for the node. work: amount of work of the node's stage
 * (cluster_work). lost_s: as in msg_see_node. */
void node_message(struct msg *out, const struct member *w, const struct cluster_node *n,
		  double work, uint32_t layers, double lost_s);

/* Turns a COMMAND_COMPARE into a request to the planner. Fills q's algorithm, path length, budget
 * and kind (PLANNER_COMPARE), and names the candidate. Marks the command's node in `excluded`,
 * which is an array of n_nodes. On entry q->from is the plan in force, and `excluded` marks the
 * nodes that this plan does not use.
 *
 * The command's text is the name of an algorithm, or "branch" for the best algorithm. A list of
 * nodes after "branch" replaces `excluded`, as in "branch 3,7"; "branch -" excludes no node. "wire
 * q6" and "sum-wire q6" change a format in q->formats, and keep the algorithm and path length of
 * the plan in force. -EINVAL with the reason. */
int compare_request(const struct msg_command *m, int n_stages, int most_skipped,
		    uint32_t n_nodes, bool *excluded, struct planner_request *q, char *name,
		    size_t room, struct error *err);

#endif
