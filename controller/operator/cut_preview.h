/* cut_preview.h - what a change of stages would do: the answer to the command `cut` with the text
 * "preview", or "preview 0,7,5". The seconds of an iteration come from the simulation with which
 * `stages` compares (stage_preview.h). */
#ifndef CONTROLLER_OPERATOR_CUT_PREVIEW_H
#define CONTROLLER_OPERATOR_CUT_PREVIEW_H

#include <stdint.h>

#include "wire/post.h"

struct console;
struct msg_command;
struct operators;
struct stage_choice;

enum { CUT_PREVIEW_TEXT = 192 };

struct cut_preview {
	struct stage_choice *comparison; /* of present and wanted stages; NULL: none under way */
	post_peer_id console;            /* which gets the answer */
	uint64_t command;
	char text[CUT_PREVIEW_TEXT]; /* the parts of the answer that need no simulation */
};

/* Answers with MSG_SEE_PREVIEW: at once if the stages are impossible, otherwise once they are
 * simulated. */
void cut_preview_ask(struct operators *ops, struct console *to, const struct msg_command *m);
/* To be called in every turn. */
void cut_preview_turn(struct operators *ops);
void cut_preview_fini(struct operators *ops);

#endif
