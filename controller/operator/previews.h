/* previews.h - predicts the effect of commands, and makes plans for comparison. */
#ifndef CONTROLLER_OPERATOR_PREVIEWS_H
#define CONTROLLER_OPERATOR_PREVIEWS_H

struct console;
struct operators;
struct msg_command;
struct outcome;
struct planned;

/* Answers a command whose text is "preview": at once if the preview needs no plan, otherwise when
 * the planner has made the plan. */
void previews_ask(struct operators *ops, struct console *to, const struct msg_command *m);
/* Requests a candidate plan for the console's Compare view. The run does not change, so any console
 * may ask. */
void previews_ask_candidate(struct operators *ops, struct console *to, const struct msg_command *m,
			    struct outcome *o);
/* Sends the planner's answer to the console that asked, and frees the answer. */
void previews_answered(struct operators *ops, struct planned *answer);
void previews_fini(struct operators *ops);

#endif
