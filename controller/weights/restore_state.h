/* restore_state.h - what the controller is restoring, and a table of the events that change
 * this. */
#ifndef CONTROLLER_WEIGHTS_RESTORE_STATE_H
#define CONTROLLER_WEIGHTS_RESTORE_STATE_H

#include <stdbool.h>

enum restoring_state {
	RESTORING_NOTHING,
	RESTORING_CHECKPOINT, /* one node of each stage reads its file of a checkpoint */
	/* One node of each stage makes the weights with which the run began */
	RESTORING_FIRST_WEIGHTS,
	RESTORING_AVERAGE, /* one node averages the neighbours of its stage */
	RESTORING_STATES
};

enum restoring_event {
	/* the run has to go back to a checkpoint, so nodes are ordered to read its files */
	RESTORING_READ,
	/* A stage is lost before the first checkpoint, so nodes are ordered to make the first
	 * weights again */
	RESTORING_BUILD,
	RESTORING_COMBINE, /* a stage is lost, and a node is ordered to average its neighbours */
	RESTORING_REJECT,  /* there is a stage that no remaining node can read or make */
	/* The averaging node has died, the stage has returned, or another restore begins. */
	RESTORING_GIVE_UP,
	RESTORING_FINISH, /* the record has the restored stages */
	RESTORING_EVENTS
};

/* Changes the state as the table says. Returns false if the event must not occur in this state. */
bool restoring_apply(enum restoring_state *state, enum restoring_event event);
/* Returns true if the run goes back in this state: all nodes leave their stages, and iterations are
 * repeated. */
bool restoring_goes_back(enum restoring_state state);

#endif
