/* recorded_run_rows.c - reads the store's rows and puts each of them on the timeline.
 *
 * Most rows have either a wall time or the monotonic time of their controller. A controller on
 * another machine has another monotonic clock. Rows of the kind "moment" have both times. Each such
 * row serves as an anchor: a row with only a wall time is placed relative to the newest anchor that
 * is not later than the row. */
#include "controller/replay/recorded_run_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "controller/iteration/plan_message.h"
#include "controller/members/device_record.h"
#include "controller/run/gpu_record.h"

/* A moment whose wall time and timeline time are both known */
struct anchor {
	int64_t wall_us, timeline_us;
};

struct reading {
	struct recorded_run *r;
	LIST(struct anchor) anchors;
	size_t at_anchor;
	uint64_t writer;  /* the controller that wrote the newest moment read so far */
	size_t part;      /* the part of the run that this controller continues */
	int64_t shift_us; /* added to a time of that controller to get the time on the timeline */
	/* array of n_iterations: newest start of each iteration; INT64_MIN: not recorded */
	int64_t *started;
	/* Array of n_iterations: time of each commit; INT64_MIN: not recorded */
	int64_t *committed;
	/* Array of n_iterations: seconds of computing, summed over all nodes; 0: not recorded */
	double *busy_s;
	struct error *err;
};

static void add_happening(struct recorded_run *r, int64_t at_us, enum happening_kind kind,
			  size_t index)
{
	*LIST_ADD(&r->happenings) = (struct happening){ at_us, (uint8_t)kind, (uint32_t)index };
}

/* ---- time ---- */

/* Converts a wall time to the timeline, relative to the newest anchor at or before this time.
 * Successive rows of one kind have similar times, so the search starts from the previous row's
 * anchor. */
static int64_t timeline_of_wall(struct reading *g, int64_t wall_us)
{
	const struct anchor *a = g->anchors.list;

	while (g->at_anchor + 1 < g->anchors.n && a[g->at_anchor + 1].wall_us <= wall_us)
		g->at_anchor++;
	while (g->at_anchor > 0 && a[g->at_anchor].wall_us > wall_us)
		g->at_anchor--;
	return wall_us - a[g->at_anchor].wall_us + a[g->at_anchor].timeline_us;
}

/* Chooses the time shift for a controller when its first row is read. Controllers on one machine
 * share its monotonic clock, and small differences are drift of the wall clock. Only a controller
 * on another machine, or after a reboot, needs another shift. */
static void take_writer(struct reading *g, const struct store_moment *m)
{
	static const int64_t same_clock_us = 1000000;
	int64_t offset = m->wall_us - m->at_us;

	if (g->anchors.n == 0) {
		g->shift_us = 0;
	} else {
		const struct anchor *last = &g->anchors.list[g->anchors.n - 1];
		int64_t shift = offset - (last->wall_us - last->timeline_us);

		if (llabs(shift - g->shift_us) > same_clock_us)
			g->shift_us = shift;
		if (m->at_us + g->shift_us < last->timeline_us) /* the wall clock was set back */
			g->shift_us = last->timeline_us - m->at_us;
	}
	g->writer = m->writer;
	if (m->writer < g->r->parts.list[0].first_writer)
		return;
	while (g->part + 1 < g->r->parts.n &&
	       g->r->parts.list[g->part + 1].first_writer <= m->writer)
		g->part++;
	add_happening(g->r, m->at_us + g->shift_us, HAPPENED_CONTROLLER, g->part);
}

/* ---- moments ---- */

static int take_node(struct reading *g, const struct store_moment *m, int64_t at_us)
{
	struct recorded_run *r = g->r;
	struct recorded_node *n;
	int state = node_state_named(m->word);

	if (state < 0 || m->node < 0 || (uint32_t)m->node >= r->n_nodes ||
	    m->stage >= r->parts.list[g->part].cluster->n_stages)
		return error_set(g->err, -EINVAL,
				 "moment %llu: node %d, stage %d cannot be \"%.20s\"",
				 (unsigned long long)m->id, m->node, m->stage, m->word);
	add_happening(r, at_us, HAPPENED_NODE, r->nodes.n);
	n = LIST_ADD(&r->nodes);
	*n = (struct recorded_node){ (uint16_t)m->node,
				     m->stage,
				     (enum node_state)state,
				     m->forward_s,
				     m->backward_s,
				     m->loss_s,
				     m->value,
				     "",
				     "",
				     "",
				     "",
				     "" };
	snprintf(n->why, sizeof(n->why), "%s", m->text);
	snprintf(n->device, sizeof(n->device), "%s", m->device);
	snprintf(n->host, sizeof(n->host), "%s", m->host);
	snprintf(n->name, sizeof(n->name), "%s", m->name);
	snprintf(n->place, sizeof(n->place), "%s", m->place);
	return 0;
}

static int take_gpu(struct reading *g, const struct store_moment *m, int64_t at_us)
{
	struct recorded_run *r = g->r;
	struct gpu_figures figures;
	int rc = gpu_record_read(&figures, m->text, g->err);

	if (rc == 0 && (m->node < 0 || (uint32_t)m->node >= r->n_nodes))
		rc = error_set(g->err, -EINVAL, "there is no node %d", m->node);
	if (rc)
		return error_prefix(g->err, rc, "moment %llu", (unsigned long long)m->id);
	add_happening(r, at_us, HAPPENED_GPU, r->gpus.n);
	*LIST_ADD(&r->gpus) = (struct recorded_gpu){ (uint16_t)m->node, figures };
	return 0;
}

static int take_device(struct reading *g, const struct store_moment *m, int64_t at_us)
{
	struct recorded_run *r = g->r;
	struct device_time spent;
	int rc = device_record_read(&spent, m->text, g->err);

	if (rc == 0 && (m->node < 0 || (uint32_t)m->node >= r->n_nodes))
		rc = error_set(g->err, -EINVAL, "there is no node %d", m->node);
	if (rc)
		return error_prefix(g->err, rc, "moment %llu", (unsigned long long)m->id);
	add_happening(r, at_us, HAPPENED_DEVICE, r->devices.n);
	*LIST_ADD(&r->devices) = (struct recorded_device){ (uint16_t)m->node, spent };
	return 0;
}

static void add_phase(struct reading *g, enum run_phase phase, uint64_t iteration, int64_t at_us)
{
	struct recorded_run *r = g->r;

	if (phase == PHASE_COMPUTING && iteration >= 1 && iteration <= r->iterations.n &&
	    (r->phases.n == 0 || r->phases.list[r->phases.n - 1].phase != PHASE_REDUCING))
		g->started[iteration - 1] = at_us;
	add_happening(r, at_us, HAPPENED_PHASE, r->phases.n);
	*LIST_ADD(&r->phases) = (struct recorded_phase){ phase, iteration };
}

static void take_checkpoint(struct reading *g, const struct store_moment *m, int64_t at_us)
{
	struct recorded_checkpoint *c;

	add_happening(g->r, at_us, HAPPENED_CHECKPOINT, g->r->checkpoints.n);
	c = LIST_ADD(&g->r->checkpoints);
	*c = (struct recorded_checkpoint){ .iteration = (uint64_t)m->value,
					   .failure = { .node = m->node } };
	if (strcmp(m->word, "newest") == 0)
		c->event = CHECKPOINT_IS_NEWEST;
	if (strcmp(m->word, "failed") != 0)
		return;
	c->event = CHECKPOINT_FAILS;
	c->failure.iteration = (uint64_t)m->value;
	snprintf(c->failure.why, sizeof(c->failure.why), "%s", m->text);
}

/* Ignores the moment of a plan that is newer than the plans that were read. */
static void take_plan_moment(struct reading *g, const struct store_moment *m, int64_t at_us)
{
	for (size_t i = 0; i < g->r->plans.n; i++)
		if (g->r->plans.list[i].epoch == (uint64_t)m->value)
			add_happening(g->r, at_us, HAPPENED_PLAN, i);
}

static void take_commit_moment(struct reading *g, const struct store_moment *m, int64_t at_us)
{
	if (m->iteration < 1 || m->iteration > g->r->iterations.n)
		return;
	g->committed[m->iteration - 1] = at_us;
	g->busy_s[m->iteration - 1] = (double)m->value * 1e-6;
	g->r->shifts[m->iteration - 1] = g->shift_us;
}

static int take_belief(struct reading *g, const struct store_moment *m, bool link, int64_t at_us)
{
	struct recorded_run *r = g->r;
	int64_t n = r->n_nodes;
	bool sane = m->forward_s >= 0 && m->backward_s >= 0 && m->loss_s >= 0;

	if (!sane || m->node < 0 || m->node >= n || (link && (m->value < 0 || m->value >= n)))
		return error_set(g->err, -EINVAL, "moment %llu: no such correction of node %d",
				 (unsigned long long)m->id, m->node);
	add_happening(r, at_us, HAPPENED_BELIEF, r->beliefs.n);
	*LIST_ADD(&r->beliefs) =
		(struct recorded_belief){ (uint16_t)m->node, link ? (int32_t)m->value : -1,
					  m->forward_s, m->backward_s, m->loss_s };
	return 0;
}

static int see_moment(void *context, const struct store_moment *m)
{
	struct reading *g = context;
	int64_t at_us;
	int phase;

	if (m->writer != g->writer)
		take_writer(g, m);
	at_us = m->at_us + g->shift_us;
	*LIST_ADD(&g->anchors) = (struct anchor){ m->wall_us, at_us };
	g->r->last_moment = m->id;
	if (m->writer < g->r->parts.list[0].first_writer && strcmp(m->kind, "commit") != 0)
		return 0;
	if (strcmp(m->kind, "node") == 0)
		return take_node(g, m, at_us);
	if (strcmp(m->kind, "gpu") == 0)
		return take_gpu(g, m, at_us);
	if (strcmp(m->kind, "device") == 0)
		return take_device(g, m, at_us);
	if (strcmp(m->kind, "compute") == 0 || strcmp(m->kind, "link") == 0)
		return take_belief(g, m, m->kind[0] == 'l', at_us);
	phase = phase_named(m->word);
	if (strcmp(m->kind, "plan") == 0)
		take_plan_moment(g, m, at_us);
	else if (strcmp(m->kind, "commit") == 0)
		take_commit_moment(g, m, at_us);
	else if (strcmp(m->kind, "phase") == 0 && phase >= 0)
		add_phase(g, (enum run_phase)phase, m->iteration, at_us);
	else if (strcmp(m->kind, "checkpoint") == 0)
		take_checkpoint(g, m, at_us);
	return 0;
}

/* ---- rows ---- */

static int see_commit(void *context, const struct store_commit *c)
{
	struct recorded_run *r = ((struct reading *)context)->r;

	*LIST_ADD(&r->iterations) = (struct msg_see_iteration){
		.iteration = c->iteration,
		.epoch = c->epoch,
		.loss = c->loss,
		.iteration_s = (float)c->iteration_s,
		.predicted_s = (float)c->predicted_s,
		.sync_s = (float)c->sync_s,
		.real_s = (float)c->real_s,
		.collisions = c->collisions.n,
		.wait_s = (float)c->collisions.wait_s,
		.gradient_norm = (float)c->gradient_norm,
		.clip = c->scale * (float)r->n_microbatches,
		.lr = c->lr,
		.alive = c->alive,
		.path_length = c->path_length,
		.rerun = c->repeats.rerun,
		.at_us = c->wall_us,
		.wall_us = c->wall_us,
		.wire = (uint8_t)c->formats.wire,
		.sum_wire = (uint8_t)c->formats.sum_wire,
	};
	return 0;
}

/* Returns the share of microbatches that skip stages, as the plan's text says. */
static uint32_t share_in(const char *plan)
{
	static const char key[] = "\"skip_share\":";
	const char *at = strstr(plan, key);
	unsigned long share = at ? strtoul(at + strlen(key), NULL, 10) : 0;

	return share < 100 ? (uint32_t)share : 0;
}

static int see_plan(void *context, const struct store_plan *p)
{
	struct recorded_run *r = ((struct reading *)context)->r;

	*LIST_ADD(&r->plans) = (struct recorded_plan){ p->epoch,
						       p->iteration,
						       p->path_length,
						       share_in(p->plan),
						       alloc_string(p->reason),
						       alloc_string(p->plan) };
	fill_planned(r->iterations.list, r->iterations.n, p);
	return 0;
}

static int see_validation(void *context, const struct store_validation *v)
{
	struct reading *g = context;
	struct recorded_run *r = g->r;

	add_happening(r, timeline_of_wall(g, v->wall_us), HAPPENED_VALIDATION, r->validations.n);
	*LIST_ADD(&r->validations) = (struct msg_see_validation){ v->iteration, (float)v->loss, 0 };
	return 0;
}

static int see_note(void *context, const struct store_note *n)
{
	struct reading *g = context;
	struct recorded_run *r = g->r;
	struct msg_see_note *to;
	int kind = note_named(n->kind);

	add_happening(r, timeline_of_wall(g, n->wall_us), HAPPENED_NOTE, r->notes.n);
	to = LIST_ADD(&r->notes);
	*to = (struct msg_see_note){ .id = n->id, .at_us = timeline_of_wall(g, n->wall_us),
				     .wall_us = n->wall_us, .iteration = n->iteration,
				     .kind = (uint8_t)(kind < 0 ? NOTE_LOG : kind), .mark = n->mark,
				     .node = n->node };
	snprintf(to->text, sizeof(to->text), "%s", n->text);
	return 0;
}

static int see_fault(void *context, const struct store_fault *f)
{
	struct reading *g = context;
	struct recorded_run *r = g->r;
	int64_t at_us = timeline_of_wall(g, f->started_wall_us);
	int kind = fault_named(f->kind);

	if (kind < 0)
		return 0;
	/* A kill has no duration, so it never counts as an active fault. */
	if (!fault_describe((unsigned)kind)->for_good)
		add_happening(r, at_us, HAPPENED_FAULT, r->faults.n);
	if (f->ended_wall_us != 0)
		add_happening(r, timeline_of_wall(g, f->ended_wall_us), HAPPENED_HEAL, r->faults.n);
	*LIST_ADD(&r->faults) = (struct msg_see_fault){ f->id,
							(uint8_t)kind,
							1,
							f->node,
							f->peer,
							(float)f->factor,
							at_us + (int64_t)f->ttl_ms * 1000 };
	return 0;
}

/* ---- commits in time ---- */

/* Puts the commits on the timeline, and computes the figures that the store does not have. */
static void place_commits(struct reading *g)
{
	struct recorded_run *r = g->r;
	double tokens = r->rehearsal ? 0
				     : (double)r->n_microbatches * r->run->batch * r->run->sequence;

	for (size_t i = 0; i < r->iterations.n; i++) {
		struct msg_see_iteration *it = &r->iterations.list[i];
		double seconds = (double)it->iteration_s * r->unit_s, whole;

		it->at_us = g->committed[i] != INT64_MIN ? g->committed[i] :
							   timeline_of_wall(g, it->at_us);
		if (i > 0 && it->at_us < r->iterations.list[i - 1].at_us)
			it->at_us = r->iterations.list[i - 1].at_us;
		if (g->busy_s[i] > 0 && it->alive > 0 && seconds > 0)
			it->idle_fraction = (float)(1 - g->busy_s[i] / (seconds * it->alive));
		whole = g->started[i] != INT64_MIN ? (double)(it->at_us - g->started[i]) * 1e-6 :
						     seconds + (double)it->sync_s * r->unit_s;
		it->tokens_per_s = whole > 0 ? (float)(tokens / whole) : 0;
		add_happening(r, it->at_us, HAPPENED_COMMIT, i);
	}
}

/* ---- all rows ---- */

static void prepare_reading(struct reading *g)
{
	size_t n = g->r->iterations.n;

	g->started = alloc_array(n, sizeof(*g->started));
	g->committed = alloc_array(n, sizeof(*g->committed));
	g->busy_s = alloc_array(n, sizeof(*g->busy_s));
	g->r->shifts = alloc_array(n, sizeof(*g->r->shifts));
	for (size_t i = 0; i < n; i++)
		g->started[i] = g->committed[i] = INT64_MIN;
}

/* Commits are read first, because moments complete their times. Moments are read before the rows
 * with wall times, because moments are the anchors for these rows. */
int recorded_run_rows(struct recorded_run *r, struct error *err)
{
	struct reading reading = { .r = r, .err = err }, *g = &reading;
	int rc = store_each_commit(r->store, 1, INT64_MAX, see_commit, g, err);

	prepare_reading(g);
	if (rc == 0)
		rc = store_each_plan(r->store, 0, see_plan, g, err);
	if (rc == 0)
		rc = store_each_moment(r->store, 0, see_moment, g, err);
	if (rc == 0 && g->anchors.n == 0)
		rc = error_set(err, -ENODATA,
			"nothing has happened in that run yet, or its record has no moments");
	if (rc == 0) {
		place_commits(g);
		rc = store_each_validation(r->store, see_validation, g, err);
	}
	if (rc == 0)
		rc = store_each_note(r->store, see_note, g, err);
	if (rc == 0)
		rc = store_each_fault(r->store, see_fault, g, err);
	free(g->anchors.list);
	free(g->started);
	free(g->committed);
	free(g->busy_s);
	return rc;
}
