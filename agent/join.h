/* join.h - joins and leaves a run: greets the controller, takes its WELCOME, knows the peers. */
#ifndef AGENT_JOIN_H
#define AGENT_JOIN_H

#include <stdint.h>

#include "wire/msg.h"

struct agent;

/* Sends HELLO: this process, and the run, stage and standby copy that it holds. */
void join_hello(struct agent *a, int64_t now_us);
/* Handles WELCOME. For the same run it keeps all state and updates the times. For another run it
 * drops all state of the previous one. An invalid WELCOME ends the agent. -EAGAIN: the worker runs
 * a job of the previous run, which this node has left. Call again when the worker is idle. */
int join_welcome(struct agent *a, const struct msg_welcome *w, int64_t now_us);
/* Admits the peers' keys, and dials the peers if they are few. A changed entry means that the node
 * has a new process. */
void join_peers(struct agent *a, const struct msg_peers *p);
/* Drops all state of the run. The worker must be idle, or ended; its job's result is dropped. */
void join_forget_run(struct agent *a);

#endif
