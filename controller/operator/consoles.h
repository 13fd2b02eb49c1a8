/* consoles.h - sends the run's state to consoles: a snapshot, then every change. */
#ifndef CONTROLLER_OPERATOR_CONSOLES_H
#define CONTROLLER_OPERATOR_CONSOLES_H

#include "wire/post.h"

struct operators;
struct run;
struct msg;
struct msg_attach;

/* Adds the console, unless it is attached already, and sends it a snapshot. */
void consoles_attach(struct operators *ops, post_peer_id peer, const struct msg_attach *m);
/* Forgets a console whose connection has ended. */
void consoles_down(struct run *run, post_peer_id peer);
/* Sends the messages that are due: tasks, the status, changed nodes and links, and snapshots to
 * consoles that were too slow. */
void consoles_turn(struct operators *ops);
/* Fills MSG_SEE_STATUS, except for the number of messages that were dropped for a console. */
void consoles_fill_status(const struct operators *ops, struct msg *m);
void consoles_fini(struct run *run);

#endif
