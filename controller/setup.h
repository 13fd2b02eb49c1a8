/* setup.h - from the command line to a run that is ready to gather its agents. */
#ifndef CONTROLLER_SETUP_H
#define CONTROLLER_SETUP_H

#include "controller/controller.h"

/* A zeroed controller whose parts reach one another, on the heap. For the caller to free after
 * controller_fini. */
struct controller *controller_new(void);
/* Fills *c from c->options: model, cluster, keys, sockets, store, planner. Negative with a message;
 * then controller_fini frees what there is. */
int controller_init(struct controller *c, struct error *err);
void controller_fini(struct controller *c);

#endif
