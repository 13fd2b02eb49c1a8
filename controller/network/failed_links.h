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

/* A link between two nodes that is cut or was. */
struct link_failure {
	uint16_t from, to; /* the node that reported the current cut first, and the other end */
	bool active;       /* true: the link counts as absent; false: the link is in use again */
	uint32_t times;    /* number of cuts */
	uint64_t unneeded_in; /* version of the routes whose rest does not need the link; 0: none */
	int64_t since_us, seen_us; /* start of the current state; newest report */
	/* How long the link was silent, and how long was expected, in the first report */
	double quiet_s, expected_s;
	/* delays to be restored when the cut ends, in both directions */
	double delay_s[2], sync_s[2];
};

void link_failures_hear(struct members *members, struct member *m, const struct msg_heartbeat *h);
/* NULL: this link has not been cut so far */
struct link_failure *link_failures_find(const struct members *members, uint16_t a, uint16_t b);
/* Returns true if this link is cut */
bool link_failures_between(const struct members *members, uint16_t a, uint16_t b);
/* Returns true if m reports that nothing moves towards a replica, and the link is not cut yet. */
bool link_failures_doubted(const struct members *members, const struct member *m);
/* Returns true if m may take part again: it was not cut off, or its links work now. */
bool link_failures_healed(const struct run *run, const struct member *m);

#endif
