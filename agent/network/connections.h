/* connections.h - connects to the nodes that the next plan needs, before the plan takes effect. */
#ifndef AGENT_NETWORK_CONNECTIONS_H
#define AGENT_NETWORK_CONNECTIONS_H

#include <stdint.h>

#include "agent/network/peers.h"
#include "wire/msg.h"

struct connections; /* opaque; the agent has one */

/* Freed by connections_free; borrows the peers. */
struct connections *connections_new(struct peers *peers);
void connections_free(struct connections *c);  /* NULL is allowed */

/* Begins to connect to the nodes of an order. The order replaces the previous order. */
void connections_begin(struct connections *c, const struct msg_connect *m);
/* Continues the order. Sends CONNECTED when every node that the plan needs has received a
 * message. */
void connections_turn(struct connections *c, int64_t now_us);
/* Returns the time at which connections_turn must be called even if no message has arrived;
 * INT64_MAX: never. */
int64_t connections_deadline_us(const struct connections *c);
void connections_forget(struct connections *c);

#endif
