/* observed_links.h - each link as consoles show it: as its sender reported it, or as measured. */
#ifndef CONTROLLER_NETWORK_OBSERVED_LINKS_H
#define CONTROLLER_NETWORK_OBSERVED_LINKS_H

#include <stdint.h>

#include "wire/msg.h"

struct members;
struct member;

struct observed_link {
	struct msg_link link; /* the link as its sender last reported it */
	struct msg_link sent; /* the link as last sent to consoles */
	/* The activation transfer time that the agent last measured, seconds; 0: no activation was
	 * sent */
	float took_s;
	uint8_t strikes; /* number of successive reports that contradict the plan */
};

/* Returns the record of the link from m to node `to`. */
struct observed_link *observed_link(struct member *m, uint16_t to);
/* Copies a measured link into its record */
void members_link_observed(struct members *members, struct member *m, uint16_t to);

#endif
