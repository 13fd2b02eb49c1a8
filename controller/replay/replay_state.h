/* replay_state.h - the fold of a recording up to a cursor. Private to replay.c (which moves it) and
 * replay_messages.c (which says it). */
#ifndef CONTROLLER_REPLAY_STATE_H
#define CONTROLLER_REPLAY_STATE_H

#include "controller/replay/replay.h"

enum { NOBODY = -1, TASKS_A_MESSAGE = 1024 };

/* A node as of the cursor. */
struct stand {
	int64_t state;      /* index of its newest recorded_node; NOBODY: none */
	int64_t since_us;
	int stage;
	uint8_t slots;
	bool running;
	uint32_t queued;
	double forward_s, backward_s, loss_s; /* as planned against */
	uint64_t hash;      /* after the last commit; 0 not known */
	bool hash_agrees;
};

struct replay {
	const struct recording *rec;
	int64_t cursor_us;
	size_t at;               /* happenings before this one are behind the cursor */
	size_t n_iterations, n_validations, n_notes; /* behind the cursor */
	enum run_phase phase;
	uint64_t iteration, committed, writer;
	int64_t started_us;      /* the iteration under way */
	int64_t plan;            /* in force: index; NOBODY: none yet */
	struct stand *stands;    /* (n_nodes) */
	bool *active;            /* (n_faults) */

	/* Tasks of the iteration that began last, read when somebody looks. */
	uint64_t events_of;      /* iteration; 0 none */
	bool events_read, closed; /* closed: committed, so all of them are behind the cursor */
	struct msg_task_event *events;
	uint32_t n_events, at_event;
	/* (microbatches) where its loss was taken: it ends there; -1 not yet */
	int32_t *loss_node;
	bool *done;              /* (microbatches) */
	uint32_t n_done;

	uint64_t hashes_of;      /* the commit whose hashes stands hold */
	struct planned *planned; /* of planned_of */
	int64_t planned_of;

	uint64_t acknowledged_to; /* ids up to it, and those in the list */
	uint64_t *acknowledged;
	size_t n_acknowledged, room_acknowledged;

	uint64_t showing;        /* rises with every snapshot */
	double pace;
	uint64_t dropped;
};

bool replay_lives(const struct replay *r, const struct stand *s);
/* Reads the plan in force, once. */
int replay_plan(struct replay *r, struct error *err);
/* One happening, already folded, in messages. */
int replay_tell(struct replay *r, const struct happening *h, replay_emit emit, void *context,
		struct error *err);
/* Events [from, to) of the iteration that began last. */
void replay_tell_tasks(const struct replay *r, uint32_t from, uint32_t to, replay_emit emit, void *context);

#endif
