/* orders.h - what the controller orders: obeyed as it comes, or once the agent is settled for it.
 *
 * Orders to the own stage that need settled weights (START, REROUTE, REDUCE, COMMIT, EVALUATE,
 * SAVE) wait in line while an assignment, a step or the end of a sum is under way; those to the copy
 * beside it (KEEP, and what of REDUCE and COMMIT concerns it) likewise in a line of their own.
 */
#ifndef AGENT_ORDERS_H
#define AGENT_ORDERS_H

#include <stdint.h>

#include "wire/post.h"

struct agent;
struct orders; /* opaque; the agent has one */

struct orders *orders_new(void); /* orders_free */
void orders_free(struct orders *o);  /* NULL is allowed */
/* A message or an event of the controller's post. */
void orders_take(struct agent *a, struct post_message *p, int64_t now_us);
/* Obeys those that wait, in order, as far as the agent is settled. */
void orders_turn(struct agent *a, int64_t now_us);

#endif
