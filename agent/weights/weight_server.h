/* weight_server.h - sends pieces of this node's stage, or of its standby copy, to nodes that fetch
 * them. */
#ifndef AGENT_WEIGHT_SERVER_H
#define AGENT_WEIGHT_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct agent;
struct job;
struct weight_server; /* opaque */

struct weight_server *weight_server_new(void); /* weight_server_free */
void weight_server_free(struct weight_server *s);  /* NULL is allowed */

/* Takes a request; weight_server_turn answers it. */
void weight_server_ask(struct agent *a, const struct msg_fetch *m, int64_t now_us);
/* Gives a job that makes the snapshot for the oldest request. Returns true if one is needed. */
bool weight_server_next_job(struct agent *a, struct job *job);
/* Takes the snapshot from the job. */
void weight_server_job_done(struct agent *a, struct job *job, int64_t now_us);
void weight_server_turn(struct agent *a, int64_t now_us);
/* Returns true if no request waits and there is no snapshot; for tests. */
bool weight_server_idle(const struct agent *a);
void weight_server_forget(struct agent *a);

#endif
