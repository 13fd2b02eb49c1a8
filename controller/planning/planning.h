/* planning.h - requests to the planner and what became of them. The plan in force is the run's
 * (run->plan). */
#ifndef CONTROLLER_PLANNING_PLANNING_H
#define CONTROLLER_PLANNING_PLANNING_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/members/members.h"
#include "controller/planning/drift.h"
#include "controller/planning/planner.h"
#include "controller/run.h"

struct contingency; /* contingency.c */

struct planning {
	struct run *run;
	struct members *members;
	struct planner *planner;
	struct planned *pending; /* takes effect with the next iteration; NULL: none */
	uint64_t wanted_id;      /* of the newest request that matters; 0: none under way */
	/* The request for a plan without the node that died last; 0: answered */
	uint64_t recovery_plan;
	int64_t replanned_us;            /* when a change last led to a request */
	bool refine_wanted;              /* once idle, ask for a better plan for the same members */
	struct contingency *contingency; /* plans made ahead; NULL: none are */
	struct drift drift;
	char reason[96]; /* of the newest request */
	/* What the journal last reported of a plan that is not the algorithm's own */
	char substitute[192];
};

#endif
