/* start.h - an invented run without an emulated network: before its first iteration, and in it. */
#ifndef TUI_TESTS_START_H
#define TUI_TESTS_START_H

#include "tui/run/state.h"

/* Returns the state of a run of `nodes` nodes in `stages` stages at a step of its start; part and
 * parts are the step's progress. Links are measured in the order of a tournament: during
 * GATHER_LINKS those of the rounds before `part`, later all. The link from n03 to n01 is cut.
 * emulated: the network is emulated, and links are not measured. Free it with state_free. */
struct state *start_state(uint32_t nodes, uint32_t stages, bool emulated, enum gather_step step,
			  uint32_t part, uint32_t parts, float left_s);
/* Gives a further status message. */
void start_status(struct state *s, enum gather_step step, uint32_t part, uint32_t parts,
		  float left_s, const char *doing, struct msg *m);
/* Makes the run one without an emulated network, with measured links and sums. */
void start_measured(struct state *s);

#endif
