/* rates.h - the learning rate of each iteration of a run, its last iteration, and the end on
 * command. Iterations are those of the run, counted from 1; a run that begins with a checkpoint
 * (--from) continues the schedule of its training. */
#ifndef CONTROLLER_RUN_RATES_H
#define CONTROLLER_RUN_RATES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/config.h"

struct json_t;
struct outcome;
struct run;

/* The end on command (:finish N). The rate keeps the value of iteration `begin`, falls over the n
 * iterations after it, and the run ends. */
struct finish_order {
	uint64_t begin;
	uint32_t n;    /* 0: no end was ordered */
	uint64_t last; /* the run's last iteration: begin + n, or as set when it was resumed */
	/* Range of the last training losses as predicted when the end was ordered; 0: unknown */
	float low, high;
};

enum { RATES_TEXT = 150 }; /* room for the text of an order */

/* Applies --set to the hyperparameters of a new run, and makes their schedule end with the run.
 * `trained` is true if the hyperparameters are those of the checkpoint in --from. -EINVAL. */
int rates_begin(struct run *run, bool trained, struct error *err);
/* Returns the learning rate of an iteration. */
float rates_of(const struct run *run, uint64_t iteration);
/* Returns the hyperparameters of the newest commit, which a checkpoint records. */
struct hyperparameters rates_hyperparameters(const struct run *run);
/* Returns the run's last iteration; 0: it has none. */
uint64_t rates_last(const struct run *run);
/* Gives a resumed run the length of its command line. */
void rates_change_length(struct run *run);

/* Checks whether the end can be ordered now; n = 0 asks whether it can be taken back. Returns
 * false, and the reason in *o, if it cannot. */
bool rates_may_finish(const struct run *run, int64_t n, struct outcome *o);
/* Fills in the order that would take effect now, with its prediction. rates_may_finish must hold.
 */
void rates_plan_finish(const struct run *run, uint32_t n, struct finish_order *f);
/* Writes what the order does, in parts with a semicolon between them: "the rate falls from it102 to
 * it151; the run ends in 2.1 h; training loss 1.24 to 1.33 expected". */
void rates_finish_text(const struct run *run, const struct finish_order *f, char text[RATES_TEXT]);
/* After a commit: notes in the journal that the rate begins to fall, and how the end compares with
 * its prediction. */
void rates_turn(struct run *run);

/* Save and load the end of the schedule and the order, which a successor needs, as JSON. NULL: out
 * of memory, or, in rates_load, a record without them: the recorded hyperparameters hold. -EINVAL:
 * they are damaged. */
struct json_t *rates_save(const struct run *run);
int rates_load(struct run *run, const struct json_t *from);

#endif
