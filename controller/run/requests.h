/* requests.h - requests of the controller's parts about the iteration under way.
 *
 * If a part notices a dead node or a void sum, it changes only its own state and queues a request
 * here. The loop carries requests out in a fixed order, after every message and every part's turn
 * (loop.c). No part therefore calls another that might call it back, and a test can see a request
 * without carrying it out. */
#ifndef CONTROLLER_RUN_REQUESTS_H
#define CONTROLLER_RUN_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

/* The requests, in the order in which the loop carries them out. */
struct requests {
	/* Replicas that died (n_lost); others must do their work */
	uint16_t lost[MSG_NODES];
	uint32_t n_lost;
	bool restart_sums; /* sums begun or completed are void */
	/* The last awaited sum may have arrived, or nothing may wait for it now. */
	bool look_at_sums;
	/* Reason for which the iteration restarts; NULL: it does not. Borrowed for good. */
	const char *restart_reason;
};

/* queues the loss once, however often it is requested */
void request_lost(struct requests *r, uint16_t node);
/* Keeps the first reason. why: borrowed for good */
void request_restart(struct requests *r, const char *why);
/* Returns true if any request is queued. */
bool requests_any(const struct requests *r);
/* Removes the first lost node from the queue and returns it; -1: none. */
int requests_next_lost(struct requests *r);

#endif
