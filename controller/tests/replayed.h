/* replayed.h - for tests: replays the handmade run of recorded.h for a console. */
#ifndef CONTROLLER_TESTS_REPLAYED_H
#define CONTROLLER_TESTS_REPLAYED_H

#include "controller/replay/replay.h"
#include "controller/tests/recorded.h"

enum { REPLAYED_EVENTS = 3 * RECORDED_TASKS, REPLAYED_FIRST_MS = 1000, REPLAYED_LAST_MS = 5600 };

/* The knowledge of a console after the messages so far. */
struct seen {
	struct msg_see_run run; /* the description of the run, but with run number 0 */
	uint64_t number;
	struct msg_see_status status;
	struct msg_see_node nodes[RECORDED_NODES];
	uint64_t plan_epoch;
	uint32_t plan_routes, plan_tasks;
	int64_t plan_end_us;
	uint32_t n_iterations, n_validations, n_notes, n_active, n_events;
	struct msg_see_iteration iterations[8];
	struct msg_see_validation validations[8];
	struct msg_see_note notes[8];
	uint64_t events_of;
	struct msg_task_event events[REPLAYED_EVENTS];
	uint32_t snapshots;
};

struct replayed {
	char folder[64];
	struct store *writer, *store;
	struct recorded_run *recorded;
	struct replay *replay;
};

/* Records the handmade run and opens a replay of it. o: options of the recording; NULL: records the
 * whole run. */
void replayed_begin(struct replayed *g, const struct recorded_options *o);
void replayed_end(struct replayed *g);
/* Takes a message that the console would get. context: struct seen. */
void replayed_see(void *context, struct msg *m);
/* Returns the state at a time, which does not depend on the cursor's earlier position. The caller
 * frees it. */
struct seen *replayed_at(struct replay *r, int64_t ms);
void replayed_assert_same(const struct seen *a, const struct seen *b);
bool replayed_same_event(const struct msg_task_event *a, const struct msg_task_event *b);

#endif
