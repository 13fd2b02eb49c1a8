/* recording.h - a recorded run, read from its store onto one timeline.
 *
 * The store has two clocks: tasks and moments carry the controller's monotonic one, commits'
 * companions (notes, validations, faults) the wall's. Moments carry both, and so translate. The
 * timeline is the first controller's monotonic clock; a controller that took the run over on
 * another machine counts from elsewhere, and is moved by what the walls say. Rows of one kind are
 * in the order of their time here, whatever their clocks said.
 *
 * A recording is what had been written when it was read; a run that goes on is read again.
 */
#ifndef CONTROLLER_RECORDING_H
#define CONTROLLER_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "controller/planning/planner.h"
#include "schedule/format/cluster.h"
#include "store/store.h"
#include "wire/msg.h"

enum happening_kind { /* at one instant they are told in this order */
	HAPPENED_COMMIT, HAPPENED_BELIEF, HAPPENED_NODE, HAPPENED_PLAN, HAPPENED_PHASE, HAPPENED_VALIDATION, HAPPENED_NOTE,
	HAPPENED_FAULT, HAPPENED_HEAL
};

struct happening {
	int64_t at_us;
	uint8_t kind;   /* enum happening_kind */
	uint32_t index; /* into the array of its kind; FAULT and HEAL: of faults */
};

struct recorded_node { /* a new state of a node */
	uint16_t node;
	int stage; /* -1 none yet */
	enum node_state state;
	double forward_s, backward_s, loss_s; /* measured; 0 not yet */
	int64_t pid; /* 0: not recorded */
	char why[96], device[128], host[64];
};

struct recorded_belief { /* a correction of what is planned against, seconds of the plan */
	uint16_t node;
	int32_t to;       /* -1: the node's times; else the delay of that link is forward_s */
	double forward_s, backward_s, loss_s;
};

struct recorded_plan {
	uint64_t epoch, iteration;
	uint32_t path_length;
	char *reason, *text; /* skippipe.plan/1 */
};

struct recorded_phase {
	enum run_phase phase;
	uint64_t iteration;
	uint64_t writer; /* which controller */
};

struct recording {
	struct store *store;         /* borrowed until recording_free */
	const struct store_run *run; /* the store's */
	struct cluster *cluster;     /* nodes pinned to the stages they had last */
	uint64_t parameters;
	uint64_t iterations_wanted;  /* 0: no end */
	double time_scale, unit_s;
	uint32_t path_length;        /* wanted last */
	uint32_t n_nodes;
	int *shard_of;               /* (n_nodes) */
	double baseline_s;           /* 0; whoever knows it may set it */

	size_t n_iterations, n_validations, n_notes, n_faults, n_plans, n_nodes_states, n_phases,
		n_beliefs;
	size_t room_iterations, room_validations, room_notes, room_faults, room_plans, room_nodes, room_phases,
		room_beliefs; /* of the arrays */
	struct msg_see_iteration *iterations;
	struct msg_see_validation *validations;
	struct msg_see_note *notes;
	struct msg_see_fault *faults; /* each as it was while active */
	struct recorded_plan *plans;
	struct recorded_node *nodes;  /* (n_nodes_states) */
	struct recorded_phase *phases;
	struct recorded_belief *beliefs;
	int64_t *shifts;              /* (n_iterations) tasks' clock + this = the timeline */

	size_t n_happenings, room_happenings;
	struct happening *happenings; /* by time */
	int64_t first_us, last_us;
	uint64_t last_moment;
};

/* The store is open, and stays the caller's. -ENODATA: nothing has happened in that run yet; else
 * the store's errors, -EINVAL where what it holds makes no sense. */
int recording_read(struct recording **out, struct store *store, struct error *err);
void recording_free(struct recording *r); /* NULL is allowed */
/* Has anything been written since? 0 or 1, or the store's errors. */
int recording_grew(const struct recording *r, struct error *err);

/* The task events of a committed iteration, on the timeline and in its order, for the caller to
 * free. An iteration without any has none. */
int recording_tasks(const struct recording *r, uint64_t iteration, struct msg_task_event **out,
		    uint32_t *n, struct error *err);
/* The cluster as it was planned against when the happenings before number `upto` were past
 * (cluster_free). NULL: out of memory. */
struct cluster *recording_cluster(const struct recording *r, size_t upto);
/* A plan with its trace (planned_free). */
int recording_planned(const struct recording *r, size_t plan, struct planned **out, struct error *err);

#endif
