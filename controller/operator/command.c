/* command.c - the operator's acts. Each is refused with a reason, or journalled, done, and where
 * that is possible undone. Previews are planned in the background and change nothing.
 *
 * Acts need the operator's lease, so that two consoles cannot fight: exclusive, and it ends by
 * itself. Faults injected end with their time to live, or with the lease of whoever injected them.
 */
#include "controller/operator/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "controller/controller.h"
#include "controller/history/finish.h"
#include "controller/history/record.h"
#include "controller/history/run_state.h"
#include "controller/members/assign.h"
#include "controller/members/member.h"
#include "controller/members/node_state.h"
#include "controller/operator/announce.h"
#include "controller/operator/drill.h"
#include "controller/operator/journal.h"
#include "controller/operator/console_messages.h"
#include "controller/operator/stream.h"
#include "controller/operator/supervisor.h"
#include "controller/planning/contingency.h"
#include "controller/planning/request.h"
#include "controller/planning/replan.h"
#include "controller/trust/suspicion.h"

/* A thing done. */
struct act {
	uint64_t id;
	enum command_verb verb;
	int node;
	int64_t value, before; /* SKIP: stages skipped; INJECT: the fault's id */
	bool undone;
	char who[64];
};

/* A preview under way. */
struct awaited {
	uint64_t request; /* the planner's */
	post_peer_id console;
	uint64_t command;
	enum command_verb verb;
	char text[128];
};

/* Who has plans compared, by the name that its key was admitted under: all of its consoles together. */
struct asker {
	char name[64];
	struct rate_limit comparisons;
};

enum { COMPARED_MOST = 16, COMPARED_OWN = 4, COMPARED_AT_ONCE = 64 };
static const double compared_per_s = 0.5;

enum { AWAITED_MOST = 2 * COMPARED_MOST, FAULT_TTL_MS = 60000, SCRIPTED_TTL_MS = 10000, LEASE_MOST_S = 86400 };

float prediction_error(const struct controller *c)
{
	float sorted[64];

	for (uint32_t i = 0; i < c->record.n; i++) {
		uint32_t k = i;

		for (; k > 0 && sorted[k - 1] > c->record.errors[i]; k--)
			sorted[k] = sorted[k - 1];
		sorted[k] = c->record.errors[i];
	}
	return c->record.n ? sorted[c->record.n / 2] : 0;
}

/* ---- doing ---- */

static struct act *journal_act(struct controller *c, const char *who, enum command_verb verb, int node,
			   int64_t value, int64_t before)
{
	if (!array_grow(&c->operators.acts, &c->operators.room_acts, c->operators.n_acts + 1, sizeof(*c->operators.acts)))
		return NULL;
	c->operators.acts[c->operators.n_acts] = (struct act){ c->operators.n_acts + 1, verb, node, value, before, false, "" };
	snprintf(c->operators.acts[c->operators.n_acts].who, sizeof(c->operators.acts[0].who), "%s", who);
	return &c->operators.acts[c->operators.n_acts++];
}

struct outcome {
	int status;
	char text[192];
};

static void outcome_set(struct outcome *o, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void outcome_set(struct outcome *o, int status, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(o->text, sizeof(o->text), format, ap);
	va_end(ap);
	o->status = status;
}

/* false, with the reason. */
static bool may_skip(const struct controller *c, int64_t skip, struct outcome *o)
{
	if (skip < 0 || skip >= c->cluster->n_stages)
		outcome_set(o, -EINVAL, "stage 0 is never skipped: 0 to %d of %d",
			    c->cluster->n_stages - 1, c->cluster->n_stages);
	else if (skip > 0 && c->options.algorithm == PLAN_DTFM)
		outcome_set(o, -EPERM, "this run is planned by dtfm, which visits every stage");
	else
		return true;
	return false;
}

static void do_skip(struct controller *c, const char *who, int64_t skip, struct outcome *o)
{
	int64_t stages = c->cluster->n_stages, before = stages - c->path_length;

	if (!may_skip(c, skip, o))
		return;
	if (skip == before) {
		outcome_set(o, 0, "it is %lld/%lld already", (long long)skip, (long long)stages);
		return;
	}
	journal_act(c, who, COMMAND_SKIP, -1, skip, before);
	c->path_length = (uint32_t)(stages - skip);
	note(c, NOTE_COMMAND, -1, 'S', "skip %lld/%lld -> %lld/%lld (%s), from it%llu", (long long)before,
	     (long long)stages, (long long)skip, (long long)stages, who,
	     (unsigned long long)c->committed + 1 + (c->iteration > c->committed));
	outcome_set(o, 0, "planning skip %lld/%lld", (long long)skip, (long long)stages);
	resume_save(c);
	replan(c, "the skip ratio was changed");
}

static struct member *named_member(struct controller *c, int node, struct outcome *o)
{
	if (node < 0 || (uint32_t)node >= c->n_members) {
		outcome_set(o, -EINVAL, "there is no node %d", node);
		return NULL;
	}
	return &c->members[node];
}

static void do_fail(struct controller *c, const char *who, int node, struct outcome *o)
{
	struct member *m = named_member(c, node, o);

	if (!m)
		return;
	if (m->marked) {
		outcome_set(o, -EALREADY, "n%02d is marked failed already", node);
	} else if (m->replica && stage_replicas(c, member_stage(c, m), m) == 0) {
		outcome_set(o, -EPERM, "n%02d holds the last copy of S%d", node, member_stage(c, m));
	} else {
		journal_act(c, who, COMMAND_FAIL, node, 0, 0);
		members_mark(c, m, true);
		if (!m->replica)
			members_set(c, m, member_alive(m) ? NODE_FAILED : m->state,
				    "marked failed by the operator");
		note(c, NOTE_COMMAND, node, 'F', "n%02d S%d marked failed (%s)", node,
		     member_stage(c, m), who);
		outcome_set(o, 0, "routing around n%02d from the next iteration", node);
		replan(c, "a node was marked failed");
	}
}

static void do_recover(struct controller *c, const char *who, int node, struct outcome *o)
{
	struct member *m = named_member(c, node, o);

	if (!m)
		return;
	if (m->replica && !m->marked) {
		outcome_set(o, -EALREADY, "n%02d is in use", node);
		return;
	}
	if (!member_alive(m) && !supervisor_tell(c, "start", node)) {
		outcome_set(o, -EHOSTDOWN,
			    "n%02d has no process: start its agent, and it joins", node);
		return;
	}
	journal_act(c, who, COMMAND_RECOVER, node, 0, 0);
	members_mark(c, m, false);
	suspicion_explain(c, m);
	if (m->replica)
		replan(c, "a mark was taken back");
	else if (member_alive(m))
		members_assign(c, m, member_stage(c, m), c->committed > 0);
	note(c, NOTE_COMMAND, node, 0, "n%02d recovers (%s)", node, who);
	outcome_set(o, 0, "n%02d fetches the weights and joins at an iteration's end", node);
}

/* ---- faults ---- */

static void send_fault(struct controller *c, const struct fault *f, bool heal)
{
	struct msg m = { .type = MSG_FAULT };
	int ends[2] = { f->node, fault_describe(f->kind)->both_ends ? f->peer : -1 };

	for (int i = 0; i < 2; i++) {
		if (ends[i] < 0 || (uint32_t)ends[i] >= c->n_members || c->members[ends[i]].peer == 0)
			continue;
		m.u.fault = (struct msg_fault){ f->id, heal ? FAULT_NONE : (uint8_t)f->kind,
						i == 0 ? f->peer : f->node, f->factor, f->ttl_ms };
		member_send(c, &c->members[ends[i]], &m);
	}
}

static void tell_fault(struct controller *c, const struct fault *f)
{
	struct msg m = { .type = MSG_SEE_FAULT };

	m.u.see_fault = (struct msg_see_fault){ f->id, (uint8_t)f->kind, f->active, f->node, f->peer,
						f->factor, f->ends_us };
	record_fault(c, f);
	consoles_tell(c, &m);
}

static void heal_fault(struct controller *c, struct fault *f, const char *why)
{
	f->active = false;
	for (uint32_t i = 0; i < c->operators.n_acts; i++) /* nothing is left of it to undo */
		c->operators.acts[i].undone |= c->operators.acts[i].verb == COMMAND_INJECT && c->operators.acts[i].value == f->id;
	send_fault(c, f, true);
	if (f->kind == FAULT_HANG && f->node >= 0)
		c->members[f->node].doomed = false;
	if (f->kind == FAULT_HANG) /* it hears nothing */
		supervisor_tell(c, "wake", f->node);
	tell_fault(c, f);
	note(c, NOTE_EVENT, f->node, 0, "fault #%u (%s n%02d) healed: %s", f->id, fault_describe(f->kind)->words,
	     f->node, why);
}

static struct fault *fault_new(struct controller *c)
{
	if (!array_grow(&c->faults, &c->room_faults, c->n_faults + 1, sizeof(*c->faults)))
		return NULL;
	return &c->faults[c->n_faults++];
}

/* Another replica of its stage that no injected death or sleep is under way to. */
static bool survives_without(const struct controller *c, const struct member *w)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		if (m != w && m->replica && !m->marked && !m->doomed &&
		    member_stage(c, m) == member_stage(c, w))
			return true;
	}
	return false;
}

/* Refused where it would lose a stage's last copy, unless forced. Recorded before it is done, so that it is in the
 * record whatever it does. */
static void do_inject(struct controller *c, const char *who, const struct msg_command *m,
		      struct outcome *o)
{
	struct member *w = named_member(c, m->node, o);
	const struct fault_description *kind = fault_describe(m->fault);
	const char *refusal = fault_refusal(m->fault, m->factor);
	struct fault *f;

	if (w && refusal)
		outcome_set(o, -EINVAL, "%s", refusal);
	if (!w || refusal)
		return;
	if (!member_alive(w)) {
		outcome_set(o, -EHOSTDOWN, "n%02d is not there", m->node);
		return;
	}
	if (kind->stops_process && w->replica &&
	    !survives_without(c, w) && strcmp(m->text, "force") != 0) {
		outcome_set(o, -EPERM, "n%02d holds the last copy of S%d", m->node, member_stage(c, w));
		return;
	}
	f = fault_new(c);
	if (!f) {
		outcome_set(o, -ENOMEM, "out of memory");
		return;
	}
	*f = (struct fault){ .id = c->first_fault + c->n_faults, .kind = (enum fault_kind)m->fault, .node = m->node,
			     .peer = m->peer, .factor = m->factor,
			     .ttl_ms = m->ttl_ms ? m->ttl_ms : FAULT_TTL_MS, .started_us = c->now_us,
			     .started_wall_us = clock_wall_us(), .active = !kind->for_good };
	f->ends_us = c->now_us + (int64_t)f->ttl_ms * 1000;
	journal_act(c, who, COMMAND_INJECT, m->node, f->id, 0);
	send_fault(c, f, false);
	if (f->kind == FAULT_KILL)
		supervisor_tell(c, "kill", m->node);
	w->doomed = w->doomed || kind->stops_process;
	tell_fault(c, f);
	note(c, NOTE_COMMAND, m->node, 0, "#%u inject %s on n%02d%s (%s)", f->id, fault_describe(f->kind)->words,
	     m->node, kind->for_good ? "" : ", heals by itself", who);
	outcome_set(o, 0, "fault #%u", f->id);
}

static void do_heal(struct controller *c, int64_t id, struct outcome *o)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_faults; i++) {
		if (!c->faults[i].active || (id != 0 && c->faults[i].id != id))
			continue;
		heal_fault(c, &c->faults[i], "by the operator");
		n++;
	}
	if (n == 0 && id != 0)
		outcome_set(o, -ENOENT, "no active fault #%lld", (long long)id);
	else
		outcome_set(o, 0, "%u fault%s healed", n, n == 1 ? "" : "s");
}

/* ---- the rest ---- */

static void do_pause(struct controller *c, const char *who, enum command_verb verb, struct outcome *o)
{
	journal_act(c, who, verb, -1, 0, c->pause);
	c->pause = verb != COMMAND_RESUME;
	c->step = verb == COMMAND_STEP;
	note(c, NOTE_COMMAND, -1, 0, "%s (%s)",
	     verb == COMMAND_PAUSE ? "pause at the iteration's end" :
	     verb == COMMAND_STEP  ? "one iteration, then pause" : "go on", who);
	outcome_set(o, 0, "%s", verb == COMMAND_PAUSE ? "pausing" : "going on");
}

static void do_stop(struct controller *c, const char *who, struct outcome *o)
{
	c->ending.stopping = "stopped by the operator";
	note(c, NOTE_COMMAND, -1, 0, "stop (%s)", who);
	outcome_set(o, 0, "stopping");
	if (c->phase == PHASE_GATHERING || c->phase == PHASE_STALLED)
		controller_finish(c, 0, c->ending.stopping);
	/* else at the iteration's end (iteration.c) */
}

static void do_arm(struct controller *c, const struct console *from, int64_t seconds, struct outcome *o)
{
	if (c->operators.lease[0] && strcmp(c->operators.lease, from->name) != 0) {
		outcome_set(o, -EBUSY, "%s holds the lease for another %lld s", c->operators.lease,
			    (long long)((c->operators.lease_ends_us - c->now_us) / 1000000));
	} else if (seconds <= 0) {
		c->operators.lease[0] = '\0';
		outcome_set(o, 0, "locked");
	} else {
		snprintf(c->operators.lease, sizeof(c->operators.lease), "%s", from->name);
		if (seconds > LEASE_MOST_S)
			seconds = LEASE_MOST_S;
		c->operators.lease_ends_us = c->now_us + seconds * 1000000;
		outcome_set(o, 0, "armed for %lld s", (long long)seconds);
	}
	c->stream.next_status_us = 0;
}

static void do_ack(struct controller *c, int64_t id, struct outcome *o)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->journal.n_notes; i++) {
		struct msg m = { .type = MSG_SEE_NOTE };
		struct msg_see_note *note_at = &c->journal.notes[i];

		if (note_at->acknowledged || note_at->kind < NOTE_WARNING ||
		    (id != 0 && note_at->id != (uint64_t)id))
			continue;
		note_at->acknowledged = 1;
		m.u.see_note = *note_at;
		consoles_tell(c, &m);
		n++;
	}
	outcome_set(o, 0, "%u alerts acknowledged", n);
}

/* What would undo an act, as a command; false with the reason when nothing does. */
static bool inverse_of(const struct controller *c, const struct act *a, struct msg_command *out,
		    struct outcome *o)
{
	*out = (struct msg_command){ .node = a->node, .peer = -1 };
	switch (a->verb) {
	case COMMAND_SKIP:
		out->verb = COMMAND_SKIP;
		out->value = a->before;
		outcome_set(o, 0, "undo #%llu: skip %lld/%d -> %lld/%d", (unsigned long long)a->id,
			    (long long)a->value, c->cluster->n_stages, (long long)a->before,
			    c->cluster->n_stages);
		return true;
	case COMMAND_FAIL:
	case COMMAND_RECOVER:
		out->verb = a->verb == COMMAND_FAIL ? COMMAND_RECOVER : COMMAND_FAIL;
		outcome_set(o, 0, "undo #%llu: %s n%02d", (unsigned long long)a->id,
			    verb_name(out->verb), a->node);
		return true;
	case COMMAND_INJECT:
		if (c->faults[a->value - c->first_fault - 1].kind == FAULT_KILL) {
			outcome_set(o, -EPERM, "a kill cannot be undone; recover n%02d starts it again",
				    a->node);
			return false;
		}
		out->verb = COMMAND_HEAL;
		out->value = a->value;
		outcome_set(o, 0, "undo #%llu: heal fault #%lld", (unsigned long long)a->id,
			    (long long)a->value);
		return true;
	case COMMAND_PAUSE:
	case COMMAND_RESUME:
		out->verb = a->verb == COMMAND_PAUSE ? COMMAND_RESUME : COMMAND_PAUSE;
		outcome_set(o, 0, "undo #%llu: %s", (unsigned long long)a->id, verb_name(out->verb));
		return true;
	default:
		outcome_set(o, -EPERM, "%s cannot be undone", verb_name(a->verb));
		return false;
	}
}

static void do_act(struct controller *c, const char *who, const struct msg_command *m, struct outcome *o);

/* id 0: the last that was not undone. NULL with the reason. */
static struct act *is_undoable(struct controller *c, int64_t id, struct outcome *o)
{
	outcome_set(o, -ENOENT, "nothing to undo");
	for (uint32_t i = c->operators.n_acts; i-- > 0;) {
		if (id != 0 && c->operators.acts[i].id != (uint64_t)id)
			continue;
		if (!c->operators.acts[i].undone) {
			o->status = 0;
			return &c->operators.acts[i];
		}
		if (id != 0)
			outcome_set(o, -EALREADY, "#%lld is over or undone already, or is an undoing",
				    (long long)id);
	}
	return NULL;
}

static void do_undo(struct controller *c, const char *who, int64_t id, struct outcome *o)
{
	struct act *a = is_undoable(c, id, o);
	struct msg_command back;
	uint32_t at, had = c->operators.n_acts;

	if (!a || !inverse_of(c, a, &back, o))
		return;
	at = (uint32_t)(a - c->operators.acts);
	do_act(c, who, &back, o); /* journals, so the list may move */
	if (o->status == 0) {
		c->operators.acts[at].undone = true;
		if (c->operators.n_acts > had) /* undoing the undoing is acting again */
			c->operators.acts[c->operators.n_acts - 1].undone = true;
	}
}

/* One case for each verb. */
static void do_act(struct controller *c, const char *who, const struct msg_command *m, struct outcome *o)
{
	switch ((enum command_verb)m->verb) {
	case COMMAND_SKIP:
		do_skip(c, who, m->value, o);
		break;
	case COMMAND_FAIL:
		do_fail(c, who, m->node, o);
		break;
	case COMMAND_RECOVER:
		do_recover(c, who, m->node, o);
		break;
	case COMMAND_INJECT:
		do_inject(c, who, m, o);
		break;
	case COMMAND_HEAL:
		do_heal(c, m->value, o);
		break;
	case COMMAND_HEAL_ALL:
		do_heal(c, 0, o);
		break;
	case COMMAND_PAUSE:
	case COMMAND_RESUME:
	case COMMAND_STEP:
		do_pause(c, who, (enum command_verb)m->verb, o);
		break;
	case COMMAND_UNDO:
		do_undo(c, who, m->value, o);
		break;
	case COMMAND_STOP:
		do_stop(c, who, o);
		break;
	default:
		outcome_set(o, -EINVAL, "no such command");
	}
}

static void remember_act(struct controller *c, const char *who, const struct msg_command *m,
		     const struct outcome *o)
{
	struct store_command sc = { .id = ++c->operators.commands, .iteration = c->committed + 1,
				    .wall_us = clock_wall_us(), .who = who, .verb = verb_name(m->verb),
				    .node = m->node, .peer = m->peer, .value = m->value, .text = m->text,
				    .status = o->status, .reply = o->text };
	struct error err = { "" };

	if (o->status == 0)
		drill_add(c, m);
	if (store_command(c->store, &sc, &err) != 0)
		log_line(&c->log, LOG_ERROR, "%s", err.text);
}

/* ---- previews ---- */

static void answer_now(struct controller *c, struct console *to, const struct msg_command *m,
		       bool feasible, const char *text)
{
	struct msg out = { .type = MSG_SEE_PREVIEW };

	out.u.see_preview = (struct msg_see_preview){ .command = m->id, .verb = m->verb,
						      .feasible = feasible,
						      .iteration = c->committed + 2 };
	snprintf(out.u.see_preview.text, sizeof(out.u.see_preview.text), "%s", text);
	console_send(c, to, &out);
}

/* The planner's question for a plan like today's, in q and excluded (MSG_NODES). */
static void as_things_are(const struct controller *c, struct planner_request *q, bool *excluded)
{
	replan_request(c, q, excluded);
	q->kind = PLANNER_PREVIEW;
	q->from = c->current->plan;
	q->budget_s = replan_budget_s(c, 0.15);
	q->reason = "preview";
}

/* The same, if this were done; false, with the reason, when there is no such thing to do. */
static bool what_if(const struct controller *c, const struct msg_command *m, struct planner_request *q,
		    bool *excluded, struct outcome *o)
{
	bool leaves_out = m->node >= 0 && m->verb != COMMAND_SKIP;

	as_things_are(c, q, excluded);
	if (leaves_out && (uint32_t)m->node >= c->n_members) {
		outcome_set(o, -EINVAL, "there is no node %d", m->node);
		return false;
	}
	if (leaves_out)
		excluded[m->node] = m->verb != COMMAND_RECOVER;
	if (m->verb == COMMAND_SKIP && !may_skip(c, m->value, o))
		return false;
	if (m->verb == COMMAND_SKIP)
		q->path_length = c->cluster->n_stages - (int)m->value;
	q->from = replan_from(c, q);
	return true;
}

static void await_answer(struct controller *c, struct console *to, const struct msg_command *m,
		  const struct planner_request *q, const char *text)
{
	struct awaited *a;

	if (!c->operators.awaited)
		c->operators.awaited = calloc(AWAITED_MOST, sizeof(*c->operators.awaited));
	if (!c->operators.awaited)
		return;
	if (c->operators.n_awaited == AWAITED_MOST) /* the oldest was overtaken by newer ones */
		memmove(c->operators.awaited, c->operators.awaited + 1, --c->operators.n_awaited * sizeof(*c->operators.awaited));
	a = &c->operators.awaited[c->operators.n_awaited++];
	*a = (struct awaited){ planner_ask(c->planner, c->cluster, q), to->peer, m->id,
			       (enum command_verb)m->verb, "" };
	snprintf(a->text, sizeof(a->text), "%.120s", text);
}

static void preview_act(struct controller *c, struct console *to, const struct msg_command *m)
{
	bool excluded[MSG_NODES];
	struct planner_request q;
	struct msg_command back = *m;
	struct outcome o = { 0, "" };

	if (m->verb == COMMAND_UNDO) {
		struct act *chosen = is_undoable(c, m->value, &o);

		if (chosen)
			inverse_of(c, chosen, &back, &o);
	}
	if (!c->current)
		answer_now(c, to, m, false, "there is no plan yet");
	else if (o.status != 0 ||
		 (back.verb != COMMAND_SKIP && back.verb != COMMAND_FAIL &&
		  back.verb != COMMAND_RECOVER && back.verb != COMMAND_INJECT))
		answer_now(c, to, m, o.status == 0, o.text);
	else if (!what_if(c, &back, &q, excluded, &o))
		answer_now(c, to, m, false, o.text);
	else
		await_answer(c, to, m, &q, o.text);
}

static struct asker *asker_of(struct controller *c, const char *name)
{
	struct asker *a;

	for (uint32_t i = 0; i < c->operators.n_askers; i++)
		if (strcmp(c->operators.askers[i].name, name) == 0)
			return &c->operators.askers[i];
	if (!array_grow(&c->operators.askers, &c->operators.room_askers, c->operators.n_askers + 1, sizeof(*c->operators.askers)))
		return NULL;
	a = &c->operators.askers[c->operators.n_askers++];
	*a = (struct asker){ .comparisons = { 0 } };
	snprintf(a->name, sizeof(a->name), "%s", name);
	return a;
}

/* Each takes the planner a while: few wait, of one key fewer, and of those that it asks for all day only some are
 * made. */
static bool may_compare(struct controller *c, const struct console *to)
{
	struct asker *a = asker_of(c, to->name);
	uint32_t all = 0, own = 0;

	for (uint32_t i = 0; i < c->operators.n_awaited; i++) {
		const struct console *other = console_of_peer(c, c->operators.awaited[i].console);

		if (c->operators.awaited[i].verb != COMMAND_COMPARE)
			continue;
		all++;
		own += other && strcmp(other->name, to->name) == 0;
	}
	return a && all < COMPARED_MOST && own < COMPARED_OWN &&
	       rate_limit_take(&a->comparisons, 1, COMPARED_AT_ONCE, compared_per_s, c->now_us);
}

/* A candidate for the console's Compare view: harmless, so anyone may ask. */
static void ask_candidate(struct controller *c, struct console *to, const struct msg_command *m,
		      struct outcome *o)
{
	bool excluded[MSG_NODES];
	struct planner_request q;
	char name[32];
	struct error err;

	if (!c->current) {
		outcome_set(o, -EAGAIN, "there is no plan yet");
		return;
	}
	as_things_are(c, &q, excluded);
	if (compare_request(m, c->cluster->n_stages, c->n_members, excluded, &q, name, sizeof(name), &err) != 0) {
		outcome_set(o, -EINVAL, "%.180s", err.text);
	} else if (!may_compare(c, to)) {
		outcome_set(o, -EAGAIN, "too many comparisons: wait a little");
	} else {
		if (q.from)
			q.from = replan_from(c, &q);
		await_answer(c, to, m, &q, name);
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

static void compare_plans(struct controller *c, const struct planned *a, struct msg_see_preview *s)
{
	const struct planned *now = c->current;
	int memory = 0;

	s->before_iteration_s = (float)now->plan->predicted.iteration_s;
	s->before_wait_s = (float)now->plan->predicted.collision_wait_s;
	s->before_peak_slots = plan_peak_slots(now);
	s->before_path_length = (uint32_t)now->plan->path_length;
	s->after_iteration_s = (float)a->plan->predicted.iteration_s;
	s->after_wait_s = (float)a->plan->predicted.collision_wait_s;
	s->after_peak_slots = plan_peak_slots(a);
	s->after_path_length = (uint32_t)a->plan->path_length;
	s->after_least_visits = find_least_visited(a, &s->least_stage);
	s->before_least_visits = (uint32_t)now->trace->exposure[s->least_stage];
	s->paths_changed = paths_changed(now->plan, a->plan);
	for (int i = 0; i < c->cluster->n_nodes; i++)
		if (c->cluster->nodes[i].memory > memory)
			memory = c->cluster->nodes[i].memory;
	s->memory = (uint32_t)memory;
}

static void forget_awaited(struct controller *c, uint32_t i)
{
	memmove(&c->operators.awaited[i], &c->operators.awaited[i + 1], (--c->operators.n_awaited - i) * sizeof(*c->operators.awaited));
}

/* A comparison's plan goes to the console that asked, a preview's figures beside those of the plan in force. */
void command_previewed(struct controller *c, struct planned *a)
{
	struct msg m = { .type = MSG_SEE_PREVIEW }, no = { .type = MSG_SEE_REPLY };
	struct msg_see_preview *s = &m.u.see_preview;
	uint32_t i = 0;
	struct console *to;

	while (i < c->operators.n_awaited && c->operators.awaited[i].request != a->request)
		i++;
	if (i == c->operators.n_awaited) {
		planned_free(a);
		return;
	}
	to = console_of_peer(c, c->operators.awaited[i].console);
	if (c->operators.awaited[i].verb == COMMAND_COMPARE) {
		no.u.see_reply = (struct msg_see_reply){ .command = c->operators.awaited[i].command,
							 .status = -ENOENT };
		snprintf(no.u.see_reply.text, sizeof(no.u.see_reply.text), "%.180s", a->infeasible);
		if (a->plan)
			snprintf(no.u.see_reply.text, sizeof(no.u.see_reply.text),
				 "it has another number of microbatches than the run");
		if (to && (!a->plan || console_candidate(c, to, a, c->operators.awaited[i].text) != 0))
			console_send(c, to, &no);
		forget_awaited(c, i);
		planned_free(a);
		return;
	}
	*s = (struct msg_see_preview){ .command = c->operators.awaited[i].command, .verb = (uint8_t)c->operators.awaited[i].verb,
				       .feasible = a->plan != NULL, .iteration = c->committed + 2,
				       .median_error = prediction_error(c),
				       .n_predictions = c->record.n, .elapsed_s = (float)a->elapsed_s };
	snprintf(s->text, sizeof(s->text), "%.190s",
		 !a->plan ? a->infeasible : a->instead[0] ? a->instead : c->operators.awaited[i].text);
	if (a->plan && c->current)
		compare_plans(c, a, s);
	if (to)
		console_send(c, to, &m);
	forget_awaited(c, i);
	planned_free(a);
}

/* ---- receiving ---- */

/* What any console may ask comes first, then what needs a key that may command, then what needs the lease. */
void command_receive(struct controller *c, struct console *from, const struct msg_command *m)
{
	struct msg reply = { .type = MSG_SEE_REPLY };
	struct outcome o = { -EPERM, "" };

	if (strcmp(m->text, "preview") == 0) {
		preview_act(c, from, m);
		return;
	}
	if (m->verb == COMMAND_COMPARE) {
		ask_candidate(c, from, m, &o);
	} else if (!from->may_command) {
		outcome_set(&o, -EPERM, "this console may only watch");
	} else if (m->verb == COMMAND_ARM) {
		do_arm(c, from, m->value, &o);
	} else if (m->verb == COMMAND_ACK) {
		do_ack(c, m->value, &o);
	} else if (strcmp(c->operators.lease, from->name) != 0) {
		outcome_set(&o, -EACCES, c->operators.lease[0] ? "%s holds the operator's lease" :
						       "locked%s: take the lease first (:arm 10m)",
			    c->operators.lease);
	} else {
		do_act(c, from->name, m, &o);
		remember_act(c, from->name, m, &o);
	}
	reply.u.see_reply.command = m->id;
	reply.u.see_reply.status = o.status;
	memcpy(reply.u.see_reply.text, o.text, sizeof(o.text));
	console_send(c, from, &reply);
}

void command_scripted(struct controller *c)
{
	for (uint32_t i = 0; i < c->options.n_acts; i++) {
		struct scripted_act *a = &c->options.acts[i];
		struct msg_command m = { .verb = (uint8_t)a->verb, .node = a->node, .peer = -1,
					 .value = a->value, .fault = (uint8_t)a->fault,
					 .factor = fault_describe(a->fault)->factor == FACTOR_PROBABILITY ? 0.2f : 4,
					 .ttl_ms = SCRIPTED_TTL_MS };
		struct outcome o = { 0, "" };

		if (a->done || a->iteration > c->committed + 1)
			continue;
		a->done = true;
		do_act(c, "script", &m, &o);
		remember_act(c, "script", &m, &o);
		if (o.status != 0)
			note(c, NOTE_WARNING, a->node, 0, "script: %s", o.text);
	}
}

void command_turn(struct controller *c)
{
	if (c->operators.lease[0] && c->now_us >= c->operators.lease_ends_us) {
		note(c, NOTE_EVENT, -1, 0, "%s's lease ended", c->operators.lease);
		c->operators.lease[0] = '\0';
		for (uint32_t i = 0; i < c->n_faults; i++)
			if (c->faults[i].active)
				heal_fault(c, &c->faults[i], "the lease ended");
		c->stream.next_status_us = 0;
	}
	for (uint32_t i = 0; i < c->n_faults; i++)
		if (c->faults[i].active && c->now_us >= c->faults[i].ends_us)
			heal_fault(c, &c->faults[i], "its time was up");
}

void command_fini(struct controller *c)
{
	free(c->operators.acts);
	free(c->faults);
	free(c->operators.awaited);
	free(c->operators.askers);
}
