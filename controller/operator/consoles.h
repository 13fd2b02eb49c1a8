/* consoles.h - the state stream. */
#ifndef CONTROLLER_OPERATOR_CONSOLES_H
#define CONTROLLER_OPERATOR_CONSOLES_H

#include "wire/post.h"

struct controller;
struct run;
struct msg_attach;

void consoles_attach(struct controller *c, post_peer_id peer, const struct msg_attach *m);
void consoles_down(struct run *run, post_peer_id peer);
void consoles_turn(struct controller *c); /* status, changed nodes, tasks, laggards */
void consoles_fini(struct run *run);

#endif
