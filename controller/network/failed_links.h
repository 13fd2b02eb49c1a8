/* failed_links.h - the links that are cut, and the nodes' reports about them. */
#ifndef CONTROLLER_NETWORK_FAILED_LINKS_H
#define CONTROLLER_NETWORK_FAILED_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct members;
struct run;
struct link_failure;
struct member;
struct msg_heartbeat;

/* A link between two nodes that is cut now or was cut earlier. */
struct link_failure {
	/* The node that first reported the current cut, and the node at the other end */
	uint16_t from, to;
	bool active;       /* true: the link counts as absent; false: the link is in use again */
	uint32_t times;    /* number of cuts since the link last worked for ten minutes */
	/* Version of the routes in which no unfinished microbatch needs the link; 0: none */
	uint64_t unneeded_in;
	/* Time of the newest change of `active`, and time of the newest report */
	int64_t since_us, seen_us;
	/* Figures of the first report: how long nothing had moved on the link, and the time within
	 * which the agent had expected movement */
	double quiet_s, expected_s;
	/* delays in both directions before the cut, to be restored when the cut ends */
	double delay_s[2], sync_s[2];
};

void link_failures_hear(struct members *members, struct member *m, const struct msg_heartbeat *h);
/* Returns the link's record; NULL: the link has never been cut */
struct link_failure *link_failures_find(const struct members *members, uint16_t a, uint16_t b);
/* Returns true if the link between a and b is cut */
bool link_failures_between(const struct members *members, uint16_t a, uint16_t b);
/* Returns true if m reports that nothing moves on its link to some replica, and this link is not
 * marked as cut yet. */
bool link_failures_doubted(const struct members *members, const struct member *m);
/* Returns true if m may take part again: it was not cut off, or its links work now. */
bool link_failures_healed(const struct run *run, const struct member *m);

#endif
