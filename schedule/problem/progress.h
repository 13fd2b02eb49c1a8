/* progress.h - what a search owes its caller while it runs: limits kept, the best plan so far,
 * its history, and word of improvements. Internal to schedule/.
 */
#ifndef SCHEDULE_PROGRESS_H
#define SCHEDULE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "schedule/problem/problem.h"

struct progress {
	const struct problem *p;
	int64_t start_us, told_us;
	int64_t evaluations;
	double lower_bound_s;
	struct plan *plan;     /* the best so far, predicted and checked; NULL: none */
	struct solution untold; /* better than plan, if is_untold; empty until there is one */
	bool is_untold;
	int n_history;
	size_t room;
	double (*history)[2];
};

/* start_us: when the search began, by the request's clock. */
void progress_init(struct progress *g, const struct problem *p, int64_t start_us);
void progress_fini(struct progress *g);

/* Time, evaluations or patience have run out. */
bool progress_over(const struct progress *g);
/* Only whether time has, or the caller has cancelled. */
bool progress_late(const struct progress *g);

/* A better solution: noted in the history; simulated, checked and told to the caller when it is
 * the first, or when the last word is some time ago. */
int progress_note(struct progress *g, const struct solution *s, double iteration_s,
		  struct error *err);
/* Now and then: what was noted too soon after the last word is told. */
int progress_tell(struct progress *g, struct error *err);
/* Makes sure the plan is that of s, the search's final answer. */
int progress_finish(struct progress *g, const struct solution *s, struct error *err);
/* Hands the plan over (NULL when there is none), with its search record filled in. */
int progress_take(struct progress *g, struct plan **out, struct error *err);

#endif
