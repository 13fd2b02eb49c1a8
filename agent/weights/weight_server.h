/* weight_server.h - sends pieces of this node's stage, or of its standby copy, to nodes that fetch
 * them. */
#ifndef AGENT_WEIGHT_SERVER_H
#define AGENT_WEIGHT_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/shared/held.h"
#include "agent/shared/run.h"
#include "agent/shared/tell.h"
#include "agent/tensors/delay_queue.h"
#include "agent/tensors/links.h"
#include "agent/weights/standby.h"
#include "wire/msg.h"

struct job;
struct weight_server; /* opaque */

/* The parts of the agent that the server works on. All are borrowed. */
struct weight_server_uses {
	struct tell *tell;
	const struct run *run;
	const struct held *held;
	const struct standby *standby;
	struct links *links;
	struct delay_queue *delay_queue;
};

struct weight_server *
weight_server_new(const struct weight_server_uses *uses); /* freed by weight_server_free */
void weight_server_free(struct weight_server *s);  /* NULL is allowed */

/* Records a request. weight_server_turn answers it. */
void weight_server_ask(struct weight_server *s, const struct msg_fetch *m, int64_t now_us);
/* If the snapshot lacks the piece of the oldest request, gives the job that copies the part of the
 * stage with this piece. Returns false if there is no such job. */
bool weight_server_next_job(struct weight_server *s, struct job *job);
/* Takes the snapshot, or a part of it, from the job. */
void weight_server_job_done(struct weight_server *s, struct job *job, int64_t now_us);
void weight_server_turn(struct weight_server *s, int64_t now_us);
/* Returns true if no request waits and there is no complete snapshot; for tests. */
bool weight_server_idle(const struct weight_server *s);
void weight_server_forget(struct weight_server *s);

#endif
