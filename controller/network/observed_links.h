/* observed_links.h - what consoles are shown of each link: as its sender last told, or as it was measured. */
#ifndef CONTROLLER_NETWORK_OBSERVED_LINKS_H
#define CONTROLLER_NETWORK_OBSERVED_LINKS_H

#include <stdint.h>

#include "wire/msg.h"

struct members;
struct member;

struct observed_link {
	struct msg_link link; /* as its sender last told */
	struct msg_link told; /* as consoles were last told */
	float took_s;         /* what activations took when some last travelled; 0: none did */
	uint8_t strikes;      /* reports in a row that contradict the plan */
};

/* Of a link from m; NULL: out of memory. */
struct observed_link *observed_link(struct member *m, uint16_t to);
/* C->links has changed */
void members_link_observed(struct members *members, struct member *m, uint16_t to);

#endif
