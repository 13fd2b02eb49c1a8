/* probe.h - links that may be cut: found, told, and probed until something comes back. */
#ifndef AGENT_NETWORK_PROBE_H
#define AGENT_NETWORK_PROBE_H

#include <stdint.h>

#include "wire/msg.h"

struct agent;

/* Looks at all links; those that are stuck to out (MSG_STUCK). Returns how many. */
uint32_t probe_links(struct agent *a, struct msg_stuck *out, int64_t now_us);

#endif
