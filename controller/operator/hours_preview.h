/* hours_preview.h - what recipes would reach in a given time on the nodes of this run: the answer
 * to `hours`. The answer is lines of the journal; nothing is changed. */
#ifndef CONTROLLER_OPERATOR_HOURS_PREVIEW_H
#define CONTROLLER_OPERATOR_HOURS_PREVIEW_H

struct msg_command;
struct operators;
struct outcome;

/* The command `hours`: starts a comparison, unless one is under way. */
void act_hours(struct operators *ops, const char *who, const struct msg_command *m,
	       struct outcome *o);
/* To be called in every turn. */
void hours_preview_turn(struct operators *ops);
void hours_preview_fini(struct operators *ops);

#endif
