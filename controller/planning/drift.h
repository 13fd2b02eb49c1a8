/* drift.h - corrects the times that plans assume to the measured ones. */
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
	/* The times of tasks, or of links, were corrected since the plan was last checked */
	bool compute_corrected, links_corrected;
	/* When a better plan was last requested because of small corrections */
	int64_t bettered_us;
	uint64_t asked_in;   /* the iteration during which a plan was last requested */
	uint32_t asked;      /* number of plans requested during that iteration */
};

/* Judges all links of m together. drift_link then judges each of them. */
void drift_links(struct planning *planning, struct member *m, const struct msg_links *l);
/* Judges one link, and corrects the delay that plans assume if the measured delay differs. */
void drift_link(struct planning *planning, struct observed_link *s);
/* Adds a task event to the node's measured compute time. If that time is far from the plan's,
 * corrects the plan's time before the iteration ends. began_us: start of the iteration; no task can
 * have started earlier. */
void drift_task(struct planning *planning, struct member *m, const struct msg_task_event *e,
		int64_t began_us);
/* Judges all nodes between two iterations, and asks for another plan if the corrections require
 * one. */
void drift_turn(struct planning *planning);
/* Before the first iteration, estimates how much agents that share a machine's cores, or a GPU,
 * slow one another down, from the tasks that overlap in the plan. */
void drift_guess_pace(struct planning *planning, const struct plan *p);

#endif
