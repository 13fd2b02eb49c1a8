/* stall_detector.h - ends an iteration, a sum or a validation that has stalled. */
#ifndef CONTROLLER_ITERATION_STALL_DETECTOR_H
#define CONTROLLER_ITERATION_STALL_DETECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct iteration;
struct members;
struct run;
struct member;

struct stall_detector {
	int64_t look_us; /* time of the next look */
	uint64_t tasks;  /* tasks ended, as all agents reported by the last look */
	/* Successive looks at which all agents were at rest and no task had ended. */
	uint32_t rounds;
	uint64_t progress;  /* run.progress as it was at the last look */
	uint32_t hung;   /* successive looks since the step count last grew or data last moved */
	int64_t hung_us; /* time of the last look at which steps had grown or data had moved */
};

/* Takes a heartbeat, and records if the node has received much data. */
void stall_note_heartbeat(struct run *run, struct member *m);
void stall_turn(struct iteration *it);      /* while computing */
void stall_sums_turn(struct iteration *it); /* while summing */
/* stall_look: returns true if it is time to look, for phases other than computing and summing.
 * stall_for: returns true if nothing has advanced the run for limit_us. stall_hung: returns true if
 * nothing has advanced the run for the time of that many tasks in a row. */
bool stall_look(struct iteration *it);
bool stall_for(struct iteration *it, int64_t limit_us);
bool stall_hung(struct iteration *it, uint32_t tasks);
/* Treats the nodes that report work but complete none as dead. Returns false if no node reports
 * work. */
bool stall_drop_hanging(struct members *members);
/* Names, for the journal, at most three links that transfer nothing, nodes for which other nodes
 * wait, or nodes that report work. */
void stall_name_awaited(const struct members *members, char *out, size_t room);

#endif
