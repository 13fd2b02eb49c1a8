/* standbys.h - every stage in two places after every commit. */
#ifndef CONTROLLER_WEIGHTS_STANDBYS_H
#define CONTROLLER_WEIGHTS_STANDBYS_H

#include <stdbool.h>
#include <stdint.h>

struct iteration;
struct members;
struct member;
struct msg_committed;
struct msg_kept;

struct standbys {
	int64_t next_us; /* the next look */
	uint32_t looks;  /* at copies that keep the replicas waiting, in this phase */
};

void standbys_kept(struct members *members, struct member *m, const struct msg_kept *k);
void standbys_committed(struct members *members, struct member *m, const struct msg_committed *r);
/* Now and then: appoints keepers, lets them go. Whether it was time, and nodes may go home as well (rebalance_turn). */
bool standbys_turn(struct iteration *it);

#endif
