/* restore_state.h - what the controller restores: a table of states and events. */
#ifndef CONTROLLER_WEIGHTS_RESTORE_STATE_H
#define CONTROLLER_WEIGHTS_RESTORE_STATE_H

#include <stdbool.h>

enum restoring_state {
	RESTORING_NOTHING,
	RESTORING_CHECKPOINT,    /* one node of each stage reads its file of a checkpoint */
	RESTORING_FIRST_WEIGHTS, /* one node of each stage builds the weights of the start */
	RESTORING_AVERAGE,       /* one node averages the neighbours of its stage */
	RESTORING_STATES
};

enum restoring_event {
	RESTORING_READ,    /* the run has to go back to a checkpoint */
	RESTORING_BUILD,   /* a stage is lost before the first checkpoint */
	RESTORING_COMBINE, /* a stage is lost, and its neighbours are live */
	RESTORING_REJECT,  /* no node is left that could read or build some stage */
	/* The node that averages has died, the stage has returned, or another restore begins. */
	RESTORING_GIVE_UP,
	RESTORING_FINISH, /* the record has the restored stages */
	RESTORING_EVENTS
};

/* Changes the state as the table says. Returns false if the event must not occur in it. */
bool restoring_apply(enum restoring_state *state, enum restoring_event event);
/* Returns true if the run goes back: all nodes are released, and repeat iterations. */
bool restoring_goes_back(enum restoring_state state);

#endif
