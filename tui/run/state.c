/* The console's knowledge of the run, made by applying the controller's messages one after another
 * (state_apply).
 *
 * A message contains complete values, not differences. Therefore a message may be applied twice,
 * and a snapshot consists of the same messages. Notes, iterations and validations are kept in
 * arrays; a full array drops its oldest elements. tasks.c applies task events, plans.c applies
 * plans.
 */
#include "tui/run/state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"

struct state *state_new(void)
{
	struct state *s = alloc_new(sizeof(*s));

	s->nodes = alloc_array(MSG_NODES, sizeof(*s->nodes));
	s->history.notes = alloc_array(STATE_NOTES, sizeof(*s->history.notes));
	state_plan_init(&s->plan);
	return s;
}

void state_free(struct state *s)
{
	if (!s)
		return;
	free(s->nodes);
	free(s->flights);
	state_plan_fini(&s->plan);
	for (uint32_t i = 0; i < s->n_candidates; i++)
		state_plan_fini(&s->candidates[i]);
	free(s->history.iterations);
	free(s->history.validations);
	free(s->history.notes);
	free(s->links);
	free(s);
}

/* Makes room for one more element. If there are `most` elements, drops the older half. */
static void grow_table(void **array, size_t *n, size_t *room, size_t size, size_t most)
{
	if (*n < *room)
		return;
	if (*n >= most) {
		size_t half = *n / 2;

		memmove(*array, (char *)*array + half * size, (*n - half) * size);
		*n -= half;
		return;
	}
	array_reserve(array, room, *n + 1, size);
}

/* ---- one function for each message ----
 *
 * Times in messages are limited to a range in which sums and differences cannot overflow.
 */

/* Applies the first message of a snapshot. For another run, clears the state. For the same run,
 * keeps the state, and the messages of the snapshot overwrite it. */
static void apply_run(struct state *s, const struct msg_see_run *r)
{
	if (s->has_run && s->run.run != r->run) {
		memset(s->nodes, 0, MSG_NODES * sizeof(*s->nodes));
		s->n_nodes = s->n_flights = 0;
		free(s->flights);
		s->flights = NULL;
		s->current = (struct state_iteration){ 0 };
		s->plan.known = false;
		s->plan.n_tasks = 0;
		memset(&s->plan.see, 0, sizeof(s->plan.see));
		memset(s->plan.first, 0, (MSG_NODES + 1) * sizeof(*s->plan.first));
		for (uint32_t i = 0; i < s->n_candidates; i++)
			state_plan_fini(&s->candidates[i]);
		s->n_candidates = 0;
		s->n_collisions = 0;
		s->history.n_iterations = s->history.n_validations = s->history.n_notes =
			s->n_links = 0;
	}
	s->n_faults = 0; /* the snapshot contains all active faults */
	s->has_run = true;
	s->run = *r;
	s->run.first_us = state_bound_us(r->first_us);
	s->run.last_us = state_bound_us(r->last_us);
	if (s->n_nodes < r->n_nodes)
		s->n_nodes = r->n_nodes;
}

static void apply_node(struct state *s, const struct msg_see_node *n)
{
	struct state_node *node = &s->nodes[n->node];

	node->known = true;
	node->see = *n;
	node->see.heard_us = state_bound_us(n->heard_us);
	node->see.since_us = state_bound_us(n->since_us);
	node->slots = n->slots;
	if (n->node >= s->n_nodes)
		s->n_nodes = n->node + 1u;
	/* A dead node reports no end of its task, so the console ends the task. */
	if (n->state == NODE_DEAD || n->state == NODE_ABSENT || n->state == NODE_LEFT) {
		if (node->running) {
			struct state_segment *g =
				&node->segments[(node->n_segments - 1) % STATE_SEGMENTS];

			g->end_us = node->see.since_us > g->start_us ? node->see.since_us
								     : g->start_us;
			node->running = false;
		}
		node->n_queue = 0;
		node->queue_overflow = 0;
	}
}

static void apply_iteration(struct state_history *history, const struct msg_see_iteration *it)
{
	size_t i = history->n_iterations;

	while (i > 0 && history->iterations[i - 1].iteration > it->iteration)
		i--;
	if (i > 0 && history->iterations[i - 1].iteration == it->iteration) {
		history->iterations[i - 1] = *it;
		return;
	}
	grow_table((void **)&history->iterations, &history->n_iterations,
		   &history->room_iterations, sizeof(*history->iterations), STATE_HISTORY);
	if (i > history->n_iterations)
		i = history->n_iterations;
	memmove(&history->iterations[i + 1], &history->iterations[i],
		(history->n_iterations - i) * sizeof(*history->iterations));
	history->iterations[i] = *it;
	history->n_iterations++;
}

static void apply_validation(struct state_history *history, const struct msg_see_validation *v)
{
	size_t i = history->n_validations;

	while (i > 0 && history->validations[i - 1].iteration > v->iteration)
		i--;
	if (i > 0 && history->validations[i - 1].iteration == v->iteration) {
		history->validations[i - 1] = *v;
		return;
	}
	grow_table((void **)&history->validations, &history->n_validations,
		   &history->room_validations, sizeof(*history->validations),
		   STATE_HISTORY);
	if (i > history->n_validations)
		i = history->n_validations;
	memmove(&history->validations[i + 1], &history->validations[i],
		(history->n_validations - i) * sizeof(*history->validations));
	history->validations[i] = *v;
	history->n_validations++;
}

static void apply_note(struct state_history *history, const struct msg_see_note *n)
{
	size_t i = history->n_notes;
	struct msg_see_note note = *n;

	note.at_us = state_bound_us(n->at_us);
	note.wall_us = state_bound_us(n->wall_us);
	while (i > 0 && history->notes[i - 1].id > n->id)
		i--;
	if (i > 0 && history->notes[i - 1].id == n->id) {
		history->notes[i - 1] = note;
		return;
	}
	if (history->n_notes == STATE_NOTES) {
		if (i == 0)
			return; /* older than all entries of a full journal */
		memmove(history->notes, history->notes + 1,
			(STATE_NOTES - 1) * sizeof(*history->notes));
		history->n_notes--;
		i--;
	}
	memmove(&history->notes[i + 1], &history->notes[i],
		(history->n_notes - i) * sizeof(*history->notes));
	history->notes[i] = note;
	history->n_notes++;
}

static void apply_fault(struct state *s, const struct msg_see_fault *f)
{
	uint32_t i = 0;

	while (i < s->n_faults && s->faults[i].fault != f->fault)
		i++;
	if (!f->active) {
		if (i < s->n_faults)
			memmove(&s->faults[i], &s->faults[i + 1],
				(--s->n_faults - i) * sizeof(*s->faults));
		return;
	}
	if (i == STATE_FAULTS)
		return;
	s->faults[i] = *f;
	s->faults[i].ends_us = state_bound_us(f->ends_us);
	if (i == s->n_faults)
		s->n_faults++;
}

static int compare_link(const void *a, const void *b)
{
	const struct msg_link *x = a, *y = b;
	int kx = x->from * MSG_NODES + x->to, ky = y->from * MSG_NODES + y->to;

	return kx - ky;
}

const struct msg_link *state_link(const struct state *s, uint16_t from, uint16_t to)
{
	struct msg_link key = { .from = from, .to = to };

	if (s->n_links == 0)
		return NULL;
	return bsearch(&key, s->links, s->n_links, sizeof(key), compare_link);
}

static void apply_links(struct state *s, const struct msg_see_links *l)
{
	size_t known = s->n_links;

	s->link_reports++;
	for (uint32_t i = 0; i < l->n_links; i++) {
		struct msg_link *have = known == 0 ? NULL
						   : bsearch(&l->links[i], s->links, known,
							     sizeof(*have), compare_link);

		if (have) {
			*have = l->links[i];
			continue;
		}
		grow_table((void **)&s->links, &s->n_links, &s->room_links,
				sizeof(*s->links), (size_t)MSG_NODES * MSG_NODES * 2);
		s->links[s->n_links++] = l->links[i];
	}
	if (s->n_links > known)
		qsort(s->links, s->n_links, sizeof(*s->links), compare_link);
}

static void apply_status(struct state *s, const struct msg_see_status *t)
{
	s->status = *t;
	s->status.now_us = state_bound_us(t->now_us);
	s->status.iteration_started_us = state_bound_us(t->iteration_started_us);
	s->status.lease_us = state_bound_us(t->lease_us);
}

/* Checks the number of a message. A gap in the numbers means that messages were lost. A number
 * that is not above the previous number means that a new controller, or a new attachment, counts
 * from the start. */
static void count_sequence(struct state_stream *stream, const struct msg *m)
{
	bool fresh = stream->sequence == 0 || m->sequence <= stream->sequence;

	if (!fresh && m->sequence > stream->sequence + 1) {
		stream->gaps += m->sequence - stream->sequence - 1;
		stream->needs_snapshot = true;
	}
	stream->sequence = m->sequence;
}

void state_apply(struct state *s, const struct msg *m)
{
	if (m->type < MSG_SEE_RUN || m->type > MSG_SEE_SYNCED)
		return;
	count_sequence(&s->stream, m);
	switch (m->type) {
	case MSG_SEE_RUN:
		apply_run(s, &m->u.see_run);
		break;
	case MSG_SEE_STATUS:
		apply_status(s, &m->u.see_status);
		break;
	case MSG_SEE_NODE:
		apply_node(s, &m->u.see_node);
		break;
	case MSG_SEE_PLAN:
		state_apply_plan(s, &m->u.see_plan);
		break;
	case MSG_SEE_TASKS:
		state_apply_tasks(s, &m->u.see_tasks);
		break;
	case MSG_SEE_ITERATION:
		apply_iteration(&s->history, &m->u.see_iteration);
		break;
	case MSG_SEE_VALIDATION:
		apply_validation(&s->history, &m->u.see_validation);
		break;
	case MSG_SEE_NOTE:
		apply_note(&s->history, &m->u.see_note);
		break;
	case MSG_SEE_FAULT:
		apply_fault(s, &m->u.see_fault);
		break;
	case MSG_SEE_LINKS:
		apply_links(s, &m->u.see_links);
		break;
	case MSG_SEE_PREVIEW:
	case MSG_SEE_REPLY: /* handled by ui_take_message */
		break;
	default:
		s->stream.has_snapshot = true;
		s->stream.needs_snapshot = false;
	}
}

/* ---- questions ---- */

bool state_is_slow(const struct state *s, const struct state_node *n)
{
	if (n->see.state == NODE_SUSPECT)
		return true;
	for (uint32_t i = 0; i < s->n_faults; i++)
		if (s->faults[i].kind == FAULT_SLOW_NODE && s->faults[i].node == n->see.node)
			return true;
	return false;
}

static int compare_float(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

float state_median(float *values, size_t n)
{
	if (n == 0)
		return 0;
	qsort(values, n, sizeof(*values), compare_float);
	return n % 2 ? values[n / 2] : (values[n / 2] + values[n / 2 - 1]) / 2;
}

float state_prediction_error(const struct state *s, size_t most, uint32_t *n)
{
	float errors[256];
	size_t have = 0;

	if (most > 256)
		most = 256;
	for (size_t i = s->history.n_iterations; i > 0 && have < most; i--) {
		const struct msg_see_iteration *it = &s->history.iterations[i - 1];

		if (it->predicted_s > 0 && it->iteration_s > 0)
			errors[have++] = fabsf(it->iteration_s / it->predicted_s - 1);
	}
	*n = (uint32_t)have;
	return state_median(errors, have);
}

bool state_has_step(const struct state *s, enum gather_step step)
{
	return s->status.steps >> step & 1;
}

/* Returns true before the first iteration. Returns false after a restart of the controller: agents
 * only rejoin then, and there are no steps to show. */
bool state_is_starting(const struct state *s)
{
	return s->status.phase == PHASE_GATHERING && state_has_step(s, GATHER_COMPUTE);
}

long state_most_skipped(const struct state *s)
{
	return (long)s->run.n_stages - __builtin_popcountll(s->run.always | 1);
}

bool state_is_measuring(const struct state *s)
{
	return state_is_starting(s) && state_has_step(s, GATHER_LINKS);
}

bool state_has_no_stages(const struct state *s)
{
	return state_is_starting(s) && s->status.step < GATHER_BUILD;
}

uint32_t state_alerts(const struct state *s)
{
	uint32_t n = 0;

	for (size_t i = 0; i < s->history.n_notes; i++)
		n += note_stands(s->history.notes[i].kind) && !s->history.notes[i].acknowledged;
	return n;
}

double state_plan_s(const struct state *s, int64_t real_us)
{
	double scale = s->run.time_scale > 0 ? s->run.time_scale : 1;

	return (double)real_us / 1e6 / scale;
}

int64_t state_skip_ratio(const struct state *s)
{
	const struct msg_see_status *t = &s->status;

	return t->n_stages >= t->path_length
		       ? skip_share_pack(t->skip_share, t->n_stages - t->path_length)
		       : 0;
}

const char *state_ratio_text(int64_t ratio, char text[SKIP_SHARE_TEXT])
{
	if (skip_share_of(ratio) > 0)
		snprintf(text, SKIP_SHARE_TEXT, "%u in %u%%", skip_share_stages(ratio),
			 skip_share_of(ratio));
	else
		snprintf(text, SKIP_SHARE_TEXT, "%u", skip_share_stages(ratio));
	return text;
}
