/* replay_state.h - the state of a recorded run at a cursor. Private to replay.c, which moves the
 * cursor, and replay_messages.c, which describes the state to consoles. */
#ifndef CONTROLLER_REPLAY_STATE_H
#define CONTROLLER_REPLAY_STATE_H

#include "controller/replay/replay.h"

enum { NOBODY = -1, TASKS_A_MESSAGE = 1024 };

/* A node at the cursor. */
struct cursor_node {
	/* index of the node's newest state in the recorded run's nodes; NOBODY: none */
	int64_t state;
	int64_t since_us;
	int stage;
	uint8_t slots;
	bool running;
	uint32_t queued;
	double forward_s, backward_s, loss_s; /* times that plans assume */
	struct gpu_figures gpu; /* the newest figures that were recorded since the node joined */
	/* the newest recorded times of the node's device since the node joined */
	struct device_time spent;
	uint64_t hash; /* hash of the weights after the last commit; 0: unknown */
	bool hash_agrees;
};

/* The tasks of the newest iteration, which are read when the cursor reaches that iteration */
struct replay_tasks {
	uint64_t iteration; /* number of the iteration; 0: none */
	bool is_read;
	/* The iteration is committed, so all of its events are past */
	bool all_past;
	/* Array of n task events; the cursor has passed the first `at` of them */
	struct msg_task_event *events;
	uint32_t n, at;
	/* for each microbatch: the node that computed the loss, at which the backward tasks end;
	 * -1: none yet */
	int32_t *loss_node;
	bool *done; /* for each microbatch */
	uint32_t n_done;
};

struct replay {
	const struct recorded_run *rec;
	int64_t cursor_us;
	size_t at; /* number of happenings that have been applied so far */
	/* Numbers of iterations, validations and notes up to the cursor */
	size_t n_iterations, n_validations, n_notes;
	size_t part; /* index of the part of the run (struct recorded_part) */
	enum run_phase phase;
	uint64_t iteration, committed;
	int64_t started_us;      /* start of the current iteration */
	int64_t plan;            /* index of the plan in force; NOBODY: none yet */
	uint64_t checkpoint;       /* iteration of the newest complete checkpoint; 0: none */
	struct checkpoint_failure checkpoint_failure;
	struct cursor_node *nodes; /* array of n_nodes */
	bool *active;              /* array of n_faults: the fault is active at the cursor */

	struct replay_tasks tasks;
	uint64_t hashes_of;      /* the commit to which the hashes in `nodes` belong */
	struct planned *planned; /* the plan with the index planned_of; NULL: not read yet */
	int64_t planned_of;

	/* Alerts with ids up to this id are acknowledged */
	uint64_t acknowledged_to;
	LIST(uint64_t) acknowledged;

	/* Run number in the newest snapshot. This number stays the same when a change of stages
	 * gives the record another run number. */
	uint64_t showing;
	double pace;
	uint64_t dropped;
};

/* Returns the recorded part to which the cursor's time belongs. */
const struct recorded_part *replay_part(const struct replay *r);
/* Returns true if the node is live or suspect at the cursor. */
bool replay_lives(const struct replay *r, const struct cursor_node *s);
/* Reads the plan in force into r->planned, unless r->planned is that plan already. */
int replay_plan(struct replay *r, struct error *err);
/* Emits the messages for a happening that has already been applied to the state. */
int replay_tell(struct replay *r, const struct happening *h, replay_emit emit, void *context,
		struct error *err);
/* Emits task events of the newest iteration, from index `from` up to but not including `to`. */
void replay_tell_tasks(const struct replay *r, uint32_t from, uint32_t to, replay_emit emit,
		       void *context);

#endif
