/* start.h - a made-up run whose network is real: before its first iteration, and in it.
 */
#ifndef TUI_TESTS_START_H
#define TUI_TESTS_START_H

#include "tui/run/state.h"

/* `nodes` nodes in so many stages, at a step of their start, and how far that is. Links are measured
 * in the order of a tournament: in LINKS those of the rounds before `part`, later all of them. No way
 * leads from n03 to n01. emulated: of another run, which measures none. Free with state_free. */
struct state *start_state(uint32_t nodes, uint32_t stages, bool emulated, enum gather_step step,
			  uint32_t part, uint32_t parts, float left_s);
/* A further message of the status alone. */
void start_status(struct state *s, enum gather_step step, uint32_t part, uint32_t parts,
		  float left_s, const char *doing, struct msg *m);
/* A run with a time scale of 1 is one in a real network: its links and sums are measured. */
void start_measured(struct state *s);

#endif
