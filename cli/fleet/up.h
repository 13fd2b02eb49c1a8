/* up.h - the state of `skippipe fleet up`, and the functions of its last steps. */
#ifndef CLI_FLEET_UP_H
#define CLI_FLEET_UP_H

#include "cli/fleet/prepare.h"

struct up {
	struct fleet *fleet;
	struct site *sites;
	bool *joined; /* array of n; true: the host's agents have joined the run */
	char run_dir[RECORD_PATH];
	char token[REMOTE_LINE], invitation[HOST_NAME];
	bool controller_runs, has_record;
	bool is_new_controller; /* this `up` has started the controller */
	char controller_said[REMOTE_LINE];
};

/* Returns true if the host's agent runs or is to be started. */
static inline bool up_has_agent(const struct up *u, size_t i)
{
	return u->sites[i].state == SITE_RUNS || u->sites[i].state == SITE_FITS;
}

/* Starts the controller, unless one runs already. */
int up_start_controller(struct up *u, struct error *err);
/* Waits until all agents have joined, or until the time limit. Prints which agents are missing, and
 * why. */
int up_wait_for_agents(struct up *u, struct error *err);

#endif
