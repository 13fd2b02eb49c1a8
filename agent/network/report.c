/* report.c - collects the events of tasks and sends them in batches. One message for each event
 * would load the controller. */
#include "agent/network/report.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"

enum {
	EVENTS_MOST = 4096, /* limit of events in one report */
	/* Longest time for which an event waits for other events in the same report. */
	REPORT_US = 5000
};

struct report {
	/* The n_noted events that are not reported yet. */
	struct msg_task_event noted[EVENTS_MOST];
	uint32_t n_noted;
	int64_t due_us; /* time at which the next report is sent */
	struct tell *tell;
	const struct run *run;
	const struct progress *progress;
};

struct report *report_new(struct tell *tell, const struct run *run, const struct progress *progress)
{
	struct report *r = alloc_new(sizeof(*r));

	r->due_us = INT64_MAX;
	r->tell = tell;
	r->run = run;
	r->progress = progress;
	return r;
}

void report_free(struct report *r)
{
	free(r);
}

void report_flush(struct report *r, int64_t now_us)
{
	struct msg m = { .type = MSG_REPORT };

	r->due_us = INT64_MAX;
	if (r->n_noted == 0)
		return;
	m.u.report.iteration = r->progress->iteration;
	m.u.report.n_events = r->n_noted;
	m.u.report.events = r->noted;
	r->n_noted = 0;
	tell_controller(r->tell, &m, POST_RELIABLE, now_us);
}

void report_event(struct report *r, const struct msg_task_event *e)
{
	if (r->n_noted == 0)
		r->due_us = e->at_us + REPORT_US;
	r->noted[r->n_noted] = *e;
	r->noted[r->n_noted].node = r->noted[r->n_noted].blocker_node = r->run->welcome.node;
	if (++r->n_noted == EVENTS_MOST)
		report_flush(r, e->at_us);
}

void report_turn(struct report *r, int64_t now_us)
{
	if (now_us >= r->due_us)
		report_flush(r, now_us);
}

int64_t report_deadline_us(const struct report *r)
{
	return r->due_us;
}

bool report_pending(const struct report *r)
{
	return r->n_noted > 0;
}

void report_void(struct report *r)
{
	r->n_noted = 0;
}
