/* controller.h - the whole controller: its parts, from the lowest to the highest.
 *
 * Only the loop and the setup see all parts. Every other module receives only the part that it
 * works on. controller/run/run.h lists the parts, and which part may use which. One thread runs the
 * loop (loop.c), one worker thread plans (planner.h), and another plans ahead in idle time
 * (contingency.c). */
#ifndef CONTROLLER_CONTROLLER_H
#define CONTROLLER_CONTROLLER_H

#include "controller/iteration/iteration.h"
#include "controller/members/members.h"
#include "controller/monitor/monitor.h"
#include "controller/operator/command.h"
#include "controller/planning/planning.h"
#include "controller/run/run.h"
#include "controller/weights/backups.h"

struct controller {
	struct run run;
	struct members members;
	struct planning planning;
	struct backups backups;
	struct iteration iteration;
	struct operators operators;
	struct monitor *monitor; /* NULL: only consoles watch the run */
};

/* Gives each part pointers to the parts below it. Called once, before anything else. */
static inline void controller_join_parts(struct controller *c)
{
	c->members.run = c->planning.run = c->backups.run = c->iteration.run = c->operators.run =
		&c->run;
	c->planning.members = c->backups.members = c->iteration.members = c->operators.members =
		&c->members;
	c->backups.planning = c->iteration.planning = c->operators.planning = &c->planning;
	c->iteration.backups = c->operators.backups = &c->backups;
	c->operators.iteration = &c->iteration;
}

#endif
