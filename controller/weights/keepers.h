/* keepers.h - every stage in two places after every commit. */
#ifndef CONTROLLER_WEIGHTS_KEEPERS_H
#define CONTROLLER_WEIGHTS_KEEPERS_H

#include <stdbool.h>
#include <stdint.h>

struct controller;
struct member;
struct msg_committed;
struct msg_kept;

struct keepers {
	int64_t next_us; /* the next look */
	uint32_t looks;  /* at copies that keep the replicas waiting, in this phase */
};

void copies_kept(struct controller *c, struct member *m, const struct msg_kept *k);
void copies_committed(struct controller *c, struct member *m, const struct msg_committed *r);
/* Now and then: appoints keepers, lets them go. Whether it was time, and nodes may go home as well (home_turn). */
bool copies_turn(struct controller *c);

#endif
