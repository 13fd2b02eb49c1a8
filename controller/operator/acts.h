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

/* One function for each row of the table in command.c. who: the console's name, or "script". Each
 * sets *o: 0 and a text that says what the function does, or a negative errno and the reason for
 * the refusal. */
void act_skip(struct operators *ops, const char *who, const struct msg_command *m,
	      struct outcome *o);
void act_fail(struct operators *ops, const char *who, const struct msg_command *m,
	      struct outcome *o);
void act_recover(struct operators *ops, const char *who, const struct msg_command *m,
		 struct outcome *o);
/* Pauses the run, resumes it, or allows one iteration. */
void act_pause(struct operators *ops, const char *who, const struct msg_command *m,
	       struct outcome *o);
/* Orders the end on command, or takes the order back. */
void act_finish(struct operators *ops, const char *who, const struct msg_command *m,
		struct outcome *o);
void act_stop(struct operators *ops, const char *who, const struct msg_command *m,
	      struct outcome *o);
void act_arm(struct operators *ops, const char *who, const struct msg_command *m,
	     struct outcome *o);
void act_acknowledge(struct operators *ops, const char *who, const struct msg_command *m,
		     struct outcome *o);

/* Changes the format of activations, or of sums (COMMAND_SUM_WIRE). */
void act_wire(struct operators *ops, const char *who, const struct msg_command *m,
	      struct outcome *o);
/* Replaces the format in *formats that the command names. Returns false if tensors cannot travel in
 * this format, and sets the reason in *o. */
bool acts_take_format(const struct msg_command *m, struct tensor_formats *formats,
		      struct outcome *o);
/* Returns true if the run may have this skip ratio (skip_share_pack); otherwise sets the reason in
 * *o. */
bool acts_may_skip(const struct run *run, int64_t ratio, struct outcome *o);
/* Finds the node of that number; NULL, with the reason in *o, if there is none. */
struct member *acts_member(struct members *members, int node, struct outcome *o);

#endif
