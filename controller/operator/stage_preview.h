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
	struct stage_choice *choice; /* a choice that is being made; NULL: none */
	/* true: an operator asked for the choice; false: it may lead to a proposal */
	bool is_asked;
	/* Hash of the set of nodes that could have a stage; 0: not computed yet */
	uint64_t nodes;
	int64_t changed_us; /* when this set last changed */
	bool is_considered; /* a choice was already made for this set of nodes */
	/* The stages that the journal proposed last; NULL: none, or they are the present ones */
	struct recut_order *proposal;
};

/* The command `stages`: starts a choice of stages for the connected nodes. */
void act_stages(struct operators *ops, const char *who, const struct msg_command *m,
		struct outcome *o);
/* Makes the order of the command `cut` for these layers; "": the stages proposed last. Returns
 * false with the reason in *o if there is none. */
bool cut_order_read(const struct operators *ops, const char *layers, struct recut_order *order,
		    struct outcome *o);
/* The command `cut`: the run takes the stages of these layers, or those proposed last, after its
 * next commit (joining/recut.h). */
void act_cut(struct operators *ops, const char *who, const struct msg_command *m,
	     struct outcome *o);
/* Called in every turn. */
void stage_preview_turn(struct operators *ops);
void stage_preview_fini(struct operators *ops);

#endif
