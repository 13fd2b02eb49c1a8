/* cut_preview.h - predicts what a change of stages would do, in answer to the command `cut` with
 * the text "preview", or "preview 0,7,5". The seconds of an iteration come from the simulation
 * that the command `stages` uses (stage_preview.h). */
#ifndef CONTROLLER_OPERATOR_CUT_PREVIEW_H
#define CONTROLLER_OPERATOR_CUT_PREVIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"
#include "wire/post.h"

struct console;
struct operators;
struct stage_choice;

enum { CUT_PREVIEW_TEXT = 192 };

struct cut_preview {
	/* Comparison of the present and the wanted stages that is under way; NULL: none */
	struct stage_choice *comparison;
	post_peer_id console; /* the console that gets the answer */
	uint64_t command;
	char text[CUT_PREVIEW_TEXT]; /* the parts of the answer that need no simulation */
	/* true: a request that arrived during the comparison waits until the comparison has
	 * ended. next_console and next describe the newest such request. */
	bool has_next;
	post_peer_id next_console;
	struct msg_command next;
};

/* Answers with MSG_SEE_PREVIEW: at once if the stages are impossible, otherwise once they are
 * simulated. One request is simulated at a time, and one more waits. A newer request replaces the
 * waiting request, which is refused. */
void cut_preview_ask(struct operators *ops, struct console *to, const struct msg_command *m);
/* To be called in every turn. */
void cut_preview_turn(struct operators *ops);
void cut_preview_fini(struct cut_preview *p);

#endif
