/* setup.h - from the command line to a run that is ready to gather its agents. */
#ifndef CONTROLLER_SETUP_H
#define CONTROLLER_SETUP_H

#include "controller/controller.h"

/* Fills *c from c->options: model, cluster, keys, sockets, store, planner. Negative with a message;
 * then controller_fini frees what there is. */
int controller_init(struct controller *c, struct error *err);
void controller_fini(struct controller *c);

/* Keys, who may connect (roles: a KEYS_ROLE_BIT mask) and the socket, as o says. What was made
 * before an error is the caller's to free: keys_free, keys_list_free, post_close. */
int setup_network(const struct options *o, uint32_t roles, const struct log *log,
		  struct keys_identity **identity, struct keys_list **admitted, struct post **post,
		  struct error *err);

#endif
