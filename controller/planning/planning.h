/* planning.h - the state of the requests to the planner. The plan in force is run->plan. */
#ifndef CONTROLLER_PLANNING_PLANNING_H
#define CONTROLLER_PLANNING_PLANNING_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/members/members.h"
#include "controller/planning/drift.h"
#include "controller/planning/phase_targets.h"
#include "controller/planning/planner.h"
#include "controller/planning/preparation.h"
#include "controller/planning/spares.h"
#include "controller/run/run.h"

struct contingency;  /* contingency.c defines it */
struct stage_choice; /* stage_choice.c defines it */

struct planning {
	struct run *run;
	struct members *members;
	struct planner *planner;
	struct planned *pending; /* plan that takes effect with the next iteration; NULL: none */
	/* Number of the newest request for the run; 0: the newest request is answered */
	uint64_t wanted_id;
	/* Number of the request for a plan without the node that died last; 0: this request is
	 * answered */
	uint64_t recovery_plan;
	int64_t replanned_us; /* time of the newest request that a change caused */
	/* After the first answer, the planner will be asked for a better plan */
	bool refine_wanted;
	/* The newest request only asks for a better plan, so the plan in force can be kept */
	bool only_if_better;
	struct stage_choice *stage_choice; /* the choice of stages that is being made; NULL: none */
	/* The controller chose the stages and their nodes, so the first plan keeps them. */
	bool has_chosen_stages;
	enum spares_kind spares;         /* the spares that a plan for the newest request may use */
	struct contingency *contingency; /* plans made ahead; NULL: off */
	struct drift drift;
	struct preparation preparation;
	struct phase_targets targets;
	char reason[96]; /* reason for the newest request */
	/* the substitute algorithm that the journal last reported; "": the plan is by the run's own
	 * algorithm */
	char substitute[192];
};

#endif
