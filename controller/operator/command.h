/* command.h - the operator's commands. */
#ifndef CONTROLLER_OPERATOR_COMMAND_H
#define CONTROLLER_OPERATOR_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/operator/faults.h"

struct controller;
struct console;
struct msg_command;

struct operators {
	char lease[64];
	int64_t lease_ends_us;
	struct act *acts; /* for undo */
	uint32_t n_acts;
	size_t room_acts;
	struct awaited *awaited; /* previews under way */
	uint32_t n_awaited;
	struct asker *askers; /* (n_askers) who had plans compared */
	uint32_t n_askers;
	size_t room_askers;
	uint64_t commands; /* numbers given to their acts */
};

void command_receive(struct controller *c, struct console *from, const struct msg_command *m);
void command_scripted(struct controller *c); /* --at: acts due before the next iteration */
void command_turn(struct controller *c);     /* leases and faults that end */
void command_fini(struct controller *c);

#endif
