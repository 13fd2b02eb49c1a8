/* checkpoints.h - every so many commits, and at the end, the stages on their nodes' disks. */
#ifndef CONTROLLER_WEIGHTS_CHECKPOINTS_H
#define CONTROLLER_WEIGHTS_CHECKPOINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct weights;
struct member;
struct msg_saved;

/* The one being written. */
struct checkpointing {
	uint64_t iteration; /* 0 none */
	bool saved[MSG_STAGES];
	uint64_t hashes[MSG_STAGES];
	uint32_t n_saved; /* stages */
	uint64_t bytes;
	uint64_t last, before_last; /* whole ones; 0 none */
	int64_t asked_us;
	bool awaited; /* then the run ends */
};

void checkpoint_when_due(struct weights *weights); /* after a commit */
void checkpoint_saved(struct weights *weights, struct member *m, const struct msg_saved *r);
/* The last commit is on the nodes' disks, or need not be. */
bool checkpoint_is_there(const struct weights *weights);
/* Before the end: the last commit is written, too. True while the run is to wait for that. */
bool checkpoint_last(struct weights *weights);

#endif
