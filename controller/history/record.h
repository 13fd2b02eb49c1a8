/* record.h - the run's memory: the store, RUN-DIR/plans, and JSON lines on stdout. */
#ifndef CONTROLLER_HISTORY_RECORD_H
#define CONTROLLER_HISTORY_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEPT_CURVE = 4096 };

struct iteration;
struct members;
struct run;
struct link_failure;
struct error;
struct fault;
struct member;
struct msg_commit;
struct msg_see_iteration;
struct msg_see_validation;
struct planned;

/* What consoles are told when they come; the store has all of it. */
struct curves {
	struct msg_see_iteration *history; /* the newest KEPT_CURVE at least */
	uint32_t n_history;
	size_t room_history;
	struct msg_see_validation *validations; /* likewise */
	uint32_t n_validations;
	size_t room_validations;
};

int record_begin(struct run *r_, struct error *err);
/* What RUN-DIR holds beside the store: a predecessor may have died before it was written. */
int record_folder(struct run *run, struct error *err);
int record_cluster(struct members *members, struct error *err); /* as measured by now */
void record_plan_file(struct run *run, uint64_t epoch, const char *text);
/* The plan is in force: durable, as an event, and as a file. */
int record_plan(struct run *run, const struct planned *p, struct error *err);
int record_commit(struct iteration *it, const struct msg_commit *m, double sum_squares,
		  const struct msg_see_iteration *see, struct error *err);
void record_node(struct run *run, const struct member *m); /* its state is a new one */
void record_phase(struct run *run);
/* What is planned against was corrected: a node's times, a link's delay. */
void record_compute(struct run *run, uint16_t node);
void record_link(struct run *run, uint16_t from, uint16_t to);
void record_cut(struct run *run, const struct link_failure *k); /* it is cut, or there again */
void record_disk(struct run *run);                              /* full, or room again */
/* What a death led to, step by step: "rerun" (value: microbatches told to run again), "planned"
 * (value: microseconds the planner took), "started" (value: the first of them to start, at_us).
 */
void record_recovery(struct run *run, const char *step, int node, int64_t value, int64_t at_us);
void record_fault(struct run *run, const struct fault *f);
void record_iteration(struct iteration *it, const struct msg_see_iteration *see);
void record_validation(struct run *run, const struct msg_see_validation *v);
/* Into the curves that consoles are shown; nothing is written. */
void record_keep(struct run *run, const struct msg_see_iteration *see);
void record_keep_validation(struct run *run, const struct msg_see_validation *v);
void record_hash(struct run *run, const struct member *m, uint8_t stage, uint64_t iteration,
		 uint64_t hash);
/* Whether anybody told that hash of the stage's weights after that commit. */
bool record_has_hash(const struct run *run, uint8_t stage, uint64_t iteration, uint64_t hash);
/* What it told is not of the run's weights, and nothing was made of them. */
void record_forget_hash(struct run *run, const struct member *m, uint8_t stage, uint64_t iteration,
			uint64_t hash);

#endif
