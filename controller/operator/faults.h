/* faults.h - injects failures into agents, and heals them. The kinds are in wire/faults.h. */
#ifndef CONTROLLER_OPERATOR_FAULTS_H
#define CONTROLLER_OPERATOR_FAULTS_H

struct controller;
struct msg_command;
struct outcome;

/* Injects a fault. Parameters as in acts.h. */
void act_inject(struct controller *c, const char *who, const struct msg_command *m,
		struct outcome *o);
/* Heals one fault, or all. */
void act_heal(struct controller *c, const char *who, const struct msg_command *m,
	      struct outcome *o);

/* Heals the faults whose time is up. */
void faults_turn(struct controller *c);
void faults_heal_all(struct controller *c, const char *why);

#endif
