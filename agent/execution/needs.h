/* needs.h - the memory of the machine that an iteration needs in addition to the stage.
 *
 * A stage takes all of its memory when it is made (model/stage.h). The memory for microbatches and
 * for the gradient's sum varies during an iteration. This module adds up its greatest use and
 * compares it with the free memory before the first iteration. A lack of memory is thus reported
 * before the run, and the kernel does not kill the process in mid-iteration.
 */
#ifndef AGENT_NEEDS_H
#define AGENT_NEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Incomplete messages from peers are included: an input counts for its visit from its first byte,
 * and a visit has one tensor at a time, because its gradient arrives after its activation has left.
 * Memory that only a faulty peer could fill has limits of its own: needs_early_room, and the
 * post's limit of incomplete messages. */
struct needs { /* bytes */
	/* Bytes of outputs, which are kept until the iteration ends (outputs.h). */
	uint64_t kept;
	/* Bytes of inputs that have arrived and of outputs that have not been sent. */
	uint64_t waiting;
	uint64_t early; /* bytes of tensors that arrive early, at most `early_most` */
	/* Bytes of a reduction: the gradient's copy, its parts, its sum, and their messages. */
	uint64_t reduction;
	/* Bytes of copies of the stage, for other nodes (weight_server.c) or files (save.c). */
	uint64_t copies;
	uint64_t total;
};

/* parameters: P; activation: B * T * C floats; visits: microbatches of an iteration that visit this
 * node; early_most: bytes; saves: this node writes checkpoints. */
struct needs needs_of(size_t parameters, size_t activation, uint32_t visits, uint64_t early_most,
		      bool saves);
/* Returns by how much n exceeds the needs `checked`, whose memory may already be in use; no field
 * is negative. */
struct needs needs_beyond(const struct needs *n, const struct needs *checked);
/* -ENOMEM: the message says how much is needed, for what, and how much memory is missing. */
int needs_check(const struct needs *n, uint64_t free_bytes, struct error *err);
/* Returns the room for early tensors: the free memory beyond n, in the range from 64 MiB and four
 * times the bytes that correct peers send early (early.h) to `most`. */
uint64_t needs_early_room(const struct needs *n, uint64_t free_bytes, uint64_t most);

#endif
