/* record.h - writes the record of the run: the store, RUN-DIR/plans, and JSON lines on stdout.
 *
 * Functions that return an int return 0 or a negative errno with the reason in err. The other
 * functions log a failure and continue. */
#ifndef CONTROLLER_RUN_RECORD_H
#define CONTROLLER_RUN_RECORD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEPT_CURVE = 4096 };

struct error;
struct checkpoint_failure;
struct fault;
struct json_t;
struct msg_see_iteration;
struct msg_see_validation;
struct run;
struct store_moment;

/* Sums over the iterations that this controller has committed. */
struct curve_totals {
	uint64_t iterations, collisions, rerun;
	double wait_s; /* total time that tasks waited, in plan seconds */
};

/* The newest losses, which are sent to a console that attaches. The store has all losses. */
struct curves {
	/* array of n_iterations: at least the newest KEPT_CURVE rows */
	struct msg_see_iteration *iterations;
	uint32_t n_iterations;
	size_t room_iterations;
	/* Array of n_validations: at least the newest KEPT_CURVE rows */
	struct msg_see_validation *validations;
	uint32_t n_validations;
	size_t room_validations;
	struct curve_totals totals;
};

/* Adds the time to an event, writes it to the JSON lines, and frees the event. NULL is ignored. */
void record_event(struct run *run, struct json_t *event);
/* Writes a row for replays, with the current iteration and time. Texts that are NULL are written as
 * "". */
void record_moment(struct run *run, struct store_moment *m);
/* Creates the store and writes the row that describes the run. */
int record_begin(struct run *run, struct error *err);
/* Writes the files of RUN-DIR other than the store. Also called when a run is resumed, because the
 * previous controller may have died before it wrote them. */
int record_folder(struct run *run, struct error *err);
/* Sets path to the name of the plan's file, which record_plan_file writes. */
void record_plan_path(const struct run *run, uint64_t epoch, char path[PATH_MAX]);
void record_plan_file(struct run *run, uint64_t epoch, const char *text);
/* Records the run's new phase. */
void record_phase(struct run *run);
/* Each of these functions records a correction of the planner's estimates: of a node's task times,
 * or of a link's delay. */
void record_compute(struct run *run, uint16_t node);
void record_link(struct run *run, uint16_t from, uint16_t to);
/* Records that the disk has become full, that the record has become locked, or that the run need
 * not wait any more. */
void record_disk(struct run *run);
/* Records a complete checkpoint (failure NULL) or a failed one. */
void record_checkpoint(struct run *run, uint64_t iteration,
		       const struct checkpoint_failure *failure);
/* Records that all checkpoints newer than this iteration's are void; 0: all checkpoints are
 * void. */
void record_newest_checkpoint(struct run *run, uint64_t iteration);
/* Records a step of the recovery after a death. "rerun": value is the number of microbatches that
 * are restarted. "planned": value is the microseconds of planning. "started": value is the first
 * restarted microbatch that started, and at_us is when it started. */
void record_recovery(struct run *run, const char *step, int node, int64_t value, int64_t at_us);
void record_fault(struct run *run, const struct fault *f);
/* Prints the outcome of an act of --at as an event. number: index of the act among those of --at,
 * from 0. */
void record_scripted(struct run *run, uint32_t number, int status, const char *text);
void record_validation(struct run *run, const struct msg_see_validation *v);
/* These functions add a row to run->record.curves, and write nothing to the store. */
void record_keep(struct run *run, const struct msg_see_iteration *see);
void record_keep_validation(struct run *run, const struct msg_see_validation *v);
void record_hash(struct run *run, uint16_t node, uint8_t stage, uint64_t iteration, uint64_t hash);
/* Returns true if a node reported this hash of the stage's weights after that commit. */
bool record_has_hash(const struct run *run, uint8_t stage, uint64_t iteration, uint64_t hash);
/* Deletes the hash that the node reported, because the node did not have the run's weights. May
 * only be called before any node has used the weights with this hash. */
void record_forget_hash(struct run *run, uint16_t node, uint8_t stage, uint64_t iteration,
			uint64_t hash);

#endif
