/* acts.h - what an operator's commands do to nodes and to the run. */
#ifndef CONTROLLER_OPERATOR_ACTS_H
#define CONTROLLER_OPERATOR_ACTS_H

#include <stdbool.h>
#include <stdint.h>

struct controller;
struct members;
struct run;
struct member;
struct msg_command;
struct outcome;

/* One for each row of the table in command.c. who: whose console, or "script". */
void act_skip(struct controller *c, const char *who, const struct msg_command *m, struct outcome *o);
void act_fail(struct controller *c, const char *who, const struct msg_command *m, struct outcome *o);
void act_recover(struct controller *c, const char *who, const struct msg_command *m, struct outcome *o);
/* Pauses the run, resumes it, or allows one iteration. */
void act_pause(struct controller *c, const char *who, const struct msg_command *m,
	       struct outcome *o);
void act_stop(struct controller *c, const char *who, const struct msg_command *m, struct outcome *o);
void act_arm(struct controller *c, const char *who, const struct msg_command *m, struct outcome *o);
void act_acknowledge(struct controller *c, const char *who, const struct msg_command *m, struct outcome *o);

/* false, with the reason. */
bool acts_may_skip(const struct run *run, int64_t skip, struct outcome *o);
/* The node of that number; NULL with the reason. */
struct member *acts_member(struct members *members, int node, struct outcome *o);

#endif
