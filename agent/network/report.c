/* report.c - collects the events of tasks and sends them in batches.
 * A message for each event would load the controller with many small messages. */
#include "agent/network/report.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/state.h"
#include "base/alloc.h"

enum {
	EVENTS_MOST = 4096, /* limit of events in one report */
	/* Longest time for which an event waits for further events before a report. */
	REPORT_US = 5000
};

struct report {
	struct msg_task_event noted[EVENTS_MOST]; /* (n_noted) events that are not reported yet */
	uint32_t n_noted;
	int64_t due_us; /* time of the next report */
};

struct report *report_new(void)
{
	struct report *r = alloc_new(sizeof(*r));

	r->due_us = INT64_MAX;
	return r;
}

void report_free(struct report *r)
{
	free(r);
}

void report_flush(struct agent *a, int64_t now_us)
{
	struct msg m = { .type = MSG_REPORT };

	a->modules.report->due_us = INT64_MAX;
	if (a->modules.report->n_noted == 0)
		return;
	m.u.report.iteration = a->progress.iteration;
	m.u.report.n_events = a->modules.report->n_noted;
	m.u.report.events = a->modules.report->noted;
	a->modules.report->n_noted = 0;
	tell_controller(&a->tell, &m, POST_RELIABLE, now_us);
}

void report_event(struct agent *a, enum work_event type, const struct task *t, int64_t at_us,
		  float loss)
{
	if (a->modules.report->n_noted == 0)
		a->modules.report->due_us = at_us + REPORT_US;
	a->modules.report->noted[a->modules.report->n_noted++] = (struct msg_task_event){
		.type = (uint8_t)type,
		.kind = (uint8_t)t->kind,
		.node = a->run.welcome.node,
		.blocker_node = a->run.welcome.node,
		.microbatch = t->route.microbatch,
		.attempt = t->attempt,
		.blocker = type == WORK_ENDS ? QUEUE_NOBODY : t->blocker,
		.at_us = at_us,
		.arrived_us = t->arrived_us,
		.loss = type == WORK_ENDS && t->kind == TASK_LOSS ? loss : 0,
		.counted = type == WORK_ENDS && t->count,
		.slots = (uint8_t)queue_slots_held(a->iteration.queue),
	};
	if (a->modules.report->n_noted == EVENTS_MOST)
		report_flush(a, at_us);
}

void report_turn(struct agent *a, int64_t now_us)
{
	if (now_us >= a->modules.report->due_us)
		report_flush(a, now_us);
}

int64_t report_deadline_us(const struct agent *a)
{
	return a->modules.report->due_us;
}

bool report_pending(const struct agent *a)
{
	return a->modules.report->n_noted > 0;
}

void report_void(struct agent *a)
{
	a->modules.report->n_noted = 0;
}
