/* progress.h - serves the caller of a search while the search runs: checks its limits, holds the
 * best plan so far with its history, and announces improvements. Internal to schedule/. */
#ifndef SCHEDULE_PROGRESS_H
#define SCHEDULE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "schedule/problem/problem.h"

struct progress {
	const struct problem *p;
	int64_t start_us, announced_us;
	int64_t evaluations;
	double lower_bound_s;
	/* The best plan that was announced, predicted and checked; NULL: none */
	struct plan *plan;
	/* With is_waiting: a solution better than `plan`; empty until first needed */
	struct solution waiting;
	/* The solution `waiting` will be announced when enough time has passed */
	bool is_waiting;
	int n_history;
	size_t room;
	double (*history)[2];
};

/* start_us: time at which the search began, on the request's clock. */
void progress_init(struct progress *g, const struct problem *p, int64_t start_us);
void progress_fini(struct progress *g);

/* Returns true if time or evaluations have run out, or the caller has cancelled. */
bool progress_over(const struct progress *g);
/* Returns true if time has run out or the caller has cancelled. */
bool progress_late(const struct progress *g);

/* Adds a better solution to the history. Also simulates, checks and announces the solution if it
 * is the first, or if the newest announcement was some time ago. If not, keeps the solution for
 * progress_announce. */
int progress_note(struct progress *g, const struct solution *s, double iteration_s,
		  struct error *err);
/* Announces the solution that progress_note has kept back, if enough time has passed. The search
 * calls this from time to time. */
int progress_announce(struct progress *g, struct error *err);
/* Makes s the plan that is the search's final answer. */
int progress_finish(struct progress *g, const struct solution *s, struct error *err);
/* Gives the plan to the caller, with the history of the search. -ECANCELED: there is no plan. */
int progress_take(struct progress *g, struct plan **out, struct error *err);

#endif
