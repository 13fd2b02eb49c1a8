/* stage_preview.h - compares the run's stages with other stages. The comparison starts when an
 * operator gives the command `stages`, or when machines have joined or left for good. The results
 * are lines of the journal. Only the command `cut` changes the run. */
#ifndef CONTROLLER_OPERATOR_STAGE_PREVIEW_H
#define CONTROLLER_OPERATOR_STAGE_PREVIEW_H

#include <stdbool.h>
#include <stdint.h>

struct members;
struct msg_command;
struct operators;
struct outcome;
struct recut_order;
struct stage_choice;

struct stage_preview {
	struct stage_choice *choice; /* a choice that is being made; NULL: none */
	/* true: an operator asked for the choice; false: the controller started the choice, and
	 * may propose its stages */
	bool is_asked;
	/* Hash of the set of nodes that can have a stage; 0: not computed yet */
	uint64_t nodes;
	int64_t changed_us; /* time of the newest change of the set of nodes */
	bool is_considered; /* a choice was already made for this set of nodes */
	/* The stages that the controller proposed last, in a line of the journal. NULL: it has
	 * proposed none, or its last choice was the present stages. */
	struct recut_order *proposal;
	uint32_t n_proposals; /* number of proposals so far */
	/* The number of the proposal that a preview of the command `cut` has shown; 0: none. */
	uint32_t previewed;
};

/* Carries out the command `stages`: starts a choice of stages for the connected nodes. */
void act_stages(struct operators *ops, const char *who, const struct msg_command *m,
		struct outcome *o);
/* Makes the order of the command `cut` for these layers. If the text is empty, the order is for
 * the stages that were proposed last. Returns false, with the reason in *o, if the layers are
 * invalid or no stages were proposed. */
bool cut_order_read(const struct stage_preview *p, const struct members *members,
		    const char *layers, struct recut_order *order, struct outcome *o);
/* Carries out the command `cut`. After the run's next commit, the run gets the stages with the
 * given layers, or the stages proposed last (joining/recut.h). */
void act_cut(struct operators *ops, const char *who, const struct msg_command *m,
	     struct outcome *o);
/* Reports a choice once it is done, and starts one when nodes have joined or left for good. Called
 * in every turn. */
void stage_preview_turn(struct stage_preview *p, const struct members *members);
void stage_preview_fini(struct stage_preview *p);

#endif
