/* record.h - writes the record of the run: the store, RUN-DIR/plans, and JSON lines on stdout.
 *
 * Functions that return an int return 0 or a negative errno with the reason in err. The others log
 * a failure and continue. */
#ifndef CONTROLLER_RUN_RECORD_H
#define CONTROLLER_RUN_RECORD_H

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

/* The newest losses, sent to a console that attaches. The store has all of them. */
struct curves {
	struct msg_see_iteration *history; /* (n_history) at least the newest KEPT_CURVE rows */
	uint32_t n_history;
	size_t room_history;
	struct msg_see_validation *validations; /* (n_validations) as history */
	uint32_t n_validations;
	size_t room_validations;
};

/* Creates the store and writes the run's row. */
int record_begin(struct run *run, struct error *err);
/* Writes the files of RUN-DIR beside the store. Also called when a run is resumed, because the
 * predecessor may have died before it wrote them. */
int record_folder(struct run *run, struct error *err);
/* Writes the cluster with the delays measured so far. */
int record_cluster(struct members *members, struct error *err);
/* Writes the links of the emulated network, if they are known. */
int record_emulated_links(struct members *members, struct error *err);
/* Returns the recorded links of the emulated network, which the caller frees; NULL: there are
 * none. */
struct link_table *record_emulated_links_again(const struct members *members);
void record_plan_file(struct run *run, uint64_t epoch, const char *text);
/* Records the plan that takes effect: in the store, as a file, and as an event. */
int record_plan(struct run *run, const struct planned *p, struct error *err);
int record_commit(struct iteration *it, const struct msg_commit *m,
		  const struct msg_see_iteration *see, struct error *err);
/* Records the node's new state. */
void record_node(struct run *run, const struct member *m);
/* Records the run's new phase. */
void record_phase(struct run *run);
/* Record a correction of the planner's estimates: a node's task times, a link's delay. */
void record_compute(struct run *run, uint16_t node);
void record_link(struct run *run, uint16_t from, uint16_t to);
/* Records that a link has failed or works again. */
void record_cut(struct run *run, const struct link_failure *k);
/* Records that the disk is full, the record locked, or that both are over. */
void record_disk(struct run *run);
/* Records a step of the recovery after a death: "rerun" (value: microbatches that are restarted),
 * "planned" (value: microseconds of planning), "started" (value: the first restarted microbatch
 * that started, at_us: when). */
void record_recovery(struct run *run, const char *step, int node, int64_t value, int64_t at_us);
void record_fault(struct run *run, const struct fault *f);
/* Prints the outcome of an act of --at as an event. number: its place among the acts, from 0. */
void record_scripted(struct run *run, uint32_t number, int status, const char *text);
void record_iteration(struct iteration *it, const struct msg_see_iteration *see);
void record_validation(struct run *run, const struct msg_see_validation *v);
/* Add a row to run->history.curves. Nothing is written. */
void record_keep(struct run *run, const struct msg_see_iteration *see);
void record_keep_validation(struct run *run, const struct msg_see_validation *v);
void record_hash(struct run *run, const struct member *m, uint8_t stage, uint64_t iteration,
		 uint64_t hash);
/* Returns true if a node reported this hash of the stage's weights after that commit. */
bool record_has_hash(const struct run *run, uint8_t stage, uint64_t iteration, uint64_t hash);
/* Deletes the hash that m reported, because it is not of the run's weights. To be called only
 * before those weights were used. */
void record_forget_hash(struct run *run, const struct member *m, uint8_t stage, uint64_t iteration,
			uint64_t hash);

#endif
