/* faults.h - injected failures. Which kinds there are: wire/faults.h. */
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
	int node, peer; /* -1: none, all */
	float factor;
	uint32_t ttl_ms;
	int64_t started_us, ends_us, started_wall_us;
	bool active;
};

/* As those of acts.h. */
void act_inject(struct controller *c, const char *who, const struct msg_command *m, struct outcome *o);
/* One, or all */
void act_heal(struct controller *c, const char *who, const struct msg_command *m,
	      struct outcome *o);

void faults_turn(struct controller *c); /* those end whose time is up */
void faults_heal_all(struct controller *c, const char *why);

#endif
