/* stage_preview.h - predicts how fast the run would be with other stages: in answer to the command
 * `stages`, and as a proposal when machines have joined or left for good. Both are only written to
 * the journal; the run does not change. */
#ifndef CONTROLLER_OPERATOR_STAGE_PREVIEW_H
#define CONTROLLER_OPERATOR_STAGE_PREVIEW_H

#include <stdbool.h>
#include <stdint.h>

struct msg_command;
struct operators;
struct outcome;
struct stage_choice;

struct stage_preview {
	struct stage_choice *choice; /* a choice that is being made; NULL: none */
	/* true: an operator asked for the choice; false: it may lead to a proposal */
	bool is_asked;
	/* Hash of the set of nodes that could have a stage; 0: not computed yet */
	uint64_t nodes;
	int64_t changed_us; /* when this set last changed */
	bool is_considered; /* a choice was already made for this set of nodes */
};

/* The command `stages`: starts a choice of stages for the connected nodes. */
void act_stages(struct operators *ops, const char *who, const struct msg_command *m,
		struct outcome *o);
/* Called in every turn. */
void stage_preview_turn(struct operators *ops);
void stage_preview_fini(struct operators *ops);

#endif
