/* first_stages.c - chooses the stages of a new run that was started without --stages.
 *
 * Until the choice, the model is divided provisionally: stage 1 has one layer, and agents measure
 * how fast they compute this layer. When links and compute are known, a thread chooses the number
 * of stages, their layers and their nodes (planning/stage_choice.h). The controller then welcomes
 * the agents again, with the chosen stages. */
#include "controller/joining/first_stages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process/cgroup.h"
#include "controller/iteration/iteration.h"
#include "controller/joining/agents.h"
#include "controller/members/announce.h"
#include "controller/members/capacity.h"
#include "controller/members/finish.h"
#include "controller/members/lifecycle.h"
#include "controller/members/member.h"
#include "controller/members/saved_state.h"
#include "controller/network/formats.h"
#include "controller/network/link_record.h"
#include "controller/network/link_table.h"
#include "controller/planning/stage_choice.h"
#include "controller/planning/stages.h"
#include "controller/run/journal.h"
#include "controller/run/disk.h"
#include "schedule/fleet/holds.h"
#include "schedule/format/request.h"

enum {
	/* Least number of microbatches of the configured size in an iteration */
	LEAST_MICROBATCHES = 48,
	THREADS_MOST = 8,
	SHOWN = 3 /* number of candidates that the journal lists */
};
static const double budget_s = 10;
/* key of the entry in the record that says that the stages are not chosen yet */
static const char awaits_stages[] = "awaits_stages";

/* ---- the record ---- */

int first_stages_record(struct run *run, struct error *err)
{
	return run->options.cluster.chooses_stages
		       ? store_set(run->record.store, awaits_stages, "yes", err)
		       : 0;
}

int first_stages_check_resumed(const struct run *run, struct error *err)
{
	struct error ignored;
	char *text;

	if (store_get(run->record.store, awaits_stages, &text, &ignored) != 0)
		return 0;
	free(text);
	return error_set(err, -EINVAL,
			 "%s: the run ended before its stages were chosen: begin it again in "
			 "another folder",
			 run->options.run_dir);
}

static int record_stages(struct members *members, struct error *err)
{
	const struct training *t = &members->run->training;
	struct store *store = members->run->record.store;
	int rc = store_stages(store, t->model_json, t->hyper.batch, t->n_shards, t->per_shard, err);

	if (rc == 0)
		rc = record_cluster(members, err);
	return rc ? rc : store_set(store, awaits_stages, NULL, err);
}

/* ---- the choice ---- */

/* Returns a number of microbatches that is at least the number of agents. */
static int count_microbatches(const struct members *members)
{
	int n = LEAST_MICROBATCHES;

	while (n < (int)members->n)
		n *= 2;
	return n;
}

void first_stages_begin(struct iteration *it)
{
	struct stage_question *q;
	struct error err = { "" };
	int threads = (int)fmin(cores_usable(), THREADS_MOST), rc;

	note(it->run, NOTE_EVENT, -1, 0, "choosing the stages for the agents that are here");
	rc = stage_question_new(it->members, count_microbatches(it->members), &q, &err);
	if (rc == 0 && !it->run->options.training.batch)
		stage_question_resize(q);
	if (rc == 0)
		rc = stage_choice_start(q, budget_s, threads, &it->planning->stage_choice, &err);
	if (rc != 0)
		controller_finish(it->members, 1, err.text);
}

/* Reports in the journal which stages were chosen, the next best candidates, and the nodes that are
 * left out. */
static void note_choice(struct run *run, const struct stage_choice *c)
{
	static const char *const ranks[SHOWN] = { "chosen", "second", "third" };
	char text[STAGE_CHOICE_TEXT];
	int node;

	for (int i = 0; i < SHOWN && stage_choice_candidate(c, i); i++) {
		stage_choice_describe(c, i, text);
		note(run, NOTE_EVENT, -1, 0, "%s: %.240s", ranks[i], text);
	}
	if (stage_choice_resized(c, text))
		note(run, NOTE_EVENT, -1, 0, "%.240s", text);
	for (int i = 0; (node = stage_choice_left_out(c, i, text)) >= 0; i++)
		note(run, NOTE_EVENT, node, 0, "n%02d is left out: %.200s (:recover n%02d takes "
		     "it in)", node, text, node);
}

/* Explains in the journal that the model does not fit, and that agents need less memory if they
 * recompute the activations of layers. */
static void explain(struct members *members, const struct stage_question *q, const char *why)
{
	struct model_shape less = q->shape;
	struct candidate_frame frame = q->frame;
	struct error ignored;
	char text[1024];

	less.kept_bytes[SHAPE_NORMS] = less.kept_bytes[SHAPE_BLOCK] = less.activation_bytes;
	frame.shape = &less;
	snprintf(text, sizeof(text), "%s%s", why,
		 holds_model(&frame, less.batch, CLUSTER_MOST_STAGES, &ignored) == 0
			 ? ". With agents that have --recompute block it fits"
			 : "");
	controller_finish(members, 1, text);
}

/* ---- the run uses the choice ---- */

/* Returns a stage for a node that is left out: the stage with the fewest nodes, but never stage
 * 0. */
static int spare_stage(const struct candidate *x, const struct candidate_frame *f)
{
	int best = 1;

	for (int s = 2; s < x->n_stages; s++)
		if (candidate_size(x, s, f) < candidate_size(x, best, f))
			best = s;
	return x->n_stages > 1 ? best : 0;
}

static int take_candidate(struct run *run, const struct stage_question *q,
			  const struct candidate *x, struct error *err)
{
	int stage_of[MSG_NODES], slots[MSG_NODES];
	struct stage_layers layers = { .n = (uint32_t)x->n_stages };

	for (int s = 0; s < x->n_stages; s++)
		layers.of[s] = (uint16_t)x->layers[s];
	for (int i = 0; i < run->cluster->n_nodes; i++) {
		stage_of[i] = spare_stage(x, &q->frame);
		slots[i] = 1;
	}
	for (int k = 0; k < q->fleet->n_nodes; k++) {
		if (x->stage_of[k] < 0)
			continue;
		stage_of[q->node_of[k]] = x->stage_of[k];
		slots[q->node_of[k]] = candidate_fit(x, k, &q->frame).slots;
	}
	run->training.hyper.batch = (uint32_t)x->sequences;
	return stages_take(run,
			   &(struct stages_chosen){ &layers, stage_of, slots,
						    q->frame.batch / x->sequences },
			   err);
}

/* Converts the measured task times to the chosen stages and microbatches. The times are valid for
 * a stage with the mean number of layers. The choice of stages may change this number and the
 * size of a microbatch. */
static void rescale_times(struct members *members, double ratio)
{
	for (uint32_t i = 0; i < members->n; i++) {
		members->list[i].compute.alone_forward_s *= ratio;
		members->list[i].compute.alone_backward_s *= ratio;
	}
}

static void leave_out(struct members *members, const struct stage_choice *c)
{
	char why[STAGE_CHOICE_TEXT];
	int node;

	for (int i = 0; (node = stage_choice_left_out(c, i, why)) >= 0; i++) {
		struct member *m = &members->list[node];

		member_mark(members, m, true);
		m->assigned.is_left_out = true;
		member_apply(members->run, m, EVENT_MARK, "left out by the choice of stages");
	}
	/* Saves the members again: member_mark saved these nodes as marked, but not yet as left
	 * out */
	resume_save(members);
}

/* Sends the agents a new welcome, which makes them forget the provisional stages and their peers.
 * The agents therefore get their peers again. */
static void welcome_again(struct members *members)
{
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		m->assigned.number = 0;
		m->assigned.is_welcomed = false;
		m->peers.arrivals_sent = 0;
	}
	members_welcome(members);
	consoles_run(members);
}

static int take(struct iteration *it, const struct stage_choice *c, struct error *err)
{
	const struct stage_question *q = stage_choice_question(c);
	struct members *members = it->members;
	struct training *t = &it->run->training;
	double work = t->hyper.batch * capacity_unit_layers(&t->model);
	int rc = take_candidate(it->run, q, stage_choice_candidate(c, 0), err);

	if (rc != 0)
		return rc;
	rescale_times(members, t->hyper.batch * capacity_unit_layers(&t->model) / work);
	routes_fini(&it->routes);
	routes_init(&it->routes, t->n_shards * t->per_shard, members->n);
	members->links->replicas =
		link_table_replicas(members->n, (size_t)it->run->cluster->n_stages);
	formats_set_bytes(members->links, t, &it->run->cluster->formats);
	link_table_apply_all(members->links, it->run->cluster);
	return 0;
}

bool first_stages_turn(struct iteration *it)
{
	struct stage_choice *c = it->planning->stage_choice;
	struct error err = { "" };
	int rc;

	if (!c || !stage_choice_is_done(c) || disk_waits(it->run))
		return false;
	it->planning->stage_choice = NULL;
	rc = stage_choice_result(c, &err);
	if (rc == 0)
		rc = take(it, c, &err);
	if (rc == 0)
		rc = record_stages(it->members, &err);
	if (rc == 0) {
		note_choice(it->run, c);
		it->run->options.cluster.chooses_stages = false;
		it->planning->has_chosen_stages = true;
		leave_out(it->members, c);
		welcome_again(it->members);
	} else if (rc == PLAN_INFEASIBLE) {
		explain(it->members, stage_choice_question(c), err.text);
	} else {
		controller_finish(it->members, 1, err.text);
	}
	stage_choice_free(c);
	return rc == 0;
}
