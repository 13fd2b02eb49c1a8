/* failure_detector.h - finds nodes that have been silent for too long, and removes them. */
#ifndef CONTROLLER_MEMBERS_FAILURE_DETECTOR_H
#define CONTROLLER_MEMBERS_FAILURE_DETECTOR_H

#include <stdbool.h>
#include <stdint.h>

struct members;
struct run;
struct member;
struct msg_heartbeat;

struct failure_detector {
	uint64_t hung_up; /* number of connections that have ended so far */
	int64_t hung_up_us;
	uint32_t n_hung_up;   /* number of recently ended connections whose node is unknown */
	uint32_t connections; /* number of connections between one agent and the controller */
	/* Number of agents that have sent nothing since the last end of a connection. */
	uint32_t n_silent;
};

/* Records that the process of this node has sent HELLO. */
void failure_detector_begin(struct members *members, struct member *m);
/* Records a heartbeat of m. Returns false if a newer heartbeat has already arrived. In that case
 * the old heartbeat shows only that m is alive. */
bool failure_detector_hear(struct run *run, struct member *m, const struct msg_heartbeat *h);
/* Records that `ended` more connections have ended. The nodes at their other ends are unknown. */
void failure_detector_ended(struct members *members, uint32_t ended);
/* Records that the node whose connections ended is now known. */
void failure_detector_hung_up(struct members *members);
/* Removes the nodes that have been silent for too long. slept_us: time for which the controller's
 * own loop was late. */
void failure_detector_check(struct members *members, int64_t slept_us);
/* Returns the median round trip of the most distant living node. */
int64_t failure_detector_farthest_us(const struct members *members);

#endif
