/* held.h - the stage that this node holds, and how far its assignment has come.
 *
 * assign.c and restore.c write it, and iteration.c the number and the hash of the last commit.
 * Other modules read it.
 */
#ifndef AGENT_HELD_H
#define AGENT_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/msg.h"

enum standing {
	STAND_UNASSIGNED,
	/* A stage was assigned; the worker is still busy, or a file is being fetched. */
	STAND_WAITING,
	STAND_PREPARING,
	STAND_LOADING,   /* the stage is loaded from the standby copy */
	STAND_RESTORING, /* restore.c restores the stage from a file or from neighbouring stages */
	STAND_MEASURING,
	STAND_READY
};

/* The stage that this agent holds. */
struct held {
	enum standing standing;
	struct msg_assign assign;      /* the newest assignment */
	uint8_t stage;                 /* the stage's number; MSG_NO_STAGE: none */
	size_t parameters, activation; /* sizes in floats: parameters P, and activation B * T * C */
	size_t stage_bytes;            /* bytes of the machine's memory that the stage takes */
	bool takes_encoded;            /* the stage takes and gives encoded activations */
	bool whole;                    /* the stage is complete, with `committed` iterations */
	/* Number of committed iterations, and hash of the weights. */
	uint64_t committed, hash;
	/* orders.c: iterations committed according to the controller's newest message; 0: none */
	uint64_t announced;
};

#endif
