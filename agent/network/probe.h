/* probe.h - finds links that may be cut, reports them, and probes them until an answer arrives. */
#ifndef AGENT_NETWORK_PROBE_H
#define AGENT_NETWORK_PROBE_H

#include <stdint.h>

#include "agent/network/peers.h"
#include "wire/msg.h"

/* Checks all links. Writes the stuck links to `out`, which has room for MSG_STUCK links, and
 * returns their number. */
uint32_t probe_links(struct peers *peers, struct msg_stuck *out, int64_t now_us);

#endif
