/* failure_detector.h - who is not heard any more, and is taken out. */
#ifndef CONTROLLER_MEMBERS_FAILURE_DETECTOR_H
#define CONTROLLER_MEMBERS_FAILURE_DETECTOR_H

#include <stdbool.h>
#include <stdint.h>

struct members;
struct run;
struct member;
struct msg_heartbeat;

struct failure_detector {
	uint64_t hung_up;     /* connections that have ended, and when the last did; */
	int64_t hung_up_us;
	uint32_t n_hung_up;   /* of them lately, whose is not known */
	uint32_t connections; /* that a process has with this one */
	uint32_t n_suspected; /* agents that have not been heard since */
};

/* Records that the process of this node has sent HELLO. */
void failure_detector_begin(struct members *members, struct member *m);
/* A word of it has come. False: not the newest, which tells only that it lives. */
bool failure_detector_hear(struct run *run, struct member *m, const struct msg_heartbeat *h);
/* The system tells that so many more connections have ended, not whose they were. */
void failure_detector_ended(struct members *members, uint32_t ended);
/* Whose connections have ended is known: one process' */
void failure_detector_hung_up(struct members *members);
/* Takes out who has been quiet for too long. slept_us: so long this loop was late itself. */
void failure_detector_check(struct members *members, int64_t slept_us);
/* The usual round trip of the farthest of those that are here. */
int64_t failure_detector_farthest_us(const struct members *members);

#endif
