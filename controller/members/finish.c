/* finish.c - ends a run: announces the end once, to consoles, agents and the supervisor.
 *
 * A run can end for several reasons, in several parts of the controller. This module makes sure
 * that every end is the same: the last commit is on the agents' disks before they stop, and a
 * supervisor does not restart the controller of a finished run. */
#include "controller/members/finish.h"

#include <stdio.h>

#include "controller/members/member.h"
#include "controller/members/member_record.h"
#include "controller/members/members.h"
#include "controller/run/drill.h"
#include "controller/run/journal.h"
#include "controller/run/phase.h"
#include "controller/run/supervisor.h"

void controller_finish(struct members *members, int status, const char *why)
{
	struct msg stop = { .type = MSG_STOP };

	if (members->run->phase == PHASE_FINISHED)
		return;
	record_devices_event(members);
	set_phase(members->run, PHASE_FINISHED);
	drill_save(members->run);
	members->run->ending.exit_status = status;
	members->run->ending.at_us = members->run->now_us;
	if (status != 0)
		fprintf(stderr, "skippipe: %s\n", why);
	note(members->run, status ? NOTE_ALERT : NOTE_EVENT, -1, 0, "the run ends: %.150s", why);
	snprintf(stop.u.stop.reason, sizeof(stop.u.stop.reason), "%.120s", why);
	if (members->run->ending.unrecorded)
		/* agents keep their weights, and wait for a controller that can write its record */
		return;
	/* If all iterations of the run are done, controller_closed ends the supervisor after
	 * everything is written. If this controller dies before everything is written, the next
	 * controller ends the supervisor. */
	if (status != 0 || !run_is_done(members->run))
		supervisor_end(members->run);
	for (uint32_t i = 0; i < members->n; i++)
		if (member_alive(&members->list[i]))
			member_send(members->run, &members->list[i], &stop);
}

void controller_unrecorded(struct members *members, const char *why)
{
	members->run->ending.unrecorded = true;
	controller_finish(members, 1, why);
}
