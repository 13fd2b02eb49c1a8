/* restore.h - a stage that no process holds any more: all go back to a checkpoint; where there is none, the stage
 * is made of its neighbours.
 */
#ifndef CONTROLLER_WEIGHTS_RESTORE_H
#define CONTROLLER_WEIGHTS_RESTORE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct iteration;
struct run;
struct weights;
struct member;
struct msg_unready;

/* A stage, or all, are being put back. */
struct kept_shard {
	uint64_t iteration, hash;
	uint8_t stage;
	char host[64];
};

struct restoring {
	bool active;
	uint64_t lost; /* bits: stages that nobody holds */
	uint64_t iteration;
	uint64_t below; /* checkpoints from here on are of no use; 0 none */
	int who[MSG_STAGES]; /* puts it back; -1 nobody was asked yet */
	struct kept_shard *shards;
	uint32_t n_shards;
	int64_t asked_us; /* the last time that a node was told to put its stage back */
	bool average; /* of the stages below, for `stage` */
	int stage;
	uint32_t n_from;
	uint16_t from_nodes[2];
	uint8_t from[2];
	float weights[2];
};

/* The newest checkpoint that is whole, by the record; 0 none */
uint64_t restore_newest(struct run *run);
bool restore_checkpoint(struct weights *weights); /* begins; false: there is none */
/* Begins; false: nothing can stand in the stage's place. */
bool restore_average(struct weights *weights, int stage, struct member *taker);
/* A process has come: what could not be read may be there now */
void restore_look_again(struct weights *weights);
void restore_failed(struct weights *weights, struct member *m, const struct msg_unready *u);
void restore_turn(struct iteration *it);    /* while one is active */
void restore_fini(struct weights *weights); /* at the end, whether one is or not */
/* A node is back with the stage's weights: they need not be made. False: the run goes back already.
 */
bool restore_averted(struct weights *weights, int stage);

#endif
