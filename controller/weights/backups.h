/* backups.h - the backups of each stage's weights: checkpoints and standby copies. Lost stages are
 * restored from them. */
#ifndef CONTROLLER_WEIGHTS_BACKUPS_H
#define CONTROLLER_WEIGHTS_BACKUPS_H

#include "controller/members/members.h"
#include "controller/planning/planning.h"
#include "controller/run/run.h"
#include "controller/weights/checkpoints.h"
#include "controller/weights/offsite.h"
#include "controller/weights/rebalance.h"
#include "controller/weights/restore.h"
#include "controller/weights/standbys.h"

struct backups {
	struct run *run;
	struct members *members;
	struct planning *planning;
	struct checkpointing saving;
	struct restoring restore;
	struct standbys standbys;
	struct rebalance rebalance;
	struct offsite *offsite; /* NULL until controller_init */
	struct stall stall;      /* state while a stage has no replica */
	/* Squared norm of each stage's gradient in the last commit */
	double stage_squares[MSG_STAGES];
};

#endif
