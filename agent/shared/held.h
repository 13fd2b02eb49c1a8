/* held.h - the stage that this node holds, and how far its assignment has come.
 *
 * assign.c and restore.c write the struct. iteration.c writes the number and the hash of the last
 * commit. Other modules only read.
 */
#ifndef AGENT_HELD_H
#define AGENT_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/msg.h"

enum standing {
	STAND_UNASSIGNED,
	/* A stage is assigned, but the worker is still busy, or this node must first fetch a
	 * file. */
	STAND_WAITING,
	STAND_PREPARING,
	STAND_LOADING,   /* the worker copies the stage's weights from the standby copy */
	STAND_RESTORING, /* restore.c restores the stage from a file or from neighbouring stages */
	STAND_MEASURING,
	STAND_READY
};

/* The stage that this agent holds. */
struct held {
	enum standing standing;
	struct msg_assign assign;      /* the newest assignment */
	uint8_t stage;                 /* the stage's number; MSG_NO_STAGE: none */
	/* Sizes in floats: P parameters of the stage, and B * T * C of an activation. */
	size_t parameters, activation;
	size_t stage_bytes; /* size of the stage in the machine's memory, bytes */
	bool takes_encoded; /* the stage decodes and encodes activations on its device */
	bool whole;         /* the weights are complete, as of iteration `committed` */
	/* Number of committed iterations, and hash of the weights after them. */
	uint64_t committed, hash;
	/* Number of committed iterations according to the controller's newest message; orders.c
	 * writes it. 0: none. */
	uint64_t announced;
};

#endif
