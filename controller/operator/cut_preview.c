/* cut_preview.c - compares the present stages with those that a command `cut` would give
 * (cut_preview.h). */
#include "controller/operator/cut_preview.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "controller/joining/recut_order.h"
#include "controller/joining/recut_record.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/operator/command.h"
#include "controller/operator/stage_preview.h"
#include "controller/planning/stage_choice.h"
#include "controller/run/outcome.h"
#include "controller/run/stream.h"
#include "controller/weights/placement.h"
#include "model/cut.h"
#include "model/tensor.h"

enum { NODES_TEXT = 28, LAYERS_SHOWN = 24 };
static const double mega = 1e6;

static void send_answer(struct run *run, struct console *to, uint64_t command, bool feasible,
			const char *text, const double seconds[2])
{
	struct msg m = { .type = MSG_SEE_PREVIEW };

	m.u.see_preview = (struct msg_see_preview){ .command = command,
						    .verb = COMMAND_CUT,
						    .feasible = feasible,
						    .iteration = run->committed + 2 };
	if (seconds && isfinite(seconds[0]) && isfinite(seconds[1])) {
		m.u.see_preview.before_iteration_s = (float)seconds[0];
		m.u.see_preview.after_iteration_s = (float)seconds[1];
	}
	snprintf(m.u.see_preview.text, sizeof(m.u.see_preview.text), "%s", text);
	console_send(run, to, &m);
}

/* ---- what changes ---- */

/* Returns true if the node gets other layers, or if it gains or loses the embedding. */
static bool moves(const struct run *run, const struct recut_record *r, const struct member *m)
{
	const struct model_config *now = &run->training.model;
	int was = member_stage(run, m), to = r->stage_of[m->id];

	return to >= 0 && (was < 0 || (was == 0) != (to == 0) ||
			   model_first_layer(now, (uint32_t)was) !=
				   model_first_layer(&r->model, (uint32_t)to) ||
			   model_layer_count(now, (uint32_t)was) !=
				   model_layer_count(&r->model, (uint32_t)to));
}

/* Sets the numbers of bytes that nodes send to the controller, and that nodes read from the
 * controller. */
static int count_bytes(const struct members *members, const struct recut_record *r, double *sent,
		       double *read, struct error *err)
{
	struct tensor_table table;
	int rc = tensor_table_new(&table, &r->model, err);

	*sent = *read = 0;
	if (rc != 0)
		return rc;
	for (uint32_t s = 0; s < r->model.n_stages; s++)
		*sent += STATE_BYTES * (double)tensor_table_parameters(&table, s);
	for (uint32_t i = 0; i < members->n; i++)
		if (r->stage_of[i] >= 0)
			*read += STATE_BYTES *
				 (double)tensor_table_parameters(&table, (uint32_t)r->stage_of[i]);
	tensor_table_free(&table);
	return 0;
}

/* Shortens a long list of layers: cuts it off after a comma, and appends "...". */
static void shorten(char layers[STAGE_LAYERS_TEXT])
{
	size_t end = LAYERS_SHOWN - strlen("...");

	if (strlen(layers) <= LAYERS_SHOWN)
		return;
	while (end > 0 && layers[end - 1] != ',')
		end--;
	strcpy(layers + end, "...");
}

static int describe(const struct members *members, const struct recut_record *r,
		    char text[CUT_PREVIEW_TEXT], struct error *err)
{
	char before[STAGE_LAYERS_TEXT], after[STAGE_LAYERS_TEXT], nodes[NODES_TEXT] = "";
	size_t used = 0;
	int n_moved = 0, n_used = 0, rc;
	double sent, read;

	for (uint32_t i = 0; i < members->n; i++) {
		n_used += r->stage_of[i] >= 0;
		if (!moves(members->run, r, &members->list[i]))
			continue;
		n_moved++;
		if (used + sizeof(" n999 ...") < sizeof(nodes))
			used += (size_t)snprintf(nodes + used, sizeof(nodes) - used, " n%02u", i);
		else if (nodes[used - 1] != '.')
			used += (size_t)snprintf(nodes + used, sizeof(nodes) - used, "...");
	}
	rc = count_bytes(members, r, &sent, &read, err);
	model_cut_format(&members->run->training.model, before);
	model_cut_format(&r->model, after);
	shorten(before);
	shorten(after);
	snprintf(text, CUT_PREVIEW_TEXT,
		 "layers %.24s -> %.24s; %d of %d nodes get other layers%s%s; "
		 "files: %.3g MB to the controller, %.3g MB from it",
		 before, after, n_moved, n_used, n_moved ? ":" : "", nodes, sent / mega,
		 read / mega);
	return rc;
}

/* ---- the simulation ---- */

static int compare(struct cut_preview *p, const struct members *members,
		   const struct recut_record *r, struct error *err)
{
	const struct training *t = &members->run->training;
	struct stage_question *q;
	int rc = stage_question_new(members, (int)(t->n_shards * t->per_shard), &q, err);

	if (rc != 0)
		return rc;
	stage_question_compare(q, &r->model, r->stage_of);
	return stage_choice_start(q, 0, 1, &p->comparison, err);
}

static int begin(struct cut_preview *p, const struct members *members,
		 const struct recut_record *r, struct error *err)
{
	int rc = describe(members, r, p->text, err);

	return rc ? rc : compare(p, members, r, err);
}

/* Keeps the request until the comparison under way has ended. */
static void keep_for_later(struct cut_preview *p, struct run *run, const struct console *from,
			   const struct msg_command *m)
{
	struct console *to = p->has_next ? console_of_peer(run, p->next_console) : NULL;

	if (to)
		send_answer(run, to, p->next.id, false, "a newer preview replaces this one",
			    NULL);
	p->has_next = true;
	p->next_console = from->peer;
	p->next = *m;
}

void cut_preview_ask(struct operators *ops, struct console *to, const struct msg_command *m)
{
	struct recut_order *order;
	struct recut_record r = { .after = 0 };
	struct outcome o = { 0, "" };
	struct error err = { "" };
	const char *layers = m->text + strlen("preview");
	int rc;

	layers += *layers == ' ';
	if (ops->cut.comparison) {
		keep_for_later(&ops->cut, ops->run, to, m);
		return;
	}
	order = alloc_new(sizeof(*order));
	if (!ops->run->plan || ops->run->committed == 0)
		outcome_set(&o, -EAGAIN, "the run has no commit yet");
	else if (cut_order_read(&ops->stages, ops->members, layers, order, &o)) {
		if (!layers[0])
			ops->stages.previewed = ops->stages.n_proposals;
		rc = recut_record_make(&r, ops->run->record.store, order, "cut", &err);
		if (rc == 1)
			outcome_set(&o, 0, "the run has these stages already");
		else if (rc != 0 || begin(&ops->cut, ops->members, &r, &err) != 0)
			outcome_set(&o, -EINVAL, "%.150s", err.text);
	}
	if (o.status == 0 && ops->cut.comparison) {
		ops->cut.console = to->peer;
		ops->cut.command = m->id;
	} else {
		send_answer(ops->run, to, m->id, o.status == 0, o.text, NULL);
	}
	recut_record_free(&r);
	free(order);
}

void cut_preview_turn(struct operators *ops)
{
	struct cut_preview *p = &ops->cut;
	const struct stage_choice *c = p->comparison;
	struct console *to;

	if (!c || !stage_choice_is_done(c))
		return;
	to = console_of_peer(ops->run, p->console);
	if (to)
		send_answer(ops->run, to, p->command, true, p->text,
			    (double[2]){ stage_choice_present_s(c), stage_choice_wanted_s(c) });
	stage_choice_free(p->comparison);
	p->comparison = NULL;
	if (!p->has_next)
		return;
	p->has_next = false;
	to = console_of_peer(ops->run, p->next_console);
	if (to)
		cut_preview_ask(ops, to, &p->next);
}

void cut_preview_fini(struct cut_preview *p)
{
	stage_choice_free(p->comparison);
	p->comparison = NULL;
}
