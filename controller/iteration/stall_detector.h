/* stall_detector.h - ends an iteration, a sum or a validation in which nothing goes on any more. */
#ifndef CONTROLLER_ITERATION_STALL_DETECTOR_H
#define CONTROLLER_ITERATION_STALL_DETECTOR_H

#include <stdbool.h>
#include <stdint.h>

struct iteration;
struct members;
struct run;
struct member;

struct stall_detector {
	int64_t look_us; /* time of the next look */
	uint64_t tasks;  /* tasks ended, as all agents reported by the last look */
	uint32_t rounds; /* looks since then in which all were at rest */
	uint64_t steps;  /* controller.steps at the last look */
	uint32_t hung;   /* looks since steps grew or data moved, */
	int64_t hung_us; /* and when that was */
};

/* A heartbeat: notes whether the node receives data */
void stall_note_heartbeat(struct run *run, struct member *m);
void stall_turn(struct iteration *it);      /* while computing */
void stall_sums_turn(struct iteration *it); /* while summing */
/* In other phases: returns true if it is time to look. Then: returns true if nothing has brought
 * the run on for so long, or for much longer than so many tasks, one after another, take. */
bool stall_look(struct iteration *it);
bool stall_for(struct iteration *it, int64_t limit_us);
bool stall_hung(struct iteration *it, uint32_t tasks);
/* Treats the nodes as dead that report work and end none of it. Returns false if no node reports
 * work. */
bool stall_drop_hung(struct members *members);

#endif
