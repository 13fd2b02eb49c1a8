/* checkpoints.h - saves the stages to the nodes' disks, at regular intervals and at the end. */
#ifndef CONTROLLER_WEIGHTS_CHECKPOINTS_H
#define CONTROLLER_WEIGHTS_CHECKPOINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct backups;
struct member;
struct msg_saved;

/* The checkpoint in progress. */
struct checkpointing {
	uint64_t iteration; /* 0: none */
	uint64_t position;  /* in each data shard after it, in microbatches */
	bool saved[MSG_STAGES];
	uint64_t hashes[MSG_STAGES];
	uint32_t n_saved; /* stages */
	uint64_t bytes;
	uint64_t last, before_last; /* iterations of the two newest complete checkpoints; 0: none */
	int64_t asked_us;
	bool awaited; /* the run ends when this checkpoint is complete */
};

void checkpoint_when_due(struct backups *backups); /* call after each commit */
void checkpoint_saved(struct backups *backups, struct member *m, const struct msg_saved *r);
/* Returns true if the last commit is on the nodes' disks, or need not be. */
bool checkpoint_is_there(const struct backups *backups);
/* Saves the last commit, whatever the interval. To be called again while the answer is
 * CHECKPOINT_WAITS. */
enum checkpoint_state { CHECKPOINT_WHOLE, CHECKPOINT_WAITS, CHECKPOINT_FAILED };
enum checkpoint_state checkpoint_now(struct backups *backups);
/* Saves the last commit before the run ends. Returns true while the run has to wait for that. */
bool checkpoint_last(struct backups *backups);

#endif
