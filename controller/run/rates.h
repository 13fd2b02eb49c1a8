/* rates.h - the learning rate of each iteration of a run, its last iteration, and the end on
 * command. Iterations are counted from 1, the first of this run. A run that begins with a
 * checkpoint (--from) continues the schedule of the checkpoint's training. */
#ifndef CONTROLLER_RUN_RATES_H
#define CONTROLLER_RUN_RATES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/config.h"

struct json_t;
struct outcome;
struct run;

/* The operator's order to end the run (:finish N). Iteration `begin` still has the full learning
 * rate. The rate falls over the following n iterations, and then the run ends. */
struct finish_order {
	uint64_t begin;
	uint32_t n; /* number of iterations with a falling rate; 0: no end was ordered */
	/* The run's last iteration: begin + n, or the last iteration set when the run was
	 * resumed */
	uint64_t last;
	/* Predicted range of the last training losses, computed when the end was ordered; 0:
	 * unknown */
	float low, high;
};

enum { RATES_TEXT = 150 }; /* bytes for the text that describes an order */

/* Applies the values of --set to the hyperparameters of a new run, and lets the learning rate's
 * schedule end together with the run. trained: the hyperparameters come from the checkpoint in
 * --from. -EINVAL: a value is not valid. */
int rates_begin(struct run *run, bool trained, struct error *err);
/* Returns the learning rate of an iteration. */
float rates_of(const struct run *run, uint64_t iteration);
/* Returns the hyperparameters after the newest commit, which a checkpoint records. */
struct hyperparameters rates_hyperparameters(const struct run *run);
/* Returns the run's last iteration; 0: the run has no last iteration. */
uint64_t rates_last(const struct run *run);
/* Sets the length of a resumed run to the length on its command line. */
void rates_change_length(struct run *run);

/* Returns true if the operator may order the end now or, for n = 0, withdraw the order. Otherwise
 * sets the reason in *o. */
bool rates_may_finish(const struct run *run, int64_t n, struct outcome *o);
/* Fills in the order that would take effect now, and its prediction. rates_may_finish must return
 * true. */
void rates_plan_finish(const struct run *run, uint32_t n, struct finish_order *f);
/* Describes the order in a text with semicolons between its parts: "the rate falls from it102 to
 * it151; the run ends in 2.1 h; training loss 1.24 to 1.33 expected". */
void rates_finish_text(const struct run *run, const struct finish_order *f, char text[RATES_TEXT]);
/* Called after a commit. Writes to the journal when the rate begins to fall. At the run's end,
 * writes how the final loss compares with the prediction. */
void rates_turn(struct run *run);

/* Save and load two things as JSON: the end of the learning rate's schedule, and the operator's
 * order to end the run. A restarted controller needs both. rates_save returns NULL if memory runs
 * out. from: NULL if the record has no such entry; the recorded hyperparameters then apply.
 * -EINVAL: the entry is damaged. */
struct json_t *rates_save(const struct run *run);
int rates_load(struct run *run, const struct json_t *from);

#endif
