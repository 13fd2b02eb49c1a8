/* heartbeat.h - reports the agent's state and its stuck links to the controller ten times a second.
 * Each heartbeat has the complete state, so a lost heartbeat need not be sent again.
 */
#ifndef AGENT_HEARTBEAT_H
#define AGENT_HEARTBEAT_H

#include <stdint.h>

#include "wire/msg.h"

struct agent;
struct heartbeat; /* opaque; the agent has one */
struct tell;

struct heartbeat *heartbeat_new(void);     /* freed by heartbeat_free */
void heartbeat_free(struct heartbeat *h);  /* NULL is allowed */
/* Records a PING of the controller, which the next heartbeat answers. */
void heartbeat_ping(struct heartbeat *h, struct tell *tell, const struct msg_ping *ping,
		    int64_t now_us);
void heartbeat_turn(struct agent *a, int64_t now_us); /* sends a heartbeat if one is due */
int64_t heartbeat_deadline_us(const struct heartbeat *h);

#endif
