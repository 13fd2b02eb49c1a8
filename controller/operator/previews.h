/* previews.h - predicts the effect of commands, and makes plans for comparison. */
#ifndef CONTROLLER_OPERATOR_PREVIEWS_H
#define CONTROLLER_OPERATOR_PREVIEWS_H

#include <stddef.h>
#include <stdint.h>

struct console;
struct iteration;
struct operators;
struct msg_command;
struct outcome;
struct planned;
struct planning;

struct previews {
	struct awaited *awaited; /* array of n_awaited: previews that wait for the planner */
	uint32_t n_awaited;
	struct asker *askers; /* array of n_askers: names of consoles that asked for comparisons */
	uint32_t n_askers;
	size_t room_askers;
};

/* Answers a command whose text is "preview": at once if the preview needs no plan, otherwise when
 * the planner has made the plan. */
void previews_ask(struct operators *ops, struct console *to, const struct msg_command *m);
/* Requests a candidate plan for the console's Compare view. The run does not change, so any console
 * may ask. */
void previews_ask_candidate(struct previews *p, const struct planning *planning, struct console *to,
			    const struct msg_command *m, struct outcome *o);
/* Sends the planner's answer to the console that asked, and frees the answer. */
void previews_answered(struct previews *p, struct iteration *it, struct planned *answer);
void previews_fini(struct previews *p);

#endif
