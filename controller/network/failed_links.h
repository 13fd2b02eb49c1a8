/* failed_links.h - which links are cut, and what was complained of. */
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

/* A link between two nodes that was cut. */
struct link_failure {
	uint16_t from, to; /* who told of it first, this time, and of whom */
	bool active;       /* it is not there; false: it has been believed again */
	uint32_t times;    /* it was cut */
	int64_t since_us, seen_us; /* so; the last complaint */
	double quiet_s, expected_s; /* as first told */
	double delay_s[2], sync_s[2]; /* what was believed of it, there and back */
};

struct failed_links {
	struct link_failure *of; /* (n) all that there ever were */
	uint32_t n;
	size_t room;
	int64_t told_us; /* that two ends wait for each other */
};

void link_failures_hear(struct members *members, struct member *m, const struct msg_heartbeat *h);
/* Of that link; NULL: it never was cut */
struct link_failure *link_failures_find(const struct members *members, uint16_t a, uint16_t b);
/* That link is not there */
bool link_failures_between(const struct members *members, uint16_t a, uint16_t b);
/* Whether m tells that nothing passes to a replica, and whether that link is cut is yet to be seen. */
bool link_failures_doubted(const struct members *members, const struct member *m);
/* Whether m is not cut off, or no more: it may take part again. */
bool link_failures_healed(const struct run *run, const struct member *m);

#endif
