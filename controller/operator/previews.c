/* previews.c - predicts the effect of commands, and makes plans for comparison.
 *
 * An operator should know what a command costs before giving it. For a preview, the controller asks
 * the planner for the plan that the run would have after the command, and compares it with the plan
 * in force. For a comparison, the controller sends the whole plan to the console's Compare view.
 * Neither a preview nor a comparison changes the run. */
#include "base/skip_schedule.h"
#include "controller/operator/previews.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "controller/iteration/iteration.h"
#include "controller/iteration/plan_message.h"
#include "controller/operator/acts.h"
#include "controller/operator/command.h"
#include "controller/operator/console_messages.h"
#include "controller/operator/undo.h"
#include "controller/planning/contingency.h"
#include "controller/planning/replan.h"
#include "controller/planning/request.h"
#include "controller/run/outcome.h"
#include "controller/run/rates.h"
#include "controller/run/stream.h"

/* A preview or comparison that waits for the planner. */
struct awaited {
	uint64_t request; /* number of the request to the planner */
	post_peer_id console;
	uint64_t command;
	enum command_verb verb;
	char text[128];
};

/* The limit on comparisons for one admitted key. All consoles with this key share the limit.
 * `name` is the key's name. */
struct asker {
	char name[64];
	struct rate_limit comparisons;
};

enum {
	COMPARED_MAX = 16,
	COMPARED_MAX_EACH = 4,
	COMPARED_AT_ONCE = 64,
	AWAITED_MAX = 2 * COMPARED_MAX
};
static const double compared_per_s = 0.5;

/* Returns the median error of the last predictions. */
static float find_prediction_error(const struct iteration *it)
{
	double errors[sizeof(it->prediction.errors) / sizeof(it->prediction.errors[0])];

	for (uint32_t i = 0; i < it->prediction.n; i++)
		errors[i] = (double)it->prediction.errors[i];
	return (float)array_median(errors, it->prediction.n);
}

static void answer_now(struct run *run, struct console *to, const struct msg_command *m,
		       bool feasible, const char *text)
{
	struct msg out = { .type = MSG_SEE_PREVIEW };

	out.u.see_preview = (struct msg_see_preview){ .command = m->id,
						      .verb = m->verb,
						      .feasible = feasible,
						      .iteration = run->committed + 2 };
	snprintf(out.u.see_preview.text, sizeof(out.u.see_preview.text), "%s", text);
	console_send(run, to, &out);
}

/* Fills in a request for the run as it is now. excluded: array of MSG_NODES, borrowed by q. */
static void fill_request(const struct members *members, struct planner_request *q, bool *excluded)
{
	replan_request(members, q, excluded);
	q->kind = PLANNER_PREVIEW;
	q->from = members->run->plan->plan;
	q->budget_s = replan_budget_s(members->run, 0.15);
	q->reason = "preview";
}

/* Fills in a request for the run as it would be after the command. Returns true if the command is
 * possible; otherwise sets the reason in *o. */
static bool fill_hypothetical(const struct planning *planning, const struct msg_command *m,
			      struct planner_request *q, bool *excluded, struct outcome *o)
{
	bool formats = m->verb == COMMAND_WIRE || m->verb == COMMAND_SUM_WIRE;
	bool changes_node = m->node >= 0 && m->verb != COMMAND_SKIP && !formats;

	fill_request(planning->members, q, excluded);
	if (changes_node && (uint32_t)m->node >= planning->members->n) {
		outcome_set(o, -EINVAL, "there is no node %d", m->node);
		return false;
	}
	if (changes_node)
		excluded[m->node] = m->verb != COMMAND_RECOVER;
	if (m->verb == COMMAND_SKIP && !acts_may_skip(planning->run, m->value, o))
		return false;
	if (m->verb == COMMAND_SKIP) {
		q->path_length =
			planning->run->cluster->n_stages - (int)skip_share_stages(m->value);
		q->skip_share = (int)skip_share_of(m->value);
	}
	if (formats && !acts_take_format(m, &q->formats, o))
		return false;
	q->from = replan_from(planning, q);
	return true;
}

static void await_answer(struct previews *p, const struct planning *planning,
			 const struct console *to, const struct msg_command *m,
			 const struct planner_request *q, const char *text)
{
	struct awaited *a;

	if (!p->awaited)
		p->awaited = alloc_array(AWAITED_MAX, sizeof(*p->awaited));
	/* The list is full, so the oldest request is dropped */
	if (p->n_awaited == AWAITED_MAX)
		memmove(p->awaited, p->awaited + 1, --p->n_awaited * sizeof(*p->awaited));
	a = &p->awaited[p->n_awaited++];
	*a = (struct awaited){ replan_send(planning->members, planning->planner, q), to->peer,
			       m->id, (enum command_verb)m->verb, "" };
	snprintf(a->text, sizeof(a->text), "%.120s", text);
}

/* Returns true if the run would have another plan after the command. */
static bool needs_plan(const struct msg_command *m)
{
	return m->verb == COMMAND_SKIP || m->verb == COMMAND_FAIL || m->verb == COMMAND_RECOVER ||
	       m->verb == COMMAND_INJECT || m->verb == COMMAND_WIRE || m->verb == COMMAND_SUM_WIRE;
}

/* Answers a preview of `finish` with a text, because this command changes no plan. undo: if the
 * preview is of an undo, a text that says which act is undone; otherwise "". */
static void answer_finish(struct run *run, struct console *to, const struct msg_command *asked,
			  int64_t iterations, const char *undo)
{
	struct finish_order f;
	struct outcome o = { 0, "" };
	bool feasible = rates_may_finish(run, iterations, &o);
	char text[RATES_TEXT] = "the rate stays, and the run continues";

	if (feasible && iterations > 0) {
		rates_plan_finish(run, (uint32_t)iterations, &f);
		rates_finish_text(run, &f, text);
	}
	if (feasible)
		outcome_set(&o, 0, "%.40s%s%.150s", undo, *undo ? "; " : "", text);
	answer_now(run, to, asked, feasible, o.text);
}

void previews_ask(struct operators *ops, struct console *to, const struct msg_command *m)
{
	bool excluded[MSG_NODES];
	struct planner_request q;
	struct msg_command back = *m;
	struct outcome o = { 0, "" };

	if (m->verb == COMMAND_UNDO) {
		struct act *chosen = undo_find(&ops->acts, m->value, &o);

		if (chosen)
			undo_inverse(ops->run, chosen, &back, &o);
	}
	if (o.status == 0 && back.verb == COMMAND_FINISH)
		answer_finish(ops->run, to, m, back.value, o.text);
	else if (!ops->run->plan)
		answer_now(ops->run, to, m, false, "there is no plan yet");
	else if (o.status != 0 || !needs_plan(&back))
		answer_now(ops->run, to, m, o.status == 0, o.text);
	else if (!fill_hypothetical(ops->planning, &back, &q, excluded, &o))
		answer_now(ops->run, to, m, false, o.text);
	else
		await_answer(&ops->previews, ops->planning, to, m, &q, o.text);
}

static struct asker *asker_of(struct previews *p, const char *name)
{
	struct asker *a;

	for (uint32_t i = 0; i < p->n_askers; i++)
		if (strcmp(p->askers[i].name, name) == 0)
			return &p->askers[i];
	array_reserve(&p->askers, &p->room_askers, p->n_askers + 1, sizeof(*p->askers));
	a = &p->askers[p->n_askers++];
	*a = (struct asker){ .comparisons = { 0 } };
	snprintf(a->name, sizeof(a->name), "%s", name);
	return a;
}

/* Returns true if the console may ask for another comparison. A comparison occupies the planner for
 * a second. The number of waiting comparisons is therefore limited, for each key and for all keys
 * together. The rate is limited for each key. */
static bool may_compare(struct previews *p, struct run *run, const struct console *to)
{
	struct asker *a = asker_of(p, to->name);
	uint32_t all = 0, own = 0;

	for (uint32_t i = 0; i < p->n_awaited; i++) {
		const struct console *other = console_of_peer(run, p->awaited[i].console);

		if (p->awaited[i].verb != COMMAND_COMPARE)
			continue;
		all++;
		own += other && strcmp(other->name, to->name) == 0;
	}
	return a && all < COMPARED_MAX && own < COMPARED_MAX_EACH &&
	       rate_limit_take(&a->comparisons, 1, COMPARED_AT_ONCE, compared_per_s,
			       run->now_us);
}

void previews_ask_candidate(struct previews *p, const struct planning *planning, struct console *to,
			    const struct msg_command *m, struct outcome *o)
{
	struct members *members = planning->members;
	struct run *run = planning->run;
	bool excluded[MSG_NODES];
	struct planner_request q;
	char name[32];
	struct error err;

	if (!run->plan) {
		outcome_set(o, -EAGAIN, "there is no plan yet");
		return;
	}
	fill_request(members, &q, excluded);
	if (compare_request(m, run->cluster->n_stages, cluster_most_skipped(run->cluster),
			    members->n, excluded, &q, name, sizeof(name), &err) != 0) {
		outcome_set(o, -EINVAL, "%.180s", err.text);
	} else if (!may_compare(p, run, to)) {
		outcome_set(o, -EAGAIN, "too many comparisons: wait a little");
	} else {
		if (q.from)
			q.from = replan_from(planning, &q);
		await_answer(p, planning, to, m, &q, name);
		outcome_set(o, 0, "planning %s", name);
	}
}

static uint32_t find_least_visited(const struct planned *p, uint32_t *stage)
{
	uint32_t n = UINT32_MAX;

	for (int s = 1; s < p->trace->n_stages; s++) {
		if ((uint32_t)p->trace->exposure[s] < n) {
			n = (uint32_t)p->trace->exposure[s];
			*stage = (uint32_t)s;
		}
	}
	return n;
}

static uint32_t paths_changed(const struct plan *a, const struct plan *b)
{
	int n = a->n_microbatches < b->n_microbatches ? a->n_microbatches : b->n_microbatches;
	uint32_t changed = 0;

	for (int i = 0; i < n; i++) {
		const struct plan_microbatch *x = &a->microbatches[i], *y = &b->microbatches[i];

		changed += x->length != y->length ||
			   memcmp(x->path, y->path, (size_t)x->length * sizeof(int)) != 0;
	}
	return changed;
}

static void compare_plans(struct run *run, const struct planned *a, struct msg_see_preview *s)
{
	const struct planned *now = run->plan;
	int memory = 0;

	s->before_iteration_s = (float)now->plan->predicted.iteration_s;
	s->before_sync_s = (float)plan_visible_sync_s(now->plan);
	s->before_wait_s = (float)now->plan->predicted.collision_wait_s;
	s->before_peak_slots = plan_peak_slots(now);
	s->before_path_length = (uint32_t)now->plan->path_length;
	s->after_iteration_s = (float)a->plan->predicted.iteration_s;
	s->after_sync_s = (float)plan_visible_sync_s(a->plan);
	s->after_wait_s = (float)a->plan->predicted.collision_wait_s;
	s->after_peak_slots = plan_peak_slots(a);
	s->after_path_length = (uint32_t)a->plan->path_length;
	s->after_least_visits = find_least_visited(a, &s->least_stage);
	s->before_least_visits = (uint32_t)now->trace->exposure[s->least_stage];
	s->paths_changed = paths_changed(now->plan, a->plan);
	for (int i = 0; i < run->cluster->n_nodes; i++)
		if (run->cluster->nodes[i].memory > memory)
			memory = run->cluster->nodes[i].memory;
	s->memory = (uint32_t)memory;
}

/* Moves the entry that waits for this request from the list to *out. Returns false if there is no
 * such entry. */
static bool take_awaited(struct previews *p, uint64_t request, struct awaited *out)
{
	for (uint32_t i = 0; i < p->n_awaited; i++) {
		if (p->awaited[i].request != request)
			continue;
		*out = p->awaited[i];
		memmove(&p->awaited[i], &p->awaited[i + 1],
			(--p->n_awaited - i) * sizeof(*p->awaited));
		return true;
	}
	return false;
}

/* Sends the plan as a candidate, or the reason why the planner found no plan. */
static void send_candidate(struct iteration *it, struct console *to, const struct awaited *asked,
			   const struct planned *a)
{
	struct msg no = { .type = MSG_SEE_REPLY };
	struct msg_see_reply *reply = &no.u.see_reply;

	if (a->plan && console_candidate(it, to, a, asked->text) == 0)
		return;
	*reply = (struct msg_see_reply){ .command = asked->command, .status = -ENOENT };
	snprintf(reply->text, sizeof(reply->text), "%.180s",
		 a->plan ? "it has another number of microbatches than the run" : a->infeasible);
	console_send(it->run, to, &no);
}

static void send_preview(struct iteration *it, struct console *to, const struct awaited *asked,
			 const struct planned *a)
{
	struct msg m = { .type = MSG_SEE_PREVIEW };
	struct msg_see_preview *s = &m.u.see_preview;

	*s = (struct msg_see_preview){ .command = asked->command,
				       .verb = (uint8_t)asked->verb,
				       .feasible = a->plan != NULL,
				       .iteration = it->run->committed + 2,
				       .median_error = find_prediction_error(it),
				       .n_predictions = it->prediction.n,
				       .elapsed_s = (float)a->elapsed_s };
	snprintf(s->text, sizeof(s->text), "%.190s",
		 !a->plan        ? a->infeasible
		 : a->instead[0] ? a->instead
				 : asked->text);
	if (a->plan && it->run->plan)
		compare_plans(it->run, a, s);
	console_send(it->run, to, &m);
}

void previews_answered(struct previews *p, struct iteration *it, struct planned *a)
{
	struct awaited asked;
	struct console *to = take_awaited(p, a->request, &asked)
				     ? console_of_peer(it->run, asked.console)
				     : NULL;

	if (to && asked.verb == COMMAND_COMPARE)
		send_candidate(it, to, &asked, a);
	else if (to)
		send_preview(it, to, &asked, a);
	planned_free(a);
}

void previews_fini(struct previews *p)
{
	free(p->awaited);
	free(p->askers);
}
