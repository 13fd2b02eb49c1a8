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
	int64_t look_us; /* time of the detector's next check */
	uint64_t tasks;  /* number of ended tasks, as reported by all agents at the last check */
	/* Number of successive checks at which all agents were at rest and no task had ended */
	uint32_t rounds;
	uint64_t progress; /* value of run.progress at the last check */
	/* Number of successive checks at which run.progress had not grown and no data had moved */
	uint32_t hung;
	/* Time of the last check at which run.progress had grown or data had moved */
	int64_t hung_us;
};

/* Takes a heartbeat, and records whether the node has received much data. */
void stall_note_heartbeat(struct run *run, struct member *m);
/* Detects a stall in the phase of computing; called in each turn */
void stall_turn(struct iteration *it);
/* Detects a stall in the phase of sums; called in each turn */
void stall_sums_turn(struct iteration *it);
/* Three functions for the other phases. stall_look returns true if the next check is due. stall_for
 * returns true if nothing has advanced the run for limit_us. stall_hung returns true if nothing has
 * advanced the run for much longer than `tasks` tasks take one after another. */
bool stall_look(struct iteration *it);
bool stall_for(struct iteration *it, int64_t limit_us);
bool stall_hung(struct iteration *it, uint32_t tasks);
/* Treats nodes as dead if they report work but complete none. Returns false if no node reports
 * work. */
bool stall_drop_hanging(struct members *members);
/* Writes, for the journal, at most three reasons why the run waits: a link transfers nothing, a
 * node waits for another node, or a node reports work. */
void stall_name_awaited(const struct members *members, char *out, size_t room);

#endif
