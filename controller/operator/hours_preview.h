/* hours_preview.h - answers the command `hours`, which asks for the loss that each recipe would
 * reach in a given time on the nodes of this run. The answer is lines of the journal. The run does
 * not change. */
#ifndef CONTROLLER_OPERATOR_HOURS_PREVIEW_H
#define CONTROLLER_OPERATOR_HOURS_PREVIEW_H

struct hours_comparison;
struct msg_command;
struct operators;
struct outcome;
struct run;

/* Carries out the command `hours`: starts a comparison, unless one is under way. */
void act_hours(struct operators *ops, const char *who, const struct msg_command *m,
	       struct outcome *o);
/* Reports the comparison *h once it is done, and frees it. Must be called in every turn. NULL: no
 * comparison is under way. */
void hours_preview_turn(struct hours_comparison **h, struct run *run);
void hours_preview_fini(struct hours_comparison **h);

#endif
