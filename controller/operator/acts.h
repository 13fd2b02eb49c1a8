/* acts.h - carries out the operator's commands on nodes and on the run. */
#ifndef CONTROLLER_OPERATOR_ACTS_H
#define CONTROLLER_OPERATOR_ACTS_H

#include <stdbool.h>
#include <stdint.h>

struct tensor_formats;
struct operators;
struct members;
struct run;
struct member;
struct msg_command;
struct outcome;

/* One function for each row of the table in command.c. who: the name of the console, or
 * STORE_SCRIPT. Each function sets *o: status 0 and a text that says what happens, or a negative
 * errno and the reason for the refusal. */
void act_skip(struct operators *ops, const char *who, const struct msg_command *m,
	      struct outcome *o);
void act_fail(struct operators *ops, const char *who, const struct msg_command *m,
	      struct outcome *o);
void act_recover(struct operators *ops, const char *who, const struct msg_command *m,
		 struct outcome *o);
/* Pauses the run, resumes it, or allows one iteration. */
void act_pause(struct operators *ops, const char *who, const struct msg_command *m,
	       struct outcome *o);
/* Lets the learning rate fall over the next m->value iterations, and then ends the run. An m->value
 * of 0 cancels the end. */
void act_finish(struct operators *ops, const char *who, const struct msg_command *m,
		struct outcome *o);
void act_stop(struct operators *ops, const char *who, const struct msg_command *m,
	      struct outcome *o);
void act_arm(struct operators *ops, const char *who, const struct msg_command *m,
	     struct outcome *o);
void act_acknowledge(struct operators *ops, const char *who, const struct msg_command *m,
		     struct outcome *o);

/* Changes the format in which activations are sent or, for COMMAND_SUM_WIRE, the format of sums. */
void act_wire(struct operators *ops, const char *who, const struct msg_command *m,
	      struct outcome *o);
/* Sets, in *formats, the format that the command names. Returns false, with the reason in *o, if
 * tensors cannot be sent in this format. */
bool acts_take_format(const struct msg_command *m, struct tensor_formats *formats,
		      struct outcome *o);
/* Returns true if the run may have this skip ratio (encoded by skip_share_pack); otherwise sets the
 * reason in *o. */
bool acts_may_skip(const struct run *run, int64_t ratio, struct outcome *o);
/* Finds the node with that number; NULL, with the reason in *o, if there is no such node. */
struct member *acts_member(struct members *members, int node, struct outcome *o);

#endif
