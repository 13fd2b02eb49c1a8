/* weight_server.h - pieces of this node's stage, or of the copy it keeps, for those who ask. */
#ifndef AGENT_WEIGHT_SERVER_H
#define AGENT_WEIGHT_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct agent;
struct job;
struct weight_server; /* opaque; the agent has one */

struct weight_server *weight_server_new(void); /* weight_server_free */
void weight_server_free(struct weight_server *s);  /* NULL is allowed */

void weight_server_ask(struct agent *a, const struct msg_fetch *m, int64_t now_us);
bool weight_server_next_job(struct agent *a, struct job *job);
/* The snapshot is made: taken from the job. */
void weight_server_job_done(struct agent *a, struct job *job, int64_t now_us);
void weight_server_turn(struct agent *a, int64_t now_us);
bool weight_server_idle(const struct agent *a); /* nobody is owed a piece, and no snapshot takes memory; for tests */
void weight_server_forget(struct agent *a);

#endif
