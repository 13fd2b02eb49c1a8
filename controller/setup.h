/* setup.h - builds a controller from its command line, ready to gather its agents, and frees it. */
#ifndef CONTROLLER_SETUP_H
#define CONTROLLER_SETUP_H

#include "controller/controller.h"

/* Returns a zeroed controller on the heap, whose parts have pointers to one another. The caller
 * frees it after controller_fini. */
struct controller *controller_new(void);
/* Fills *c from c->options: model, cluster, keys, sockets, store, planner. On failure err has a
 * message. controller_fini frees the parts that were made, also after a failure. */
int controller_init(struct controller *c, struct error *err);
void controller_fini(struct controller *c);

#endif
