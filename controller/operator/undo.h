/* undo.h - stores the operator's acts and finds the inverse of each. */
#ifndef CONTROLLER_OPERATOR_UNDO_H
#define CONTROLLER_OPERATOR_UNDO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/names.h"

struct run;
struct msg_command;
struct outcome;

/* An act that was carried out and perhaps can be undone. */
struct act {
	uint64_t id;
	enum command_verb verb;
	int node;
	/* `value` is what the act set, and `before` is what was in force before the act. SKIP:
	 * packed skip ratios (skip_share_pack). WIRE, SUM_WIRE: formats. FINISH: numbers of
	 * iterations. PAUSE, RESUME, STEP: only `before`, 1 if the run was paused. INJECT: only
	 * `value`, the fault's id. */
	int64_t value, before;
	/* The act cannot be undone because it was undone already, because its fault has healed, or
	 * because it is itself an undo */
	bool undone;
	char who[64];
};

/* The acts so far. */
struct act_list {
	struct act *acts; /* array of n */
	uint32_t n;
	size_t room;
};

/* Stores an act under the next id. */
void undo_remember(struct act_list *list, struct run *run, const char *who, enum command_verb verb,
		   int node, int64_t value, int64_t before);
/* Finds the act with that id. id 0: the last act that was not undone. Borrowed until the next
 * undo_remember. NULL: there is no such act, and *o has the reason. */
struct act *undo_find(struct act_list *list, int64_t id, struct outcome *o);
/* Returns true if the act has an inverse. In that case *out is the inverse command, and *o
 * describes this command. Otherwise sets the reason in *o. */
bool undo_inverse(const struct run *run, const struct act *a, struct msg_command *out,
		  struct outcome *o);
/* Marks the act that injected this fault as not undoable, because the fault has healed. */
void undo_healed(struct act_list *list, int64_t fault);

#endif
