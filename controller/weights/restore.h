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

/* State while a stage has no replica. */
struct stall {
	enum run_phase in; /* phase of the run that the loss of the stage interrupted */
	int64_t since_us;
	bool taken_over; /* some node is restoring the lost stage, or has taken it over */
	/* Time of the next request to the supervisor for a node, and time of the next attempt to
	 * average the neighbours. */
	int64_t next_ask_us, next_average_us;
};

/* A stage's file of a checkpoint, as the record has it. */
struct kept_shard {
	uint64_t iteration, hash;
	uint8_t stage;
	char host[64];
};

struct restoring {
	enum restoring_state state;
	uint64_t lost; /* one bit for each stage that no node holds */
	uint64_t iteration;
	/* checkpoints of this and later iterations cannot be used; 0: all can be used */
	uint64_t below;
	int who[MSG_STAGES]; /* the node that restores each stage; -1: no node was asked yet */
	struct kept_shard *shards;
	uint32_t n_shards;
	int64_t asked_us; /* time of the newest order to a node to restore a stage */
	int stage;        /* the stage that is averaged from its neighbours */
	uint32_t n_from;
	uint16_t from_nodes[2];
	uint8_t from[2];
	float weights[2];
};

/* The outcome of a turn of a restore. */
enum restore_outcome {
	RESTORE_SETTLED,    /* nothing is left to do for the restore in this turn */
	RESTORE_UNANSWERED, /* some nodes have not answered their orders yet */
	RESTORE_WENT_BACK   /* the run is at the checkpoint, and its iteration restarts */
};

/* Returns the iteration of the newest complete checkpoint in the record that is below `below`; 0:
 * none */
uint64_t restore_newest(struct run *run, uint64_t below);
/* Goes back to the newest complete checkpoint. Returns false if the run has none */
bool restore_checkpoint(struct backups *backups);
/* Restarts the run from its first weights. Does nothing and returns false if there is a checkpoint,
 * even one that cannot be read now. */
bool restore_first(struct backups *backups);
/* Lets `taker` restore the stage by averaging its neighbours, and gives it the stage. Returns
 * false, and changes nothing, if no neighbour can be used. */
bool restore_average(struct backups *backups, int stage, struct member *taker);
/* Called when a process has joined. Its machine may have files that no node could read until
 * now */
void restore_look_again(struct backups *backups);
void restore_failed(struct backups *backups, struct member *m, const struct msg_unready *u);
/* Continues a restore; called in each turn */
enum restore_outcome restore_turn(struct backups *backups);
/* Returns how long the nodes that have not answered may stay silent. answered_us: time at which a
 * node last answered an order, or at which data last moved. */
int64_t restore_patience_us(const struct backups *backups, int64_t answered_us);
/* Abandons the nodes that have not answered, so that other nodes are asked. The abandoned nodes
 * are asked again only if no other node can restore the stage. */
void restore_abandon_silent(struct backups *backups);
void restore_fini(struct backups *backups); /* frees the state when the controller ends */
/* Called when a node returns with the stage's weights. Returns false if these weights are too late,
 * because the run is already restoring a checkpoint. */
bool restore_averted(struct backups *backups, int stage);

#endif
