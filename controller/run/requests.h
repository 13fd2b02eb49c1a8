/* requests.h - requests of the controller's parts about the iteration under way.
 *
 * A part that notices a dead node or a void sum changes only its own state and queues a request
 * here. The loop carries requests out in a fixed order, after every message and after the turn of
 * every part (loop.c). No part therefore calls a part that might call it back. A test can see a
 * request without carrying it out. */
#ifndef CONTROLLER_RUN_REQUESTS_H
#define CONTROLLER_RUN_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

/* The requests, in the order in which the loop carries them out. */
struct requests {
	/* The n_lost replicas that died, whose work other nodes must do */
	uint16_t lost[MSG_NODES];
	uint32_t n_lost;
	bool restart_sums; /* sums that have begun or are complete are void and must restart */
	/* The commit must be checked again, because the last sum may have arrived or may not be
	 * needed any more */
	bool look_at_sums;
	/* Reason why the iteration must restart; NULL: no restart is requested. The text is never
	 * freed. */
	const char *restart_reason;
};

/* Queues the loss of a node once, however often it is requested */
void request_lost(struct requests *r, uint16_t node);
/* Requests a restart of the iteration. If there are several requests, the first reason is kept.
 * why: a text that is never freed */
void request_restart(struct requests *r, const char *why);
/* Returns true if any request is queued. */
bool requests_any(const struct requests *r);
/* Removes the first lost node from the queue and returns it; -1: none. */
int requests_next_lost(struct requests *r);

#endif
