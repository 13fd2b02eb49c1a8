/* needs.h - the memory of the machine that an iteration needs in addition to the stage.
 *
 * A stage allocates all of its memory when it is made (model/stage.h). The memory for microbatches
 * and for the sum of the gradient varies during an iteration. This module adds up the greatest use
 * and compares it with the free memory before the first iteration. The agent thus reports a lack of
 * memory before the run. Without the check, the kernel would kill the process in mid-iteration.
 */
#ifndef AGENT_NEEDS_H
#define AGENT_NEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The greatest use of memory in an iteration, bytes. Incomplete messages from peers are included:
 * an input counts from its first byte. A microbatch that visits the node has one tensor here at a
 * time, because its gradient arrives after its activation has left. Memory that only a faulty
 * peer could fill has its own limits: needs_early_room, and the post's limit of incomplete
 * messages. */
struct needs {
	/* Bytes of outputs, which are kept until the iteration ends (outputs.h). */
	uint64_t kept;
	/* Bytes of tensors that wait. Inputs wait for their task, and outputs wait for their
	 * transfer. */
	uint64_t waiting;
	/* Bytes of tensors that arrive before this node can use them, at most `early_most`. */
	uint64_t early;
	/* Bytes of a reduction: the copy of the gradient, the parts, the sum, and the messages that
	 * carry them. */
	uint64_t reduction;
	/* Bytes of snapshots of the stage, for other nodes (weight_server.c) and for files
	 * (save.c). */
	uint64_t copies;
	uint64_t total;
};

/* Returns the needs of an iteration. parameters: number of the stage's parameters. activation:
 * floats of an activation. visits: number of microbatches that visit this node. early_most: limit
 * of the field `early`, bytes. saves: true if this node writes checkpoints. */
struct needs needs_of(size_t parameters, size_t activation, uint32_t visits, uint64_t early_most,
		      bool saves);
/* Returns for each field by how much n exceeds `checked`; 0: n does not exceed `checked`. An
 * earlier check has found free memory for `checked`. This memory can be in use now. */
struct needs needs_beyond(const struct needs *n, const struct needs *checked);
/* Returns 0 if the needs fit in free_bytes, otherwise -ENOMEM. The error says how much memory is
 * needed for each purpose, and how much is missing. */
int needs_check(const struct needs *n, uint64_t free_bytes, struct error *err);
/* Returns the room for early tensors, bytes: n->early plus the free memory that the needs leave.
 * The result is at least 64 MiB plus four times n->early, but never more than `most`. */
uint64_t needs_early_room(const struct needs *n, uint64_t free_bytes, uint64_t most);

#endif
