/* supervisor.h - sends orders to the supervisor of an embedded cluster. */
#ifndef CONTROLLER_RUN_SUPERVISOR_H
#define CONTROLLER_RUN_SUPERVISOR_H

#include <stdbool.h>

struct run;

/* Sends an order ("start", "kill", "wake") about the node. Returns true if a supervisor received
 * it. */
bool supervisor_tell(struct run *run, const char *what, int node);
/* Tells the supervisor that the run is over, so that it starts no other controller. */
void supervisor_end(struct run *run);

#endif
