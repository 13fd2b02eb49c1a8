/* heartbeat.h - ten times a second: that the agent lives, what it holds and does, and which links
 * are stuck. Each stands alone; one that is lost is not sent again.
 */
#ifndef AGENT_NETWORK_HEARTBEAT_H
#define AGENT_NETWORK_HEARTBEAT_H

#include <stdint.h>

#include "wire/msg.h"

struct agent;
struct heartbeat; /* opaque; the agent has one */

struct heartbeat *heartbeat_new(void); /* heartbeat_free */
void heartbeat_free(struct heartbeat *h);  /* NULL is allowed */
/* The next one answers the controller's clock. */
void heartbeat_ping(struct agent *a, const struct msg_ping *ping, int64_t now_us);
void heartbeat_turn(struct agent *a, int64_t now_us); /* tells one if it is time */
int64_t heartbeat_deadline_us(const struct agent *a);

#endif
