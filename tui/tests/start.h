/* start.h - an invented run without an emulated network, before and during its first iteration. */
#ifndef TUI_TESTS_START_H
#define TUI_TESTS_START_H

#include "tui/run/state.h"

/* Returns the state of a run at a step before its first iteration. The caller frees it with
 * state_free.
 *
 * nodes, stages:  size of the run
 * emulated:       the network is emulated, and links are not measured
 * part, parts:    progress of the step
 *
 * Links are measured in the order of a tournament. During GATHER_LINKS, only the links of the first
 * `part` - 1 rounds have been measured. In later steps, all links have been measured. The link from
 * n03 to n01 is cut.
 */
struct state *start_state(uint32_t nodes, uint32_t stages, bool emulated, enum gather_step step,
			  uint32_t part, uint32_t parts, float left_s);
/* Applies another status message to the state, and copies it to *m. */
void start_status(struct state *s, enum gather_step step, uint32_t part, uint32_t parts,
		  float left_s, const char *doing, struct msg *m);
/* Changes the run to one without an emulated network. Its links and sums of gradients then have
 * measurements. */
void start_measured(struct state *s);

#endif
