/* faults.h - injects failures into agents, and heals them. The kinds are in wire/faults.h. */
#ifndef CONTROLLER_OPERATOR_FAULTS_H
#define CONTROLLER_OPERATOR_FAULTS_H

struct operators;
struct msg_command;
struct outcome;

/* Injects a fault. Parameters: as for the functions in acts.h. */
void act_inject(struct operators *ops, const char *who, const struct msg_command *m,
		struct outcome *o);
/* Heals one fault, or all faults. */
void act_heal(struct operators *ops, const char *who, const struct msg_command *m,
	      struct outcome *o);

/* Heals the faults whose time is over. */
void faults_turn(struct operators *ops);
void faults_heal_all(struct operators *ops, const char *why);

#endif
