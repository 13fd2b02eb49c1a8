/* why.h - the reason why a microbatch waits, and the node at which it would wait less.
 *
 * The reason is an estimate, in which tasks take their planned time and links the time of their
 * last transfer. Only a forward task has a choice. A backward task returns to the node that has its
 * activations, and the loss to its data node. */
#ifndef TUI_WHY_H
#define TUI_WHY_H

#include "tui/run/state.h"

struct why {
	bool waits; /* the microbatch waits; if false, all other fields are 0 */
	uint16_t node;
	bool busy;     /* the node is running the task of microbatch `runs`, of kind `kind` */
	uint32_t runs; /* number of that microbatch */
	enum task_kind kind;
	bool full;        /* all memory slots of the node are in use */
	uint32_t ahead;   /* number of tasks queued before that of the microbatch */
	double waited_s;  /* time waited so far, in plan seconds */
	double left_s;    /* estimated remaining wait, in plan seconds */
	bool choice;      /* another node of the stage could run the task */
	bool alternative; /* another node could run the task now */
	uint16_t other;   /* the best node that could run the task */
	double link_s;    /* additional transfer time through this other node */
	double change_s;  /* change of the task's start time through this other node; < 0: sooner */
};

/* Explains why a microbatch of the current iteration waits. */
void why_make(struct why *out, const struct state *s, const struct state_flight *f,
	      int64_t now_us);
/* Writes the explanation; "" if the microbatch does not wait. */
void why_text(const struct why *w, char text[160]);

#endif
