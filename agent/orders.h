/* orders.h - carries out the controller's orders, at once or when the agent is settled.
 *
 * An agent is settled if no job or request changes its weights, and no checkpoint waits for a copy
 * of the weights. Orders for the agent's stage that need a settled agent (START, REROUTE, REDUCE,
 * COMMIT, EVALUATE, SAVE) wait in a queue. Orders for the agent's standby copy (KEEP, and a REDUCE
 * or COMMIT that concerns the copy) wait in a second queue. A WELCOME to another run waits until
 * the worker is idle, and all orders that arrive after this WELCOME wait too.
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
/* While the agent is settled, carries out the waiting orders, the oldest first. */
void orders_turn(struct agent *a, int64_t now_us);
/* Carries out the WELCOME that waited for the worker to become idle, and the orders that arrived
 * after this WELCOME. */
void orders_begin_run(struct agent *a, int64_t now_us);

#endif
