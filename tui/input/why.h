/* why.h - explains why a microbatch waits, and at which node it would wait less.
 *
 * The explanation is an estimate: a task takes its planned time, and a transfer takes as long as
 * the newest transfer over its link. Only a forward task could run on another node. A backward
 * task must return to the node that has its activations, and the loss is computed on the data
 * node.
 */
#ifndef TUI_WHY_H
#define TUI_WHY_H

#include "tui/run/state.h"

struct why {
	bool waits; /* the microbatch waits; if this is false, all other fields are 0 */
	uint16_t node;
	bool busy;     /* the node runs a task: of kind `kind`, of the microbatch `runs` */
	uint32_t runs; /* microbatch whose task the node runs */
	enum task_kind kind;
	bool full;        /* all memory slots of the node are in use */
	uint32_t ahead;   /* number of tasks that will run before the microbatch's task */
	double waited_s;  /* time waited so far, in plan seconds */
	double left_s;    /* estimate of the time left to wait, in plan seconds */
	bool choice;      /* true: the task may run on any node of the stage */
	bool alternative; /* true: another node of the stage is live and has an unused slot */
	/* Only with `alternative`: a node other than `node`. Through this node, the microbatch
	 * would reach its next node earliest. */
	uint16_t other;
	/* Time by which transfers through `other` take longer than transfers through `node`, in
	 * plan seconds. */
	double link_s;
	/* How much later the microbatch would reach its next node through `other` than through
	 * `node`, in plan seconds; < 0: earlier. This time is link_s plus the difference of the
	 * waits. */
	double change_s;
};

/* Explains why a microbatch of the current iteration waits. */
void why_make(struct why *out, const struct state *s, const struct state_flight *f,
	      int64_t now_us);
/* Writes the explanation; "" if the microbatch does not wait. */
void why_text(const struct why *w, char text[160]);

#endif
