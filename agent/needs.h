/* needs.h - the machine's memory that an iteration takes beside the stage's own.
 *
 * A stage takes all of its memory when it is made (model/stage.h). What grows with the microbatches
 * that come by, and with the gradient's sum, comes and goes; it is added up here, as much as it can
 * be at once, and compared with what is free before the first of them is computed: what is
 * missing is said then, and not by the kernel in mid-iteration.
 */
#ifndef AGENT_NEEDS_H
#define AGENT_NEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What comes from peers is in it too, also while it is half here: an input is its visit's from the
 * first byte on, and a visit has one tensor at a time (its gradient comes after its activation has
 * left); pieces of parts and sums are of the reduction's arrays. Room that only a peer who
 * lies would fill is bounded apart: needs_early_room, and the post's bound of half messages. */
struct needs { /* bytes */
	uint64_t kept;      /* outputs, until the iteration's end (outputs.h) */
	uint64_t waiting;   /* inputs that have come, outputs that have not left */
	uint64_t early;     /* tensors of what has not begun here, at most `early_most` */
	uint64_t reduction; /* the gradient's copy, the parts, the sum, what of them comes and goes */
	uint64_t copies;    /* of the stage, to be fetched by another node (weight_server.c) or written (save.c) */
	uint64_t total;
};

/* parameters: P; activation: B * T * C floats; visits: microbatches of an iteration that come here;
 * early_most: bytes; saves: whether checkpoints are written here. */
struct needs needs_of(size_t parameters, size_t activation, uint32_t visits, uint64_t early_most,
		      bool saves);
/* What n takes beyond what was checked before, which may be in use by now: each at least 0. */
struct needs needs_beyond(const struct needs *n, const struct needs *checked);
/* -ENOMEM says how much is needed, for what, and missing. */
int needs_check(const struct needs *n, uint64_t free_bytes, struct error *err);
/* Room for tensors that come early: what is free beside n, and no more than `most`; but four times
 * what honest peers fill (half of the room is anybody's, early.h) and 64 MiB in any case. */
uint64_t needs_early_room(const struct needs *n, uint64_t free_bytes, uint64_t most);

#endif
