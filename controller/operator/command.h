/* command.h - checks the operator's commands and passes each to its function. */
#ifndef CONTROLLER_OPERATOR_COMMAND_H
#define CONTROLLER_OPERATOR_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/operator/cut_preview.h"
#include "controller/operator/previews.h"
#include "controller/operator/stage_preview.h"
#include "controller/operator/undo.h"

struct console;
struct error;
struct iteration;
struct members;
struct msg_command;
struct planning;
struct run;
struct backups;

struct operators {
	struct run *run;
	struct members *members;
	struct planning *planning;
	struct backups *backups;
	struct iteration *iteration;
	char lease[64]; /* name of the console that holds the operator's lease; "": no console */
	int64_t lease_ends_us;
	struct act_list acts; /* acts so far, so that the operator can undo them */
	struct previews previews;
	struct stage_preview stages;
	struct cut_preview cut;
	struct hours_comparison *hours; /* the comparison of recipes under way; NULL: none */
	uint64_t commands; /* number of the last recorded command */
};

/* Carries out or refuses a command, and answers the console that sent it. */
void command_receive(struct operators *ops, struct console *from, const struct msg_command *m);
/* Refuses acts of --at that name a node or an iteration that does not exist in the run. -EINVAL. */
int command_check_script(const struct run *run, struct error *err);
/* Carries out the acts of --at that are due before the next iteration. */
void command_scripted(struct operators *ops);
/* Ends the lease, and each fault, once its time is over. */
void command_turn(struct operators *ops);
void command_fini(struct operators *ops);

#endif
