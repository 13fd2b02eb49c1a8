/* connections.h - connects to the nodes that the next plan needs, before the plan takes effect. */
#ifndef AGENT_NETWORK_CONNECTIONS_H
#define AGENT_NETWORK_CONNECTIONS_H

#include <stdint.h>

#include "wire/msg.h"

struct agent;
struct connections; /* opaque; the agent has one */

struct connections *connections_new(void); /* connections_free */
void connections_free(struct connections *c);  /* NULL is allowed */

/* Begins to connect to the nodes of an order, which replaces the previous one. */
void connections_begin(struct agent *a, const struct msg_connect *m);
/* Sends CONNECTED once every node that the plan needs has received a message. */
void connections_turn(struct agent *a, int64_t now_us);
/* Returns when to call connections_turn although no message has arrived; INT64_MAX: never. */
int64_t connections_deadline_us(const struct agent *a);
void connections_forget(struct agent *a);

#endif
