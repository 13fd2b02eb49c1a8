/* supervisor.h - orders to the embedded cluster's supervisor, which starts and kills agents for us. */
#ifndef CONTROLLER_OPERATOR_SUPERVISOR_H
#define CONTROLLER_OPERATOR_SUPERVISOR_H

#include <stdbool.h>

struct controller;

/* An order to the embedded cluster's supervisor: false when there is none. */
bool supervisor_tell(struct controller *c, const char *what, int node);
void supervisor_end(struct controller *c); /* told: no other controller is to go on with the run */

#endif
