/* checkpoint.h - a copy of a state in one block of memory.
 *
 * The unused parts of the state's rings are left out: a state of 1,000 nodes has more than 30 MB,
 * its checkpoint a fraction of this.
 */
#ifndef TUI_CHECKPOINT_H
#define TUI_CHECKPOINT_H

#include <stddef.h>

#include "tui/run/state.h"

struct checkpoint {
	unsigned char *bytes; /* the block; owned */
	size_t n, room;
};

struct checkpoint checkpoint_of(const struct state *s);
/* Returns a new state that equals the state from which the checkpoint was made. */
struct state *checkpoint_state(const struct checkpoint *c);
void checkpoint_fini(struct checkpoint *c);

#endif
