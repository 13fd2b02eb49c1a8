/* requests.h - what the controller's parts want done about the iteration under way.
 *
 * A part that notices something (a node is gone, a sum was void) decides about its own state only
 * and queues a request here. The loop carries requests out, in a fixed order, after every message
 * and every part's turn (loop.c). So no part calls another that may call it again, and a test sees
 * what was asked for without its being done.
 */
#ifndef CONTROLLER_REQUESTS_H
#define CONTROLLER_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

/* In the order in which they are carried out. */
struct requests {
	/* (n_lost) replicas that are gone: their part is done by others */
	uint16_t lost[MSG_NODES];
	uint32_t n_lost;
	bool restart_sums; /* sums that were begun, or done, are void */
	/* The last that was waited for may be there, or is waited for no longer */
	bool look_at_sums;
	/* The iteration begins anew, and why; NULL: it does not. Borrowed for good */
	const char *restart_reason;
};

void request_lost(struct requests *r, uint16_t node); /* each once */
/* The first reason stands. */
void request_restart(struct requests *r, const char *why);
/* Whether there is anything to carry out. */
bool requests_any(const struct requests *r);
/* The first of the lost, taken off the queue; -1: none is left. */
int requests_next_lost(struct requests *r);

#endif
