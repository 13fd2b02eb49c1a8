#include "agent/network/report.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/state.h"
#include "base/array.h"

enum {
	EVENTS_MOST = 4096, /* of one report */
	REPORT_US = 5000    /* that an event waits for others; it adds so much to what the controller hears */
};

struct report {
	struct msg_task_event noted[EVENTS_MOST]; /* (n_noted) not yet told */
	uint32_t n_noted;
	int64_t due_us; /* to tell them */
	struct msg_task_event *happened; /* (n_happened) in this iteration */
	uint32_t n_happened;
	size_t room_happened;
	bool incomplete;
};

int report_new(struct report **out)
{
	struct report *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->due_us = INT64_MAX;
	*out = r;
	return 0;
}

void report_free(struct report *r)
{
	if (r)
		free(r->happened);
	free(r);
}

void report_flush(struct agent *a, int64_t now_us)
{
	struct msg m = { .type = MSG_REPORT };

	a->report->due_us = INT64_MAX;
	if (a->report->n_noted == 0)
		return;
	m.u.report.iteration = a->iteration;
	m.u.report.n_events = a->report->n_noted;
	m.u.report.events = a->report->noted;
	a->report->n_noted = 0;
	tell_controller(a, &m, POST_RELIABLE, now_us);
}

static void remember_event(struct agent *a, const struct msg_task_event *e)
{
	struct report *r = a->report;

	if (array_grow(&r->happened, &r->room_happened, r->n_happened + 1, sizeof(*r->happened)))
		r->happened[r->n_happened++] = *e;
	else
		r->incomplete = true;
}

void report_forget(struct agent *a)
{
	a->report->n_happened = 0;
	a->report->incomplete = false;
}

bool report_recall(struct agent *a, const struct msg_recall *r, int64_t now_us)
{
	struct msg m = { .type = MSG_REPORT };
	uint32_t at = 0;

	if (r->iteration != a->iteration || a->report->incomplete)
		return false;
	a->report->n_noted = 0; /* they are among them */
	a->report->due_us = INT64_MAX;
	m.u.report.iteration = a->iteration;
	m.u.report.whole = 1;
	do {
		uint32_t left = a->report->n_happened - at;

		m.u.report.n_events = left < EVENTS_MOST ? left : EVENTS_MOST;
		m.u.report.events = a->report->happened + at;
		tell_controller(a, &m, POST_RELIABLE, now_us);
		at += m.u.report.n_events;
		m.u.report.whole = 0;
	} while (at < a->report->n_happened);
	return true;
}

void report_event(struct agent *a, enum work_event type, const struct task *t, int64_t at_us,
		  float loss)
{
	if (a->report->n_noted == 0)
		a->report->due_us = at_us + REPORT_US;
	a->report->noted[a->report->n_noted++] = (struct msg_task_event) {
		.type = (uint8_t)type,
		.kind = (uint8_t)t->kind,
		.node = a->run.node,
		.blocker_node = a->run.node,
		.microbatch = t->route.microbatch,
		.attempt = t->attempt,
		.blocker = type == WORK_ENDS ? QUEUE_NOBODY : t->blocker,
		.at_us = at_us,
		.arrived_us = t->arrived_us,
		.loss = type == WORK_ENDS && t->kind == WORK_LOSS ? loss : 0,
		.counted = type == WORK_ENDS && t->count,
		.slots = (uint8_t)queue_slots_held(a->queue),
	};
	remember_event(a, &a->report->noted[a->report->n_noted - 1]);
	if (a->report->n_noted == EVENTS_MOST)
		report_flush(a, at_us);
}

void report_turn(struct agent *a, int64_t now_us)
{
	if (now_us >= a->report->due_us)
		report_flush(a, now_us);
}

int64_t report_deadline_us(const struct agent *a)
{
	return a->report->due_us;
}

bool report_pending(const struct agent *a)
{
	return a->report->n_noted > 0;
}

void report_void(struct agent *a)
{
	a->report->n_noted = 0;
}

bool report_incomplete(const struct agent *a)
{
	return a->report->incomplete;
}
