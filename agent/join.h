/* join.h - joins and leaves a run: sends HELLO, handles WELCOME, admits the other nodes. */
#ifndef AGENT_JOIN_H
#define AGENT_JOIN_H

#include <stdint.h>

#include "wire/msg.h"

struct agent;

/* Sends HELLO, which names this process, its run, and the stage and the standby copy that this
 * node holds. */
void join_hello(struct agent *a, int64_t now_us);
/* Handles WELCOME. For the same run, keeps all state and updates the times. For another run, drops
 * all state of the previous run. An invalid WELCOME ends the agent. -EAGAIN: the agent has left the
 * previous run, but the worker still runs one of its jobs. Call again when the worker is idle. */
int join_welcome(struct agent *a, const struct msg_welcome *w, int64_t now_us);
/* Admits the keys of the nodes in the message, and dials the nodes if the run has only few nodes. A
 * changed entry means that the node has a new process. */
void join_peers(struct agent *a, const struct msg_peers *p);
/* Drops all state of the run. The worker must be idle or freed. The result of the worker's last
 * job is dropped. */
void join_forget_run(struct agent *a);

#endif
