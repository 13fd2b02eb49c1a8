/* orders.h - carries out the controller's orders, at once or when the agent is settled.
 *
 * An agent is settled if no assignment, step or end of a sum is changing its weights. Orders for
 * its stage that need this (START, REROUTE, REDUCE, COMMIT, EVALUATE, SAVE) wait in a line. Orders
 * for its standby copy (KEEP, and a REDUCE or COMMIT that concerns the copy) wait in another line.
 * A WELCOME to another run, and the orders after it, wait until the worker is idle.
 */
#ifndef AGENT_ORDERS_H
#define AGENT_ORDERS_H

#include <stdint.h>

#include "wire/post.h"

struct agent;
struct orders; /* opaque; the agent has one */

struct orders *orders_new(void); /* orders_free */
void orders_free(struct orders *o);  /* NULL is allowed */
/* Handles a message or an event of the connection to the controller. */
void orders_take(struct agent *a, struct post_message *p, int64_t now_us);
/* Carries out the waiting orders, in order, as long as the agent is settled. */
void orders_turn(struct agent *a, int64_t now_us);
/* Carries out a WELCOME that waited for the worker, which is idle now, and the orders after it. */
void orders_begin_run(struct agent *a, int64_t now_us);

#endif
