/* weights.h - the weights of each stage: checkpoints, standby copies, and restoring lost stages. */
#ifndef CONTROLLER_WEIGHTS_WEIGHTS_H
#define CONTROLLER_WEIGHTS_WEIGHTS_H

#include "controller/members/members.h"
#include "controller/planning/planning.h"
#include "controller/run/run.h"
#include "controller/weights/checkpoints.h"
#include "controller/weights/offsite.h"
#include "controller/weights/rebalance.h"
#include "controller/weights/restore.h"
#include "controller/weights/standbys.h"

struct weights {
	struct run *run;
	struct members *members;
	struct planning *planning;
	struct checkpointing saving;
	struct restoring restore;
	struct standbys standbys;
	struct rebalance rebalance;
	struct offsite *offsite; /* NULL: before controller_init */
	struct stall stall;               /* stages without a replica */
	double stage_squares[MSG_STAGES]; /* square norm of each stage's last committed gradient */
};

#endif
