/* why.h - the reason why a microbatch waits, and the node at which it would wait less.
 *
 * It is an estimate: tasks take their planned time, links the time of their last transfer. Only a
 * forward task has a choice. A backward task returns to the node that has its activations, and the
 * loss to its data node.
 */
#ifndef TUI_WHY_H
#define TUI_WHY_H

#include "tui/run/state.h"

struct why {
	bool waits; /* the microbatch waits; false: the other fields are 0 */
	uint16_t node;
	bool busy;     /* the node runs `runs`, a task of `kind` */
	uint32_t runs; /* a microbatch */
	enum task_kind kind;
	bool full;        /* all memory slots are in use */
	uint32_t ahead;   /* number of tasks queued before it */
	double waited_s;  /* time waited so far, in plan seconds */
	double left_s;    /* remaining wait */
	bool choice;      /* another node of the stage could take it */
	bool alternative; /* another node could take it now */
	uint16_t other;   /* the best node that could take it */
	double link_s;    /* additional transfer time via this node */
	double change_s;  /* change of the start time via this node; < 0: sooner */
};

/* Explains a microbatch of the current iteration. */
void why_make(struct why *out, const struct state *s, const struct state_flight *f,
	      int64_t now_us);
/* Writes the explanation; "" if the microbatch does not wait. */
void why_text(const struct why *w, char text[160]);

#endif
