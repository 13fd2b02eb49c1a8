/* hours_preview.h - answers the command `hours`, which asks for the loss that each recipe would
 * reach in a given time on the nodes of this run. The answer is lines of the journal. The run does
 * not change. */
#ifndef CONTROLLER_OPERATOR_HOURS_PREVIEW_H
#define CONTROLLER_OPERATOR_HOURS_PREVIEW_H

struct msg_command;
struct operators;
struct outcome;

/* Carries out the command `hours`: starts a comparison, unless one is under way. */
void act_hours(struct operators *ops, const char *who, const struct msg_command *m,
	       struct outcome *o);
/* Reports a comparison once it is done. Must be called in every turn. */
void hours_preview_turn(struct operators *ops);
void hours_preview_fini(struct operators *ops);

#endif
