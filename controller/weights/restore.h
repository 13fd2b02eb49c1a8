/* restore.h - restores a stage that no process holds: from a checkpoint, or by averaging its
 * neighbours. */
#ifndef CONTROLLER_WEIGHTS_RESTORE_H
#define CONTROLLER_WEIGHTS_RESTORE_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/weights/restore_state.h"
#include "wire/msg.h"

struct run;
struct backups;
struct member;
struct msg_unready;

/* A stage has no replica. */
struct stall {
	enum run_phase in; /* phase of the run that was interrupted */
	int64_t since_us;
	bool taken_over; /* some node is restoring the lost stage */
	/* Time of the next request for a node; time of the next try to average the neighbours. */
	int64_t next_ask_us, next_average_us;
};

/* A file of one stage in a checkpoint. */
struct kept_shard {
	uint64_t iteration, hash;
	uint8_t stage;
	char host[64];
};

struct restoring {
	enum restoring_state state;
	uint64_t lost; /* stages that no node holds, one bit for each */
	uint64_t iteration;
	uint64_t below; /* checkpoints from this iteration on are unusable; 0: none */
	int who[MSG_STAGES]; /* the node that restores each stage; -1: none was asked yet */
	struct kept_shard *shards;
	uint32_t n_shards;
	int64_t asked_us; /* when a node was last ordered to restore a stage */
	int stage;        /* the stage whose neighbours are averaged */
	uint32_t n_from;
	uint16_t from_nodes[2];
	uint8_t from[2];
	float weights[2];
};

/* The outcome of a turn of a restore. */
enum restore_outcome {
	RESTORE_SETTLED,    /* nothing is left to do in this turn */
	RESTORE_UNANSWERED, /* nodes have not answered their orders yet */
	RESTORE_WENT_BACK   /* the run is at the checkpoint, and its iteration restarts */
};

/* Returns the iteration of the newest complete checkpoint in the record before `below`; 0: none */
uint64_t restore_newest(struct run *run, uint64_t below);
bool restore_checkpoint(struct backups *backups); /* returns false if there is none */
/* Restarts the run from its first weights. Returns false if there is a checkpoint, even one that
 * cannot be read now. */
bool restore_first(struct backups *backups);
/* Returns false if no neighbour can be used. */
bool restore_average(struct backups *backups, int stage, struct member *taker);
/* A process has joined, and may have files that could not be read before */
void restore_look_again(struct backups *backups);
void restore_failed(struct backups *backups, struct member *m, const struct msg_unready *u);
enum restore_outcome restore_turn(struct backups *backups); /* unless nothing is restored */
/* Returns how long the nodes that have not answered may stay silent. answered_us: when a node last
 * answered an order, or data last moved. */
int64_t restore_patience_us(const struct backups *backups, int64_t answered_us);
/* Abandons the nodes that have not answered, so that other nodes are asked. They are asked again
 * only if no other node can restore the stage. */
void restore_abandon_silent(struct backups *backups);
void restore_fini(struct backups *backups); /* when the controller ends */
/* Call when a node returns with the stage's weights. Returns false if the run already restores a
 * checkpoint, so that these weights come too late. */
bool restore_averted(struct backups *backups, int stage);

#endif
