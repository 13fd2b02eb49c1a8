/* quiet.h - who is not heard any more, and is taken out. */
#ifndef CONTROLLER_MEMBERS_QUIET_H
#define CONTROLLER_MEMBERS_QUIET_H

#include <stdbool.h>
#include <stdint.h>

struct controller;
struct member;
struct msg_heartbeat;

struct quiet {
	uint64_t hung_up;     /* connections that have ended, and when the last did; */
	int64_t hung_up_us;
	uint32_t n_hung_up;   /* of them lately, whose is not known */
	uint32_t connections; /* that a process has with this one */
	uint32_t n_suspected; /* agents that have not been heard since */
};

void quiet_begin(struct controller *c, struct member *m); /* its process has said hello */
/* A word of it has come. False: not the newest, which tells only that it lives. */
bool quiet_hear(struct controller *c, struct member *m, const struct msg_heartbeat *h);
void quiet_hung_up(struct controller *c); /* whose connections have ended is known: one process' */
/* Takes out who has been quiet for too long. slept_us: so long this loop was late itself. */
void quiet_check(struct controller *c, int64_t slept_us);
/* The usual round trip of the farthest of those that are here. */
int64_t quiet_farthest_us(const struct controller *c);

#endif
