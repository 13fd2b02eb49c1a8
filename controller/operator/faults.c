/* faults.c - injects failures into agents, and heals them.
 *
 * An operator injects faults to see how the run copes. Every fault ends after its time to live,
 * or together with the operator's lease, so that no fault is forgotten. */
#include "controller/operator/faults.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "controller/iteration/iteration.h"
#include "controller/members/announce.h"
#include "controller/members/member.h"
#include "controller/operator/acts.h"
#include "controller/operator/command.h"
#include "controller/operator/undo.h"
#include "controller/run/journal.h"
#include "controller/run/outcome.h"
#include "controller/run/record.h"
#include "controller/run/stream.h"
#include "controller/run/supervisor.h"

enum { FAULT_TTL_MS = 60000 };

static void send_fault(struct members *members, const struct fault *f, bool heal)
{
	struct msg m = { .type = MSG_FAULT };
	int ends[2] = { f->node,
			fault_describe(f->kind)->target == FAULT_OF_BOTH_ENDS ? f->peer : -1 };

	for (int i = 0; i < 2; i++) {
		if (ends[i] < 0 || (uint32_t)ends[i] >= members->n ||
		    members->list[ends[i]].peer == 0)
			continue;
		m.u.fault = (struct msg_fault){ f->id, heal ? FAULT_NONE : (uint8_t)f->kind,
						i == 0 ? f->peer : f->node, f->factor, f->ttl_ms };
		member_send(members->run, &members->list[ends[i]], &m);
	}
}

static void announce_fault(struct run *run, const struct fault *f)
{
	struct msg m;

	announce_fill_fault(f, &m);
	record_fault(run, f);
	consoles_tell(run, &m);
}

static void heal_fault(struct operators *ops, struct fault *f, const char *why)
{
	f->active = false;
	undo_healed(&ops->acts, f->id);
	send_fault(ops->members, f, true);
	if (f->kind == FAULT_HANG && f->node >= 0)
		ops->members->list[f->node].fault_pending = false;
	if (f->kind == FAULT_HANG) /* a suspended agent cannot receive the message */
		supervisor_tell(ops->run, "wake", f->node);
	announce_fault(ops->run, f);
	note(ops->run, NOTE_EVENT, f->node, 0, "fault #%u (%s n%02d) healed: %s", f->id,
	     fault_describe(f->kind)->words, f->node, why);
}

static struct fault *new_fault(struct run *run)
{
	array_reserve(&run->faults.list, &run->faults.room, run->faults.n + 1,
		      sizeof(*run->faults.list));
	return &run->faults.list[run->faults.n++];
}

/* Returns true if the stage of w has another replica that no injected fault is about to stop. */
static bool survives_without(const struct members *members, const struct member *w)
{
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		if (m != w && member_is_replica(m) && !m->is_marked && !m->fault_pending &&
		    member_stage(members->run, m) == member_stage(members->run, w))
			return true;
	}
	return false;
}

/* Refuses a fault that would lose the last copy of a stage, unless the operator forces the
 * fault. */
void act_inject(struct operators *ops, const char *who, const struct msg_command *m,
		struct outcome *o)
{
	struct member *w = acts_member(ops->members, m->node, o);
	const struct fault_description *kind = fault_describe(m->fault);
	const char *refusal = fault_refusal(m->fault, m->factor);
	struct fault *f;

	if (w && refusal)
		outcome_set(o, -EINVAL, "%s", refusal);
	if (!w || refusal)
		return;
	if (!member_alive(w)) {
		outcome_set(o, -EHOSTDOWN, "n%02d has no agent", m->node);
		return;
	}
	if (kind->stops_process && member_is_replica(w) && !survives_without(ops->members, w) &&
	    strcmp(m->text, "force") != 0) {
		outcome_set(o, -EPERM, "n%02d holds the last copy of S%d", m->node,
			    member_stage(ops->run, w));
		return;
	}
	f = new_fault(ops->run);
	*f = (struct fault){ .id = ops->run->faults.first + ops->run->faults.n,
			     .kind = (enum fault_kind)m->fault,
			     .node = m->node,
			     .peer = m->peer,
			     .factor = m->factor,
			     .ttl_ms = m->ttl_ms ? m->ttl_ms : FAULT_TTL_MS,
			     .started_us = ops->run->now_us,
			     .started_wall_us = clock_wall_us(),
			     .active = !kind->for_good };
	f->ends_us = ops->run->now_us + (int64_t)f->ttl_ms * 1000;
	undo_remember(&ops->acts, ops->run, who, COMMAND_INJECT, m->node, f->id, 0);
	send_fault(ops->members, f, false);
	if (f->kind == FAULT_KILL)
		supervisor_tell(ops->run, "kill", m->node);
	w->fault_pending = w->fault_pending || kind->stops_process;
	announce_fault(ops->run, f);
	note(ops->run, NOTE_COMMAND, m->node, 0, "#%u inject %s on n%02d%s (%s)", f->id,
	     fault_describe(f->kind)->words, m->node, kind->for_good ? "" : ", heals by itself",
	     who);
	outcome_set(o, 0, "fault #%u", f->id);
}

void act_heal(struct operators *ops, const char *who, const struct msg_command *m,
	      struct outcome *o)
{
	int64_t id = m->verb == COMMAND_HEAL ? m->value : 0; /* 0: all faults */
	uint32_t n = 0;

	(void)who;
	for (uint32_t i = 0; i < ops->run->faults.n; i++) {
		if (!ops->run->faults.list[i].active ||
		    (id != 0 && ops->run->faults.list[i].id != id))
			continue;
		heal_fault(ops, &ops->run->faults.list[i], "by the operator");
		n++;
	}
	if (n == 0 && id != 0)
		outcome_set(o, -ENOENT, "no active fault #%lld", (long long)id);
	else
		outcome_set(o, 0, "%u fault%s healed", n, n == 1 ? "" : "s");
}

void faults_turn(struct operators *ops)
{
	for (uint32_t i = 0; i < ops->run->faults.n; i++)
		if (ops->run->faults.list[i].active &&
		    ops->run->now_us >= ops->run->faults.list[i].ends_us)
			heal_fault(ops, &ops->run->faults.list[i], "its time was up");
}

void faults_heal_all(struct operators *ops, const char *why)
{
	for (uint32_t i = 0; i < ops->run->faults.n; i++)
		if (ops->run->faults.list[i].active)
			heal_fault(ops, &ops->run->faults.list[i], why);
}
