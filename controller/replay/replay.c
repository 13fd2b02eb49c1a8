/* replay.c - moves a cursor over a recorded run and keeps the state at the cursor.
 *
 * A recorded run is a list of happenings in the order of time. The state at a time is the result of
 * applying all happenings up to that time. To move forward, the replay applies the happenings after
 * the cursor. To move back, the replay starts again from the first happening. The tasks of an
 * iteration are read from the store when the cursor reaches the iteration. */
#include "controller/replay/replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "controller/replay/replay_state.h"

/* ---- applying happenings ---- */

const struct recorded_part *replay_part(const struct replay *r)
{
	return &r->rec->parts.list[r->part];
}

static void forget_tasks(struct replay *r)
{
	free(r->tasks.events);
	r->tasks.events = NULL;
	r->tasks.n = r->tasks.at = 0;
	r->tasks.iteration = 0;
	r->tasks.is_read = r->tasks.all_past = false;
	r->tasks.n_done = 0;
	for (uint32_t i = 0; i < r->rec->n_microbatches; i++) {
		r->tasks.done[i] = false;
		r->tasks.loss_node[i] = -1;
	}
	for (uint32_t i = 0; i < r->rec->n_nodes; i++) {
		r->nodes[i].slots = 0;
		r->nodes[i].running = false;
		r->nodes[i].queued = 0;
	}
}

static void forget_nodes(struct replay *r)
{
	for (uint32_t i = 0; i < r->rec->n_nodes; i++) {
		const struct cluster_node *n = &replay_part(r)->cluster->nodes[i];

		r->nodes[i] = (struct cursor_node){ .state = NOBODY, .since_us = r->rec->first_us,
					       .stage = n->stage, .forward_s = n->forward_s,
					       .backward_s = n->backward_s, .loss_s = n->loss_s,
					       .hash_agrees = true };
	}
	r->hashes_of = 0;
}

static void rewind_all(struct replay *r)
{
	r->at = r->n_iterations = r->n_validations = r->n_notes = 0;
	r->phase = PHASE_GATHERING;
	r->iteration = 1;
	r->committed = 0;
	r->part = 0;
	r->started_us = 0;
	r->plan = NOBODY;
	r->checkpoint = 0;
	r->checkpoint_failure = (struct checkpoint_failure){ .node = -1 };
	r->cursor_us = r->rec->first_us;
	memset(r->active, 0, r->rec->faults.n * sizeof(*r->active));
	forget_nodes(r);
	forget_tasks(r);
}

/* Returns true if PHASE_COMPUTING after the phase `before` continues the same iteration. */
static bool still_under_way(enum run_phase before)
{
	return before == PHASE_COMPUTING || before == PHASE_REDUCING || before == PHASE_STALLED;
}

/* Applies the start of another controller, which knows no nodes at first. If the controller begins
 * a new part of the run, drops the plan, because it was made for the stages of the former part. */
static void fold_controller(struct replay *r, size_t part)
{
	if (part != r->part)
		r->plan = NOBODY;
	r->part = part;
	r->checkpoint_failure = (struct checkpoint_failure){ .node = -1 };
	forget_nodes(r);
	forget_tasks(r);
}

static void fold_phase(struct replay *r, const struct happening *h)
{
	const struct recorded_phase *p = &r->rec->phases.list[h->index];

	if (p->phase == PHASE_COMPUTING && !still_under_way(r->phase)) {
		forget_tasks(r);
		r->started_us = h->at_us;
		r->tasks.iteration = p->iteration;
	}
	r->phase = p->phase;
	r->iteration = p->iteration;
}

static void fold_node(struct replay *r, const struct happening *h)
{
	const struct recorded_node *n = &r->rec->nodes.list[h->index];
	struct cursor_node *s = &r->nodes[n->node];

	s->state = h->index;
	s->since_us = h->at_us;
	if (n->stage >= 0)
		s->stage = n->stage;
	if (node_presence(n->state) != NODE_TAKES_PART)
		s->gpu = (struct gpu_figures){ 0 }, s->spent = (struct device_time){ { 0 } };
}

static void fold_belief(struct replay *r, const struct recorded_belief *b)
{
	struct cursor_node *s = &r->nodes[b->node];

	if (b->to >= 0)
		return; /* recorded_run_cluster applies corrections of links later */
	s->forward_s = b->forward_s;
	s->backward_s = b->backward_s;
	s->loss_s = b->loss_s;
}

static void fold_checkpoint(struct replay *r, const struct recorded_checkpoint *c)
{
	if (c->event != CHECKPOINT_FAILS)
		r->checkpoint = c->iteration;
	if (c->event != CHECKPOINT_IS_NEWEST)
		r->checkpoint_failure = c->failure;
}

/* Applies a happening to the state. */
static void fold_happening(struct replay *r, const struct happening *h)
{
	switch ((enum happening_kind)h->kind) {
	case HAPPENED_CONTROLLER:
		fold_controller(r, h->index);
		break;
	case HAPPENED_COMMIT:
		r->committed = r->rec->iterations.list[h->index].iteration;
		r->n_iterations = h->index + 1;
		r->tasks.all_past = r->tasks.all_past || r->committed == r->tasks.iteration;
		break;
	case HAPPENED_BELIEF:
		fold_belief(r, &r->rec->beliefs.list[h->index]);
		break;
	case HAPPENED_NODE:
		fold_node(r, h);
		break;
	case HAPPENED_GPU:
		r->nodes[r->rec->gpus.list[h->index].node].gpu =
			r->rec->gpus.list[h->index].figures;
		break;
	case HAPPENED_DEVICE:
		r->nodes[r->rec->devices.list[h->index].node].spent =
			r->rec->devices.list[h->index].spent;
		break;
	case HAPPENED_PLAN:
		r->plan = h->index;
		break;
	case HAPPENED_PHASE:
		fold_phase(r, h);
		break;
	case HAPPENED_CHECKPOINT:
		fold_checkpoint(r, &r->rec->checkpoints.list[h->index]);
		break;
	case HAPPENED_VALIDATION:
		r->n_validations = h->index + 1;
		break;
	case HAPPENED_NOTE:
		r->n_notes = h->index + 1;
		break;
	case HAPPENED_FAULT:
		r->active[h->index] = true;
		break;
	case HAPPENED_HEAL:
		r->active[h->index] = false;
		break;
	}
}

static void fold_event(struct replay *r, const struct msg_task_event *e)
{
	struct cursor_node *s = &r->nodes[e->node];

	s->slots = e->slots;
	if (e->type == WORK_WAITS) {
		s->queued++;
	} else if (e->type == WORK_STARTS) {
		s->running = true;
		if (e->blocker != UINT32_MAX && e->arrived_us < e->at_us && s->queued > 0)
			s->queued--;
	} else {
		s->running = false;
		if (e->kind == TASK_LOSS)
			r->tasks.loss_node[e->microbatch] = e->node;
		if (e->kind == TASK_BACKWARD && r->tasks.loss_node[e->microbatch] == e->node &&
		    !r->tasks.done[e->microbatch]) {
			r->tasks.done[e->microbatch] = true;
			r->tasks.n_done++;
		}
	}
}

/* ---- moving the cursor ---- */

/* Applies the task events up to a time, and emits them if emit is not NULL. Once the iteration is
 * committed, applies all its events. Agents' clocks are known only roughly, so an event may seem to
 * be later than the commit. */
static int pass_events(struct replay *r, int64_t until_us, replay_emit emit, void *context,
		       struct error *err)
{
	uint32_t from = r->tasks.at;
	int rc = 0;

	if (r->tasks.iteration != 0 && !r->tasks.is_read) {
		r->tasks.is_read = true;
		rc = recorded_run_tasks(r->rec, r->tasks.iteration, &r->tasks.events, &r->tasks.n,
				     err);
	}
	while (r->tasks.at < r->tasks.n &&
	       (r->tasks.all_past || r->tasks.events[r->tasks.at].at_us <= until_us))
		fold_event(r, &r->tasks.events[r->tasks.at++]);
	if (emit)
		replay_tell_tasks(r, from, r->tasks.at, emit, context);
	return rc;
}

/* Applies all happenings up to cursor_us in the order of time. Continues after an error, and
 * returns the first error. If emit is NULL, emits no messages, and reads only the tasks of the
 * last iteration. */
static int move_cursor(struct replay *r, int64_t cursor_us, replay_emit emit, void *context,
		       struct error *err)
{
	const struct recorded_run *rec = r->rec;
	struct error later = { "" };
	int rc = 0, sent;

	while (r->at < rec->happenings.n && rec->happenings.list[r->at].at_us <= cursor_us) {
		const struct happening *h = &rec->happenings.list[r->at++];

		r->cursor_us = h->at_us;
		fold_happening(r, h);
		if (!emit)
			continue;
		sent = pass_events(r, h->at_us, emit, context, rc ? &later : err);
		rc = rc ? rc : sent;
		sent = replay_tell(r, h, emit, context, rc ? &later : err);
		rc = rc ? rc : sent;
	}
	r->cursor_us = cursor_us;
	sent = pass_events(r, cursor_us, emit, context, rc ? &later : err);
	return rc ? rc : sent;
}

static int64_t within_record(const struct replay *r, int64_t cursor_us)
{
	return cursor_us < r->rec->first_us ? r->rec->first_us :
	       cursor_us > r->rec->last_us  ? r->rec->last_us : cursor_us;
}

int replay_seek(struct replay *r, int64_t cursor_us, struct error *err)
{
	cursor_us = within_record(r, cursor_us);
	if (cursor_us < r->cursor_us)
		rewind_all(r);
	return move_cursor(r, cursor_us, NULL, NULL, err);
}

/* Returns true if another controller wrote rows between the cursor and a later time. */
static bool controller_follows(const struct replay *r, int64_t until_us)
{
	const struct recorded_run *rec = r->rec;

	for (size_t i = r->at;
	     i < rec->happenings.n && rec->happenings.list[i].at_us <= until_us; i++)
		if (rec->happenings.list[i].kind == HAPPENED_CONTROLLER)
			return true;
	return false;
}

/* In a live run, each new controller sends consoles a snapshot. The replay therefore sends a
 * snapshot, too, where a new controller begins. */
int replay_next(struct replay *r, int64_t cursor_us, replay_emit emit, void *context,
		struct error *err)
{
	struct error later = { "" };
	int rc, sent;

	cursor_us = within_record(r, cursor_us);
	if (cursor_us < r->cursor_us)
		return 0;
	if (!controller_follows(r, cursor_us))
		return move_cursor(r, cursor_us, emit, context, err);
	rc = move_cursor(r, cursor_us, NULL, NULL, err);
	sent = replay_snapshot(r, emit, context, rc ? &later : err);
	return rc ? rc : sent;
}

int64_t replay_cursor(const struct replay *r)
{
	return r->cursor_us;
}

size_t replay_part_at(const struct replay *r)
{
	return r->part;
}

int64_t replay_next_commit(const struct replay *r)
{
	return r->n_iterations < r->rec->iterations.n
		       ? r->rec->iterations.list[r->n_iterations].at_us
		       : r->rec->last_us;
}

/* ---- creation and release ---- */

int replay_new(struct replay **out, const struct recorded_run *recorded, struct error *err)
{
	struct replay *r = alloc_new(sizeof(*r));
	int rc;

	r->rec = recorded;
	r->showing = recorded->run->id;
	r->planned_of = NOBODY;
	r->nodes = alloc_array(recorded->n_nodes, sizeof(*r->nodes));
	r->active = alloc_array(recorded->faults.n, sizeof(*r->active));
	r->tasks.done = alloc_array(recorded->n_microbatches, sizeof(*r->tasks.done));
	r->tasks.loss_node = alloc_array(recorded->n_microbatches, sizeof(*r->tasks.loss_node));
	rewind_all(r);
	rc = move_cursor(r, recorded->first_us, NULL, NULL, err);
	if (rc != 0)
		replay_free(r);
	else
		*out = r;
	return rc;
}

void replay_free(struct replay *r)
{
	if (!r)
		return;
	free(r->nodes);
	free(r->active);
	free(r->tasks.done);
	free(r->tasks.loss_node);
	free(r->tasks.events);
	free(r->acknowledged.list);
	planned_free(r->planned);
	free(r);
}

int replay_renew(struct replay *r, const struct recorded_run *recorded, struct error *err)
{
	size_t at = r->at;
	uint32_t at_event = r->tasks.at;
	int64_t cursor_us = r->cursor_us;
	int rc;

	free(r->active);
	r->active = alloc_array(recorded->faults.n, sizeof(*r->active));
	r->rec = recorded;
	rewind_all(r);
	rc = move_cursor(r, within_record(r, cursor_us), NULL, NULL, err);
	return rc != 0 ? rc : r->at != at || r->tasks.at != at_event;
}

void replay_note_pace(struct replay *r, double times, uint64_t dropped)
{
	r->pace = times;
	r->dropped = dropped;
}

int64_t replay_pace_step(struct replay_pace *p, int64_t real_us)
{
	double step = p->stopped ? 0 : (double)real_us * p->speed + p->carry_us;

	p->carry_us = step - floor(step);
	return (int64_t)step;
}

/* ---- input of the planner ---- */

/* Sets the stages of the cluster's nodes at the cursor. A node that the plan does not use keeps
 * its stage at the cursor, unless this stage is already full. After moves between two phases, the
 * plan may have more nodes in a stage than the cluster allows. In that case the cluster's stages
 * get the sizes after the moves. */
static void pin_stages(const struct replay *r, struct cluster *c)
{
	int stage_of[MSG_NODES], all[MSG_NODES], left[MSG_STAGES];
	bool fits = true;

	plan_stages(r->planned->plan, c->n_nodes, stage_of);
	memcpy(left, c->stages, (size_t)c->n_stages * sizeof(*left));
	for (int i = 0; i < c->n_nodes; i++) {
		all[i] = stage_of[i] < 0 ? r->nodes[i].stage : stage_of[i];
		if (stage_of[i] >= 0)
			fits = --left[stage_of[i]] >= 0 && fits;
	}
	if (!fits && cluster_may_have_stages(c, all)) {
		cluster_set_stages(c, all);
		return;
	}
	for (int i = 0; i < c->n_nodes; i++) {
		int stood = r->nodes[i].stage;

		if (stage_of[i] < 0 && stood >= 0 && left[stood] > 0) {
			stage_of[i] = stood;
			left[stood]--;
		}
		c->nodes[i].stage = stage_of[i];
	}
}

int replay_present(struct replay *r, const struct plan **plan, bool *excluded,
		   struct cluster **cluster, struct error *err)
{
	struct cluster *c;
	int rc;

	if (r->plan == NOBODY)
		return error_set(err, -EAGAIN, "there was no plan yet");
	rc = replay_plan(r, err);
	if (rc != 0)
		return rc;
	c = recorded_run_cluster(r->rec, r->at);
	pin_stages(r, c);
	for (uint32_t i = 0; i < r->rec->n_nodes; i++)
		excluded[i] = !replay_lives(r, &r->nodes[i]);
	*plan = r->planned->plan;
	*cluster = c;
	return 0;
}
