#include "controller/tests/replayed.h"

#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"

void replayed_see(void *context, struct msg *m)
{
	struct seen *s = context;

	/* every emitted message must be one that can be encoded and sent */
	assert_true(msg_size(m) > 0);
	switch (m->type) {
	case MSG_SEE_RUN:
		if (s->number != m->u.see_run.run) /* a console drops its picture of the run */
			s->plan_epoch = s->plan_routes = s->plan_tasks = 0;
		s->number = m->u.see_run.run;
		s->run = m->u.see_run;
		s->run.run = 0;
		s->n_iterations = s->n_validations = s->n_notes = s->n_active = s->n_events = 0;
		memset(s->events, 0, sizeof(s->events));
		s->events_of = 0;
		break;
	case MSG_SEE_STATUS: s->status = m->u.see_status; break;
	case MSG_SEE_NODE: s->nodes[m->u.see_node.node] = m->u.see_node; break;
	case MSG_SEE_PLAN:
		s->plan_epoch = m->u.see_plan.epoch;
		s->plan_routes = m->u.see_plan.n_routes;
		s->plan_tasks = m->u.see_plan.n_planned;
		s->plan_end_us = 0;
		for (uint32_t i = 0; i < s->plan_tasks; i++)
			if (m->u.see_plan.planned[i].at_us > s->plan_end_us)
				s->plan_end_us = m->u.see_plan.planned[i].at_us;
		break;
	case MSG_SEE_ITERATION: s->iterations[s->n_iterations++] = m->u.see_iteration; break;
	case MSG_SEE_VALIDATION: s->validations[s->n_validations++] = m->u.see_validation; break;
	case MSG_SEE_NOTE: s->notes[s->n_notes++] = m->u.see_note; break;
	case MSG_SEE_FAULT: s->n_active += m->u.see_fault.active ? 1u : UINT32_MAX; break;
	case MSG_SEE_TASKS:
		if (s->events_of != m->u.see_tasks.iteration) {
			memset(s->events, 0, sizeof(s->events));
			s->n_events = 0;
		}
		s->events_of = m->u.see_tasks.iteration;
		for (uint32_t i = 0; i < m->u.see_tasks.n_events; i++)
			s->events[s->n_events++] = m->u.see_tasks.events[i];
		break;
	case MSG_SEE_SYNCED: s->snapshots++; break;
	default: fail_msg("unexpected %s", msg_name(m->type));
	}
}

static size_t put(const struct msg *m, unsigned char *out)
{
	long n = msg_encode(m, out, msg_size(m));

	assert_true(n > 0);
	return (size_t)n;
}

/* Writes the whole state as bytes. Structs cannot be compared directly, because their padding may
 * differ. */
static size_t written(const struct seen *s, unsigned char *out)
{
	struct msg m = { .type = MSG_SEE_RUN, .u.see_run = s->run };
	size_t n = put(&m, out);

	m = (struct msg){ .type = MSG_SEE_STATUS, .u.see_status = s->status };
	n += put(&m, out + n);
	for (int i = 0; i < RECORDED_NODES; i++) {
		m = (struct msg){ .type = MSG_SEE_NODE, .u.see_node = s->nodes[i] };
		n += put(&m, out + n);
	}
	for (uint32_t i = 0; i < s->n_iterations; i++) {
		m = (struct msg){ .type = MSG_SEE_ITERATION, .u.see_iteration = s->iterations[i] };
		n += put(&m, out + n);
	}
	for (uint32_t i = 0; i < s->n_validations; i++) {
		m = (struct msg){ .type = MSG_SEE_VALIDATION,
				  .u.see_validation = s->validations[i] };
		n += put(&m, out + n);
	}
	for (uint32_t i = 0; i < s->n_notes; i++) {
		m = (struct msg){ .type = MSG_SEE_NOTE, .u.see_note = s->notes[i] };
		n += put(&m, out + n);
	}
	m = (struct msg){ .type = MSG_SEE_TASKS,
			  .u.see_tasks = { s->events_of, 0, s->n_events, s->events } };
	n += put(&m, out + n);
	out[n++] = (unsigned char)s->plan_epoch;
	out[n++] = (unsigned char)s->plan_routes;
	out[n++] = (unsigned char)s->n_active;
	return n;
}

void replayed_assert_same(const struct seen *a, const struct seen *b)
{
	static unsigned char x[1 << 16], y[1 << 16];
	size_t n = written(a, x);

	assert_int_equal(written(b, y), n);
	assert_memory_equal(x, y, n);
}

bool replayed_same_event(const struct msg_task_event *a, const struct msg_task_event *b)
{
	return a->type == b->type && a->kind == b->kind && a->node == b->node &&
	       a->at_us == b->at_us && a->microbatch == b->microbatch && a->blocker == b->blocker;
}

void replayed_begin(struct replayed *g, const struct recorded_options *o)
{
	static const struct recorded_options whole = { 0 };

	memset(g, 0, sizeof(*g));
	strcpy(g->folder, "/tmp/skippipe-replay-XXXXXX");
	recorded_make(g->folder, o ? o : &whole, &g->writer);
	assert_int_equal(store_open(&g->store, g->folder, NULL), 0);
	assert_int_equal(recorded_run_read(&g->recorded, g->store, NULL), 0);
	assert_int_equal(replay_new(&g->replay, g->recorded, NULL), 0);
}

void replayed_end(struct replayed *g)
{
	replay_free(g->replay);
	recorded_run_free(g->recorded);
	store_close(g->store);
	store_close(g->writer);
	recorded_remove(g->folder);
}

struct seen *replayed_at(struct replay *r, int64_t ms)
{
	struct seen *s = calloc(1, sizeof(*s));

	assert_int_equal(replay_seek(r, ms * 1000, NULL), 0);
	assert_int_equal(replay_snapshot(r, replayed_see, s, NULL), 0);
	assert_int_equal(s->snapshots, 1);
	return s;
}
