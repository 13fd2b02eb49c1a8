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
	uint64_t iteration; /* iteration of the checkpoint; 0: none is in progress */
	uint64_t position;  /* position in each data shard after that iteration, in microbatches */
	bool saved[MSG_STAGES];
	uint64_t hashes[MSG_STAGES];
	uint32_t n_saved; /* number of stages that are saved */
	uint64_t bytes;
	/* Iterations of the newest and of the second newest checkpoint whose stages are all saved;
	 * 0: none */
	uint64_t last, before_last;
	/* iteration of the newest checkpoint that also has a manifest; 0: none */
	uint64_t complete;
	bool is_reported; /* a failure of the checkpoint in progress was reported */
	int64_t asked_us;
	bool awaited; /* the run ends when this checkpoint is complete */
	struct checkpoint_failure failure;
};

/* Begins a checkpoint if one is due; called after each commit */
void checkpoint_when_due(struct backups *backups);
void checkpoint_saved(struct backups *backups, struct member *m, const struct msg_saved *r);
/* Returns true if the last commit is on the nodes' disks, or need not be on them. */
bool checkpoint_is_there(const struct backups *backups);
/* Saves the last commit at once, even if no checkpoint is due. Must be called again as long as it
 * returns CHECKPOINT_WAITS. */
enum checkpoint_state { CHECKPOINT_WHOLE, CHECKPOINT_WAITS, CHECKPOINT_FAILED };
enum checkpoint_state checkpoint_now(struct backups *backups);
/* Saves the last commit before the run ends. Returns true while the run has to wait for the
 * checkpoint. */
bool checkpoint_last(struct backups *backups);

#endif
