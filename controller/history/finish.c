/* finish.c - the end of a run: said once, to everyone. */
#include "controller/history/finish.h"

#include <stdio.h>

#include "controller/controller.h"
#include "controller/history/record.h"
#include "controller/members/member.h"
#include "controller/operator/drill.h"
#include "controller/operator/journal.h"
#include "controller/operator/supervisor.h"

void set_phase(struct controller *c, enum run_phase phase)
{
	bool changed = c->phase != phase;

	c->phase = phase;
	c->stream.next_status_us = 0; /* tell consoles now */
	if (changed)
		record_phase(c);
}

bool run_is_done(const struct controller *c)
{
	return c->options.iterations && c->committed >= c->options.iterations;
}

void controller_finish(struct controller *c, int status, const char *why)
{
	struct msg stop = { .type = MSG_STOP };

	if (c->phase == PHASE_FINISHED)
		return;
	set_phase(c, PHASE_FINISHED);
	drill_save(c);
	c->ending.exit_status = status;
	c->ending.at_us = c->now_us;
	if (status != 0)
		fprintf(stderr, "skippipe: %s\n", why);
	note(c, status ? NOTE_ALERT : NOTE_EVENT, -1, 0, "the run ends: %.150s", why);
	snprintf(stop.u.stop.reason, sizeof(stop.u.stop.reason), "%.120s", why);
	if (c->ending.unrecorded)
		return; /* agents keep their weights, and wait for a controller that can write */
	if (status != 0 || !run_is_done(c)) /* else once all is written: a successor ends it as well */
		supervisor_end(c);
	for (uint32_t i = 0; i < c->n_members; i++)
		if (member_alive(&c->members[i]))
			member_send(c, &c->members[i], &stop);
}

void controller_closed(struct controller *c)
{
	if (c->phase == PHASE_FINISHED && !c->ending.unrecorded)
		supervisor_end(c);
}

void controller_stop(struct controller *c, const char *why)
{
	bool again = c->ending.stopping && c->phase == PHASE_PAUSED;

	if (c->phase == PHASE_FINISHED)
		return;
	if (again || c->phase == PHASE_GATHERING || c->phase == PHASE_STALLED) {
		controller_finish(c, 0, why);
		return;
	}
	c->ending.stopping = why;
	c->evaluation.wanted = false;
	set_phase(c, PHASE_PAUSED); /* where nothing is under way: the next turn ends it (iteration.c) */
}

void controller_unrecorded(struct controller *c, const char *why)
{
	c->ending.unrecorded = true;
	controller_finish(c, 1, why);
}
