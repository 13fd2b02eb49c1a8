/* standbys.h - keeps every stage on two nodes after every commit. */
#ifndef CONTROLLER_WEIGHTS_STANDBYS_H
#define CONTROLLER_WEIGHTS_STANDBYS_H

#include <stdbool.h>
#include <stdint.h>

struct members;
struct member;
struct msg_committed;
struct msg_kept;
struct backups;

struct standbys {
	int64_t next_us; /* time of the next check */
	bool lacks;      /* no node could keep the copy of some stage */
	/* Number of successive checks in this phase at which all replicas, but not all copies, had
	 * the sum */
	uint32_t looks;
};

void standbys_kept(struct members *members, struct member *m, const struct msg_kept *k);
void standbys_committed(struct members *members, struct member *m, const struct msg_committed *r);
/* Appoints and releases keepers from time to time. Returns true if it looked for keepers in this
 * turn; the caller then calls rebalance_turn, too. sums_took_s: how long the replicas' sums of this
 * iteration took. */
bool standbys_turn(struct backups *backups, double sums_took_s);

#endif
