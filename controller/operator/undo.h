/* undo.h - the acts that were done, and what would undo each. */
#ifndef CONTROLLER_OPERATOR_UNDO_H
#define CONTROLLER_OPERATOR_UNDO_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/names.h"

struct controller;
struct run;
struct msg_command;
struct outcome;

/* A thing done. */
struct act {
	uint64_t id;
	enum command_verb verb;
	int node;
	int64_t value, before; /* SKIP: stages skipped; INJECT: the fault's id */
	bool undone;
	char who[64];
};

/* An act is done: its id is the newest. Without memory it cannot be undone. */
void undo_remember(struct controller *c, const char *who, enum command_verb verb, int node, int64_t value,
		   int64_t before);
/* The act of that id; 0: the last that was not undone. Borrowed until the next undo_remember. NULL with the reason. */
struct act *undo_find(struct controller *c, int64_t id, struct outcome *o);
/* What would undo it, as a command and in words; false with the reason when nothing does. */
bool undo_inverse(const struct run *run, const struct act *a, struct msg_command *out,
		  struct outcome *o);
void undo_healed(struct controller *c, int64_t fault); /* nothing is left of it to undo */

#endif
