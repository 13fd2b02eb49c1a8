/* replay_messages.c - describes the state at a cursor in the messages of a live run.
 *
 * A console shows a replay as it shows a live run, because it gets the same messages. MSG_SEE_RUN
 * says that the run is a replay. Values that are not recorded are 0. Each message is built from the
 * recorded run and the cursor.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/iteration/plan_message.h"
#include "controller/members/member.h"
#include "controller/operator/console_messages.h"
#include "controller/replay/replay_state.h"
#include "controller/run/journal.h"

enum { SNAPSHOT_NOTES = 500, SNAPSHOT_CURVE = 4096 };

/* ---- messages ---- */

static void emit_run(const struct replay *r, replay_emit emit, void *context)
{
	const struct recorded_run *rec = r->rec;
	const struct recorded_part *part = replay_part(r);
	uint64_t n = rec->n_microbatches;
	struct msg m = { .type = MSG_SEE_RUN };

	m.u.see_run = (struct msg_see_run){
		.run = r->showing, .parameters = rec->parameters,
		.n_nodes = rec->n_nodes,
		.n_stages = (uint32_t)part->cluster->n_stages,
		.always = part->cluster->always, .microbatches = (uint32_t)n,
		.per_data_node = part->per_shard,
		.tokens_per_iteration =
			rec->rehearsal ? 0 : n * rec->run->batch * rec->run->sequence,
		.iterations = rec->iterations_wanted, .time_scale = rec->unit_s,
		.started_wall_us = rec->run->started_wall_us, .baseline_s = part->baseline_s,
		.emulated = rec->time_scale != 0, .rehearsal = rec->rehearsal,
		.replay = 1, .first_us = rec->first_us, .last_us = rec->last_us,
	};
	snprintf(m.u.see_run.name, sizeof(m.u.see_run.name), "%s", rec->run->name);
	snprintf(m.u.see_run.model, sizeof(m.u.see_run.model), "%s", part->model);
	emit(context, &m);
}

static enum node_state state_of(const struct replay *r, const struct cursor_node *s)
{
	return s->state == NOBODY ? NODE_ABSENT : r->rec->nodes.list[s->state].state;
}

bool replay_lives(const struct replay *r, const struct cursor_node *s)
{
	enum node_state state = state_of(r, s);

	return state == NODE_LIVE || state == NODE_SUSPECT;
}

static uint32_t count_alive(const struct replay *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->rec->n_nodes; i++)
		n += replay_lives(r, &r->nodes[i]);
	return n;
}

/* Fills in a member with the controller's knowledge of the node at the cursor's time. Values from
 * heartbeats are not recorded and stay 0. */
static void recall_member(const struct replay *r, uint32_t node, struct member *w)
{
	const struct cursor_node *s = &r->nodes[node];
	bool alive = replay_lives(r, s);

	*w = (struct member){
		.id = (uint16_t)node,
		.since_us = s->since_us,
		.compute.slots = alive ? s->slots : 0,
		.heard.message_us = alive ? r->cursor_us : s->since_us,
		.weights.hash_agrees = !alive || s->hash_agrees,
	};
	if (alive) {
		w->beat.running = s->running;
		w->beat.queued = s->queued;
		w->beat.committed = r->committed;
		w->beat.hash = s->hash;
		w->beat.gpu = s->gpu;
		w->compute.spent = s->spent;
	}
	if (s->state != NOBODY) {
		const struct recorded_node *state = &r->rec->nodes.list[s->state];

		w->compute.forward_s = state->forward_s;
		w->compute.backward_s = state->backward_s;
		w->hello.pid = state->pid;
		snprintf(w->hello.device, sizeof(w->hello.device), "%s", state->device);
		snprintf(w->hello.host, sizeof(w->hello.host), "%s", state->host);
		snprintf(w->name, sizeof(w->name), "%s", state->name);
		snprintf(w->hello.place, sizeof(w->hello.place), "%s", state->place);
		snprintf(w->why, sizeof(w->why), "%s", state->why);
	}
}

static void emit_node(const struct replay *r, uint32_t node, replay_emit emit, void *context)
{
	const struct cursor_node *s = &r->nodes[node];
	const struct recorded_part *part = replay_part(r);
	struct cluster_node planned = part->cluster->nodes[node];
	struct member w;
	struct msg m = { .body = NULL };

	planned.stage = s->stage;
	planned.forward_s = s->forward_s;
	planned.backward_s = s->backward_s;
	planned.loss_s = s->loss_s;
	recall_member(r, node, &w);
	node_message(&m, &w, &planned, cluster_work(part->cluster, s->stage),
		     s->stage < 0 ? 0 : part->layers[s->stage], 0);
	m.u.see_node.state = (uint8_t)state_of(r, s);
	emit(context, &m);
}

static int see_hash(void *context, const struct store_hash *h)
{
	struct replay *r = context;
	struct cursor_node *s;

	/* Hashes of other stages are those of standby copies, or of a stage that the node has
	 * left. */
	if (h->node >= r->rec->n_nodes || h->stage != r->nodes[h->node].stage)
		return 0;
	s = &r->nodes[h->node];
	s->hash = h->hash;
	s->hash_agrees = true;
	/* The hash is compared with that of the first live replica of the stage. */
	for (uint32_t i = 0; i < r->rec->n_nodes; i++)
		if (i < h->node && r->nodes[i].stage == s->stage && r->nodes[i].hash != 0 &&
		    replay_lives(r, &r->nodes[i]))
			return s->hash_agrees = r->nodes[i].hash == s->hash, 0;
	return 0;
}

/* Reads the hashes of the weights after the newest commit before the cursor. */
static int learn_hashes(struct replay *r, struct error *err)
{
	if (r->committed == r->hashes_of)
		return 0;
	for (uint32_t i = 0; i < r->rec->n_nodes; i++) {
		r->nodes[i].hash = 0;
		r->nodes[i].hash_agrees = true;
	}
	r->hashes_of = r->committed;
	if (r->committed <= replay_part(r)->after) /* the recorded hashes are of former stages */
		return 0;
	return store_each_hash(r->rec->store, r->committed, see_hash, r, err);
}

int replay_plan(struct replay *r, struct error *err)
{
	struct planned *p;
	int rc;

	if (r->planned && r->planned_of == r->plan)
		return 0;
	rc = recorded_run_planned(r->rec, (size_t)r->plan, &p, err);
	if (rc != 0)
		return rc;
	planned_free(r->planned);
	r->planned = p;
	r->planned_of = r->plan;
	return 0;
}

static int emit_plan(struct replay *r, replay_emit emit, void *context, struct error *err)
{
	const struct recorded_run *rec = r->rec;
	const struct recorded_part *part = replay_part(r);
	struct message_run run = { rec->n_nodes, part->n_shards, part->per_shard, part->shard_of,
				   rec->unit_s };
	struct plan_message s;
	int rc = replay_plan(r, err);

	if (rc == 0 && plan_message_init(&s, &run, r->planned, NULL) != 0)
		rc = error_set(err, -EINVAL, "plan %llu does not fit the run",
			       (unsigned long long)r->planned->epoch);
	if (rc != 0)
		return rc;
	emit(context, &s.message);
	plan_message_fini(&s);
	return 0;
}

static bool is_acknowledged(const struct replay *r, uint64_t id)
{
	for (size_t i = 0; i < r->acknowledged.n; i++)
		if (r->acknowledged.list[i] == id)
			return true;
	return id <= r->acknowledged_to;
}

static void emit_note(const struct replay *r, size_t index, replay_emit emit, void *context)
{
	struct msg m = { .type = MSG_SEE_NOTE, .u.see_note = r->rec->notes.list[index] };

	m.u.see_note.acknowledged = is_acknowledged(r, m.u.see_note.id);
	emit(context, &m);
}

static void emit_fault(const struct replay *r, size_t index, replay_emit emit, void *context)
{
	struct msg m = { .type = MSG_SEE_FAULT, .u.see_fault = r->rec->faults.list[index] };

	m.u.see_fault.active = r->active[index];
	emit(context, &m);
}

static void emit_faults(const struct replay *r, replay_emit emit, void *context)
{
	for (size_t i = 0; i < r->rec->faults.n; i++)
		if (r->active[i])
			emit_fault(r, i, emit, context);
}

void replay_run(const struct replay *r, replay_emit emit, void *context)
{
	emit_run(r, emit, context);
	emit_faults(r, emit, context);
}

static void describe_phase(const struct replay *r, char *out, size_t room)
{
	char speed[32] = "stopped";
	size_t n;

	if (r->pace > 0)
		snprintf(speed, sizeof(speed), "%gx", r->pace);
	n = (size_t)snprintf(out, room, "recorded, %s; ", speed);
	if (n < room)
		describe_iteration(out + n, room - n, r->phase, r->iteration, r->tasks.n_done,
				   r->rec->n_microbatches);
}

void replay_status(const struct replay *r, replay_emit emit, void *context)
{
	const struct recorded_run *rec = r->rec;
	const struct recorded_plan *plan = r->plan == NOBODY ? NULL : &rec->plans.list[r->plan];
	const struct tensor_formats formats = recorded_run_formats(rec, r->n_iterations);
	struct msg m = { .type = MSG_SEE_STATUS };

	m.u.see_status = (struct msg_see_status){
		.phase = (uint8_t)r->phase,
		.paused = r->pace <= 0,
		.iteration = r->iteration,
		.committed = r->committed,
		.epoch = plan ? plan->epoch : 0,
		.alive = count_alive(r),
		.n_nodes = rec->n_nodes,
		.path_length = plan ? plan->path_length : replay_part(r)->path_length,
		.skip_share = plan ? plan->skip_share : 0,
		.n_stages = (uint32_t)replay_part(r)->cluster->n_stages,
		.now_us = r->cursor_us,
		.iteration_started_us = r->started_us,
		.dropped = r->dropped,
		.wire = (uint8_t)formats.wire,
		.sum_wire = (uint8_t)formats.sum_wire,
		.checkpoint = r->checkpoint,
		.checkpoint_failure = r->checkpoint_failure,
	};
	for (size_t i = 0; i < rec->faults.n; i++)
		m.u.see_status.faults += r->active[i];
	describe_phase(r, m.u.see_status.doing, sizeof(m.u.see_status.doing));
	emit(context, &m);
}

void replay_tell_tasks(const struct replay *r, uint32_t from, uint32_t to, replay_emit emit,
		       void *context)
{
	while (from < to) {
		struct msg m = { .type = MSG_SEE_TASKS };
		uint32_t n = to - from < TASKS_A_MESSAGE ? to - from : TASKS_A_MESSAGE;

		m.u.see_tasks =
			(struct msg_see_tasks){ r->tasks.iteration, 0, n, r->tasks.events + from };
		emit(context, &m);
		from += n;
	}
}

int replay_tell(struct replay *r, const struct happening *h, replay_emit emit, void *context,
		struct error *err)
{
	struct msg m = { .type = MSG_SEE_ITERATION };
	int rc = 0;

	switch ((enum happening_kind)h->kind) {
	case HAPPENED_BELIEF:
		if (r->rec->beliefs.list[h->index].to < 0) {
			rc = learn_hashes(r, err);
			emit_node(r, r->rec->beliefs.list[h->index].node, emit, context);
		}
		break;
	case HAPPENED_NODE:
		rc = learn_hashes(r, err);
		emit_node(r, r->rec->nodes.list[h->index].node, emit, context);
		break;
	case HAPPENED_GPU:
		rc = learn_hashes(r, err);
		emit_node(r, r->rec->gpus.list[h->index].node, emit, context);
		break;
	case HAPPENED_DEVICE:
		rc = learn_hashes(r, err);
		emit_node(r, r->rec->devices.list[h->index].node, emit, context);
		break;
	case HAPPENED_PLAN:
		return emit_plan(r, emit, context, err);
	case HAPPENED_COMMIT:
		m.u.see_iteration = r->rec->iterations.list[h->index];
		emit(context, &m);
		break;
	case HAPPENED_VALIDATION:
		m.type = MSG_SEE_VALIDATION;
		m.u.see_validation = r->rec->validations.list[h->index];
		emit(context, &m);
		break;
	case HAPPENED_NOTE:
		emit_note(r, h->index, emit, context);
		break;
	case HAPPENED_FAULT:
	case HAPPENED_HEAL:
		emit_fault(r, h->index, emit, context);
		break;
	case HAPPENED_PHASE: case HAPPENED_CHECKPOINT:
		break; /* a phase has no message of its own: the next status reports it */
	case HAPPENED_CONTROLLER:
		break; /* a console gets a snapshot instead (replay_next) */
	}
	return rc;
}

/* ---- snapshots ---- */

static size_t newest_from(size_t n, size_t most)
{
	return n > most ? n - most : 0;
}

int replay_nodes(struct replay *r, replay_emit emit, void *context, struct error *err)
{
	int rc = learn_hashes(r, err);

	for (uint32_t i = 0; i < r->rec->n_nodes; i++)
		if (replay_lives(r, &r->nodes[i]))
			emit_node(r, i, emit, context);
	return rc;
}

/* Emits the messages in the order of a live run's snapshot (consoles.c). */
int replay_snapshot(struct replay *r, replay_emit emit, void *context, struct error *err)
{
	const struct recorded_run *rec = r->rec;
	struct error later = { "" };
	struct msg m = { .type = MSG_SEE_ITERATION };
	int rc = learn_hashes(r, err), sent = 0;

	r->showing++;
	emit_run(r, emit, context);
	for (uint32_t i = 0; i < rec->n_nodes; i++)
		emit_node(r, i, emit, context);
	if (r->plan != NOBODY)
		sent = emit_plan(r, emit, context, rc ? &later : err);
	for (size_t i = newest_from(r->n_iterations, SNAPSHOT_CURVE); i < r->n_iterations; i++) {
		m.u.see_iteration = rec->iterations.list[i];
		emit(context, &m);
	}
	m.type = MSG_SEE_VALIDATION;
	for (size_t i = newest_from(r->n_validations, SNAPSHOT_CURVE); i < r->n_validations; i++) {
		m.u.see_validation = rec->validations.list[i];
		emit(context, &m);
	}
	for (size_t i = newest_from(r->n_notes, SNAPSHOT_NOTES); i < r->n_notes; i++)
		emit_note(r, i, emit, context);
	emit_faults(r, emit, context);
	replay_tell_tasks(r, 0, r->tasks.at, emit, context);
	replay_status(r, emit, context);
	m = (struct msg){ .type = MSG_SEE_SYNCED };
	emit(context, &m);
	return rc ? rc : sent;
}

/* ---- alerts ---- */

uint32_t replay_acknowledge(struct replay *r, uint64_t id, replay_emit emit, void *context)
{
	uint32_t n = 0;

	for (size_t i = 0; i < r->n_notes; i++) {
		const struct msg_see_note *note = &r->rec->notes.list[i];

		if (!note_stands(note->kind) || is_acknowledged(r, note->id) ||
		    (id != 0 && note->id != id))
			continue;
		if (id == 0)
			r->acknowledged_to = note->id;
		else
			*LIST_ADD(&r->acknowledged) = id;
		emit_note(r, i, emit, context);
		n++;
	}
	return n;
}
