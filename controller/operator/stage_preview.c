/* stage_preview.c - compares the run's stages with those that would be chosen now
 * (stage_preview.h).
 *
 * A choice takes seconds, so a thread makes it (planning/stage_choice.h). The thread plans and
 * simulates the present stages in the same way, so that both iteration times can be compared. Nodes
 * count as joined or lost for good once the set of connected nodes has not changed for a minute. */
#include "controller/operator/stage_preview.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "controller/joining/recut.h"
#include "controller/joining/recut_order.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/operator/command.h"
#include "controller/planning/planning.h"
#include "controller/planning/stage_choice.h"
#include "controller/run/journal.h"
#include "controller/run/outcome.h"

enum { FOR_GOOD_US = 60000000, LIST = 160 };
/* budget_s: seconds that a choice of stages may take. If no operator has asked, the controller
 * proposes other stages only if an iteration takes more than `worth` times as long with the
 * present stages. */
static const double budget_s = 8, worth = 1.1;
static const uint64_t hash_basis = 0xcbf29ce484222325u, hash_prime = 0x100000001b3u;

static int start(struct stage_preview *p, const struct members *members, struct error *err)
{
	const struct training *t = &members->run->training;
	struct stage_question *q;
	int rc = stage_question_new(members, (int)(t->n_shards * t->per_shard), &q, err);

	return rc ? rc : stage_choice_start(q, budget_s, 1, &p->choice, err);
}

void act_stages(struct operators *ops, const char *who, const struct msg_command *m,
		struct outcome *o)
{
	struct error err = { "" };
	int rc = 0;

	(void)who;
	(void)m;
	if (ops->run->phase == PHASE_GATHERING || !ops->run->plan) {
		outcome_set(o, -EAGAIN, "the run has no plan yet");
		return;
	}
	if (!ops->stages.choice)
		rc = start(&ops->stages, ops->members, &err);
	ops->stages.is_asked = true;
	if (rc != 0)
		outcome_set(o, rc, "%.150s", err.text);
	else
		outcome_set(o, 0, "choosing stages: the journal has the answer in some seconds");
}

/* Fills in order->here: the nodes that can have a stage now. */
static void list_here(const struct members *members, struct recut_order *order)
{
	order->n_here = members->n;
	for (uint32_t i = 0; i < members->n; i++)
		order->here[i] = member_alive(&members->list[i]) && !members->list[i].is_marked;
}

bool cut_order_read(const struct stage_preview *p, const struct members *members,
		    const char *layers, struct recut_order *order, struct outcome *o)
{
	struct error err = { "" };

	if (layers[0] && stage_layers_parse(&order->layers, "cut", layers, &err) != 0) {
		outcome_set(o, -EINVAL, "%.150s", err.text);
		return false;
	}
	if (!layers[0] && !p->proposal) {
		outcome_set(o, -EINVAL, "no stages are proposed: ask for some with stages, or "
					"give the layers, as 0,7,5");
		return false;
	}
	if (!layers[0])
		*order = *p->proposal;
	list_here(members, order);
	return true;
}

void act_cut(struct operators *ops, const char *who, const struct msg_command *m, struct outcome *o)
{
	struct recut_order *order = alloc_new(sizeof(*order));
	const struct stage_preview *p = &ops->stages;

	if (!m->text[0] && p->previewed != 0 && p->previewed != p->n_proposals) {
		outcome_set(o, -ESTALE, "other stages were proposed after the preview: see them "
					"with cut");
	} else if (cut_order_read(p, ops->members, m->text, order, o)) {
		recut_command(ops->run, order, o);
		if (o->status == 0)
			note(ops->run, NOTE_COMMAND, -1, 0, "cut %.100s (%s): %.80s",
			     m->text[0] ? m->text : "as proposed", who, o->text);
	}
	free(order);
}

/* ---- the answer ---- */

static void list_numbers(const int *numbers, int n, char out[LIST])
{
	size_t used = 0;

	out[0] = '\0';
	for (int s = 0; s < n && used < LIST; s++)
		used += (size_t)snprintf(out + used, LIST - used, "%s%d", s ? "," : "", numbers[s]);
}

static bool is_present(const struct candidate *x, const struct stage_question *q)
{
	for (int s = 0; s < x->n_stages; s++)
		if (x->n_stages != q->present.n_stages || x->layers[s] != q->present.layers[s])
			return false;
	return true;
}

/* Reports in the journal the iteration time with the present stages and with the chosen stages. */
static void note_present(struct run *run, const struct stage_choice *c)
{
	const struct stage_question *q = stage_choice_question(c);
	const struct candidate *best = stage_choice_candidate(c, 0);
	double now_s = stage_choice_present_s(c);
	char layers[LIST];

	list_numbers(q->present.layers, q->present.n_stages, layers);
	if (is_present(best, q))
		note(run, NOTE_PREDICTION, -1, 0, "stages: the run has these layers already");
	else if (isfinite(now_s))
		note(run, NOTE_PREDICTION, -1, 0,
		     "stages: the present %.150s layers take %.3g s by the same simulation: the "
		     "change saves %.0f%%", layers, now_s, 100 * (1 - best->seconds / now_s));
	else
		note(run, NOTE_PREDICTION, -1, 0,
		     "stages: the present %.150s layers have no plan in this simulation, so the "
		     "two cannot be compared", layers);
}

/* Stores the proposal, and names in the journal the command that applies it. */
static void propose(struct stage_preview *p, const struct members *members,
		    const struct stage_choice *c)
{
	const struct candidate *best = stage_choice_candidate(c, 0);
	char layers[LIST];

	free(p->proposal);
	p->proposal = NULL;
	if (is_present(best, stage_choice_question(c)))
		return;
	p->proposal = alloc_new(sizeof(*p->proposal));
	p->n_proposals++;
	recut_order_of_candidate(p->proposal, best, stage_choice_question(c), members->n);
	list_numbers(best->layers, best->n_stages, layers);
	note(members->run, NOTE_PREDICTION, -1, 0,
	     "stages: the command cut applies them after a commit (%.150s layers)", layers);
}

static void answer(struct stage_preview *p, const struct members *members)
{
	const struct stage_choice *c = p->choice;
	struct run *run = members->run;
	struct error err = { "" };
	char text[STAGE_CHOICE_TEXT];
	double now_s = stage_choice_present_s(c);

	if (stage_choice_result(c, &err) != 0) {
		if (p->is_asked)
			note(run, NOTE_WARNING, -1, 0, "stages: no choice: %.200s", err.text);
		return;
	}
	if (!p->is_asked && !(isfinite(now_s) &&
			   now_s > worth * stage_choice_candidate(c, 0)->seconds))
		return;
	stage_choice_describe(c, 0, text);
	note(run, NOTE_PREDICTION, -1, 0, "stages: %s: %.220s",
	     p->is_asked ? "best for these nodes" : "nodes have changed, and better is now", text);
	for (int i = 0, node; (node = stage_choice_left_out(c, i, text)) >= 0; i++)
		note(run, NOTE_PREDICTION, node, 0, "stages: without n%02d: %.200s", node, text);
	note_present(run, c);
	propose(p, members, c);
}

/* ---- nodes that join or leave for good ---- */

static uint64_t hash_nodes(const struct members *members)
{
	uint64_t hash = hash_basis;

	for (uint32_t i = 0; i < members->n; i++)
		if (member_alive(&members->list[i]) && !members->list[i].is_marked)
			hash = (hash ^ (i + 1)) * hash_prime;
	return hash;
}

/* Returns true if nodes have joined or left for good, and no choice was made for the new set of
 * nodes. */
static bool have_changed(struct stage_preview *p, const struct members *members)
{
	int64_t now_us = members->run->now_us;
	uint64_t nodes = hash_nodes(members);

	if (nodes != p->nodes) {
		p->is_considered = p->nodes == 0;
		p->nodes = nodes;
		p->changed_us = now_us;
	}
	return !p->is_considered && now_us - p->changed_us > FOR_GOOD_US;
}

void stage_preview_turn(struct stage_preview *p, const struct members *members)
{
	const struct run *run = members->run;
	struct error err = { "" };

	if (run->phase == PHASE_GATHERING || !run->plan)
		return;
	if (p->choice) {
		if (!stage_choice_is_done(p->choice))
			return;
		answer(p, members);
		stage_choice_free(p->choice);
		p->choice = NULL;
		p->is_asked = false;
	} else if (have_changed(p, members)) {
		p->is_considered = true;
		if (start(p, members, &err) != 0)
			log_line(&run->log, LOG_INFO, "stages: %s", err.text);
	}
}

void stage_preview_fini(struct stage_preview *p)
{
	free(p->proposal);
	p->proposal = NULL;
	stage_choice_free(p->choice);
	p->choice = NULL;
}
