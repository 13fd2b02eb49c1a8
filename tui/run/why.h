/* why.h - why a microbatch stands where it stands, and where it would have waited less.
 *
 * An estimate from what the console was told: tasks last as long as planned, links take what
 * they took last. Only a forward has a choice: a backward returns to where its forward left its
 * activations, and the loss to its data node.
 */
#ifndef TUI_WHY_H
#define TUI_WHY_H

#include "tui/run/state.h"

struct why {
	bool waits; /* else nothing below is set */
	uint16_t node;
	bool busy;     /* the node runs `runs`, of `kind` */
	uint32_t runs; /* a microbatch */
	enum work_kind kind;
	bool full;        /* all memory slots are held */
	uint32_t ahead;   /* queued before it */
	double waited_s;  /* plan seconds so far */
	double left_s;    /* and still, as planned */
	bool choice;      /* another node of the stage could take it */
	bool alternative; /* and one would, sooner or not */
	uint16_t other;   /* the best */
	double link_s;    /* longer on the links by way of it */
	double change_s;  /* it would start so much later; < 0: sooner */
};

/* Fills in *out for a microbatch; waits is false where it does not wait. */
void why_make(struct why *out, const struct state *s, const struct state_flight *f,
	      int64_t now_us);
/* In words; "" when it does not wait. */
void why_say(const struct why *w, char text[160]);

#endif
