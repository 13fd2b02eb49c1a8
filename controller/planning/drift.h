/* drift.h - replaces the times that plans assume by measured times. */
#ifndef CONTROLLER_PLANNING_DRIFT_H
#define CONTROLLER_PLANNING_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

struct planning;
struct member;
struct msg_links;
struct msg_task_event;
struct plan;
struct observed_link;

struct drift {
	/* Times of tasks, or of links, were corrected since the plan's time was last predicted */
	bool compute_corrected, links_corrected;
	/* Time of the newest request for a better plan that small corrections have caused */
	int64_t bettered_us;
	uint64_t asked_in;   /* the iteration during which a plan was last requested */
	uint32_t asked;      /* number of plans requested during that iteration */
};

/* Corrects all links of m together if they have become slow together. drift_link then corrects
 * each link by itself. */
void drift_links(struct planning *planning, struct member *m, const struct msg_links *l);
/* Compares the measured delay of one link with the delay that plans assume. Corrects the delay
 * that plans assume if the two differ. */
void drift_link(struct planning *planning, struct observed_link *s);
/* Adds a task event to the node's measured compute time. If that time is far from the planned time,
 * corrects the planned time before the iteration ends. began_us: start of the iteration; no task
 * can have started earlier. */
void drift_task(struct planning *planning, struct member *m, const struct msg_task_event *e,
		int64_t began_us);
/* Judges all nodes between two iterations. Requests another plan if the corrections require
 * one. */
void drift_turn(struct planning *planning);
/* Estimates, before the first iteration, how much agents that share a machine's cores or a GPU slow
 * one another down. The estimate follows from the tasks that overlap in the plan. */
void drift_guess_pace(struct planning *planning, const struct plan *p);

#endif
