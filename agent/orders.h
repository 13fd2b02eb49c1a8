/* orders.h - carries out the controller's orders, at once or when the agent is settled.
 *
 * An agent is settled if no assignment, step or end of a sum is changing its weights. Orders for
 * its stage that need this (START, REROUTE, REDUCE, COMMIT, EVALUATE, SAVE) wait in a queue. Orders
 * for its standby copy (KEEP, and a REDUCE or COMMIT that concerns the copy) wait in a second
 * queue. A WELCOME to another run waits until the worker is idle, and so do all orders that arrive
 * after it.
 */
#ifndef AGENT_ORDERS_H
#define AGENT_ORDERS_H

#include <stdint.h>

#include "wire/post.h"

struct agent;
struct orders; /* opaque; the agent has one */

struct orders *orders_new(void);     /* freed by orders_free */
void orders_free(struct orders *o);  /* NULL is allowed */
/* Handles a message of the controller, or a change of the connection to it. */
void orders_take(struct agent *a, struct post_message *p, int64_t now_us);
/* Carries out the waiting orders in their order, as long as the agent is settled. */
void orders_turn(struct agent *a, int64_t now_us);
/* Carries out a WELCOME that has waited until the worker is idle, and the orders that arrived after
 * it. */
void orders_begin_run(struct agent *a, int64_t now_us);

#endif
