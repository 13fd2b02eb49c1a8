/* command.h - the operator's acts. */
#ifndef CONTROLLER_OPERATOR_COMMAND_H
#define CONTROLLER_OPERATOR_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/msg.h"

struct controller;
struct console;
struct msg_command;
struct planned;

struct fault {
	uint32_t id;
	enum fault_kind kind;
	int node, peer; /* -1: none, all */
	float factor;
	uint32_t ttl_ms;
	int64_t started_us, ends_us, started_wall_us;
	bool active;
};

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
void command_previewed(struct controller *c, struct planned *answer); /* takes it */
void command_scripted(struct controller *c); /* --at: acts due before the next iteration */
void command_turn(struct controller *c);     /* leases and faults that end */
void command_fini(struct controller *c);
float prediction_error(const struct controller *c); /* median */

#endif
