/* stage_preview.h - what if the model were cut into other stages: the answer to `stages`, and a
 * proposal when machines have joined or left for good. Both are lines of the journal. Only `cut`
 * changes the run. */
#ifndef CONTROLLER_OPERATOR_STAGE_PREVIEW_H
#define CONTROLLER_OPERATOR_STAGE_PREVIEW_H

#include <stdbool.h>
#include <stdint.h>

struct msg_command;
struct operators;
struct outcome;
struct recut_order;
struct stage_choice;

struct stage_preview {
	struct stage_choice *choice; /* under way; NULL: none */
	bool is_asked;               /* an operator asked; false: it may become a proposal */
	uint64_t nodes;              /* hash of the nodes that could have a stage; 0: not seen */
	int64_t changed_us;          /* when that set last changed */
	bool is_considered;          /* a choice for that set was made, or it began the run */
	/* The stages that the journal proposed last; NULL: none, or they are the present ones */
	struct recut_order *proposal;
};

/* The command `stages`: starts a choice for the nodes that are here. */
void act_stages(struct operators *ops, const char *who, const struct msg_command *m,
		struct outcome *o);
/* The command `cut`: the run takes the stages of these layers, or those proposed last, after its
 * next commit (joining/recut.h). */
void act_cut(struct operators *ops, const char *who, const struct msg_command *m,
	     struct outcome *o);
/* To be called in every turn. */
void stage_preview_turn(struct operators *ops);
void stage_preview_fini(struct operators *ops);

#endif
