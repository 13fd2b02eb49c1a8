/* evaluate.h - plans many candidates on several threads, and counts the work. Internal to
 * schedule/fleet/.
 */
#ifndef SCHEDULE_FLEET_EVALUATE_H
#define SCHEDULE_FLEET_EVALUATE_H

#include <stdbool.h>
#include <stdint.h>

#include "schedule/fleet/choose.h"

/* The work of a choice so far. Its unit is a simulated task, which takes about 0.1 microseconds on
 * one core. */
struct effort {
	const struct choose_request *q; /* borrowed */
	int64_t work, done;
	int64_t start_us;
	int64_t evaluated;            /* number of candidates that were planned */
	const struct candidate *best; /* the best candidate for reports, borrowed; NULL: none yet */
};

/* Evaluates n candidates, each with this number of evaluations. */
void effort_evaluate(struct effort *e, struct candidate *const *list, int n, int64_t evaluations);
/* Calls run(arg, i) for each i below n, on several threads. */
void effort_run(const struct effort *e, int n, void (*run)(void *arg, int i), void *arg);
/* Returns true if this share of the work is done, or if the time limit is reached. */
bool effort_is_over(const struct effort *e, double share);
/* Returns the work of planning this candidate with this number of evaluations. */
int64_t effort_of(const struct candidate *c, int64_t evaluations, const struct candidate_frame *f);

#endif
