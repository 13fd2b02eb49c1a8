/* faults.h - injects failures into agents, and heals them. The kinds are in wire/faults.h. */
#ifndef CONTROLLER_OPERATOR_FAULTS_H
#define CONTROLLER_OPERATOR_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/faults.h"

struct controller;
struct msg_command;
struct outcome;

struct fault {
	uint32_t id;
	enum fault_kind kind;
	/* `peer` is the other end of the link. -1: all links, or the fault concerns no link. */
	int node, peer;
	float factor;
	uint32_t ttl_ms;
	int64_t started_us, ends_us, started_wall_us;
	bool active;
};

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
