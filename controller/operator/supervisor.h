/* supervisor.h - orders to the embedded cluster's supervisor, which starts and kills agents for us. */
#ifndef CONTROLLER_OPERATOR_SUPERVISOR_H
#define CONTROLLER_OPERATOR_SUPERVISOR_H

#include <stdbool.h>

struct run;

/* An order to the embedded cluster's supervisor: false when there is none. */
bool supervisor_tell(struct run *run, const char *what, int node);
void supervisor_end(struct run *run); /* told: no other controller is to go on with the run */

#endif
