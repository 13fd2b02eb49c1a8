/* consoles.c - sends the run's state to consoles: a snapshot, then every change.
 *
 * A console that attaches receives a snapshot. If a console is too slow, the controller drops and
 * counts messages to this console, and sends a new snapshot once the console's queue has room.
 * Therefore a slow console never delays the run, and never shows a state in which a change is
 * missing. */
#include "base/skip_schedule.h"
#include "controller/operator/consoles.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/clock.h"
#include "controller/iteration/iteration.h"
#include "controller/iteration/plan_message.h"
#include "controller/joining/startup.h"
#include "controller/members/announce.h"
#include "controller/members/member.h"
#include "controller/network/link_table.h"
#include "controller/network/observed_links.h"
#include "controller/operator/command.h"
#include "controller/operator/console_messages.h"
#include "controller/planning/contingency.h"
#include "controller/run/journal.h"
#include "controller/run/stream.h"

enum {
	STATUS_EVERY_US = 200000,
	TASKS_EVERY_US = 50000,
	NODE_EVERY_US = 500000,
	/* Largest number of task events in a snapshot. If the current iteration has more events,
	 * the snapshot contains none. */
	SNAPSHOT_EVENTS = 16384,
	LINKS_PER_MESSAGE = 8192,
	VISITS = 100 /* journal lines about attaching consoles allowed in one burst */
};
static const double visits_per_s = 0.1;

/* ---- contents of the messages ---- */

/* Describes the phase for a person who waits. */
static void describe_phase(const struct iteration *it, char *out, size_t room)
{
	if (it->backups->saving.awaited) {
		snprintf(out, room, "writing the checkpoint of it%llu, then the run ends",
			 (unsigned long long)it->backups->saving.iteration);
		return;
	}
	switch (it->run->phase) {
	case PHASE_COMPUTING:
	case PHASE_REDUCING:
		describe_iteration(out, room, it->run->phase, it->run->iteration, it->routes.done,
				   it->routes.n);
		break;
	case PHASE_EVALUATING:
		snprintf(out, room, "validating it%llu", (unsigned long long)it->run->committed);
		break;
	case PHASE_PAUSED:
		snprintf(out, room, "paused after it%llu", (unsigned long long)it->run->committed);
		break;
	case PHASE_STALLED:
		snprintf(out, room, "%s", phase_in_words(it->run->phase));
		break;
	default:
		snprintf(out, room, "planning it%llu", (unsigned long long)it->run->committed + 1);
	}
}

/* Numbers of refused and resent messages are sums over the controller and all agents. */
void consoles_fill_status(const struct operators *ops, struct msg *m)
{
	struct msg_see_status *s = &m->u.see_status;
	struct post_counters counters;

	post_count(ops->run->post, &counters);
	m->type = MSG_SEE_STATUS;
	*s = (struct msg_see_status){
		.phase = (uint8_t)ops->run->phase,
		.paused = ops->run->wanted.pause && !ops->run->wanted.step,
		.iteration = ops->run->iteration,
		.committed = ops->run->committed,
		.epoch = ops->run->epoch,
		.alive = members_live(ops->members),
		.n_nodes = ops->members->n,
		.path_length = ops->run->plan ? (uint32_t)ops->run->plan->plan->path_length
					      : ops->run->wanted.path_length,
		.n_stages = (uint32_t)ops->run->cluster->n_stages,
		.skip_share = ops->run->plan ? (uint32_t)ops->run->plan->plan->skip_share
					     : ops->run->wanted.skip_share,
		.skip_phase = ops->run->wanted.schedule.n ? ops->run->wanted.phase + 1 : 0,
		.n_skip_phases = ops->run->wanted.schedule.n,
		.wire = (uint8_t)ops->run->cluster->formats.wire,
		.sum_wire = (uint8_t)ops->run->cluster->formats.sum_wire,
		.now_us = ops->run->now_us,
		.iteration_started_us = ops->iteration->progress.started_us,
		.lease_us = ops->lease[0] ? ops->lease_ends_us - ops->run->now_us : 0,
		.resent = counters.resent_frames,
		.checkpoint = ops->backups->saving.complete,
		.checkpoint_failure = ops->backups->saving.failure,
	};
	if (ops->run->wanted.phase + 1 < ops->run->wanted.schedule.n) {
		const struct skip_phase *next =
			&ops->run->wanted.schedule.phases[ops->run->wanted.phase + 1];

		s->next_phase_from = next->from;
		s->next_skip = (uint32_t)skip_share_pack(next->share, next->skip);
	}
	for (int i = 0; i < LINK_REASON_COUNT; i++)
		s->refused += counters.link.refused[i];
	for (uint32_t i = 0; i < ops->members->n; i++) {
		s->refused += ops->members->list[i].beat.refused;
		s->resent += ops->members->list[i].beat.resent;
	}
	for (uint32_t i = 0; i < ops->run->faults.n; i++)
		s->faults += ops->run->faults.list[i].active;
	snprintf(s->lease, sizeof(s->lease), "%s", ops->lease);
	if (ops->run->phase == PHASE_GATHERING)
		startup_status(ops->members, s);
	else
		describe_phase(ops->iteration, s->doing, sizeof(s->doing));
}

static void send_status(const struct operators *ops, struct console *to)
{
	struct msg m;

	consoles_fill_status(ops, &m);
	m.u.see_status.dropped = to->dropped;
	console_send(ops->run, to, &m);
}

/* Returns the link's delay in the plan. Before the first plan, returns the delay that the first
 * plan will assume, if this is known. */
static float find_planned_delay(const struct members *members, const struct msg_link *l)
{
	if (members->run->phase == PHASE_GATHERING && members->gathering < GATHER_PLAN &&
	    !members->run->resumed)
		return (float)link_table_transfer_s(members->links, l->from, l->to,
						    members->links->activation_bytes);
	return (float)members->run->cluster->delay_s[l->from * members->n + l->to];
}

/* Fills in a link's figures of the emulated network. The figures that agents report are not used:
 * they concern the connections between their processes, and not the emulated network. */
static void fill_emulated(const struct members *members, struct msg_link *l)
{
	const struct link_seen *e =
		members->emulated ? link_table_at(members->emulated, l->from, l->to) : NULL;
	bool has_link = e && e->latency_s >= 0 && e->bandwidth > 0;

	l->spread_s = 0;
	l->latency_s = !e ? 0 : has_link ? e->latency_s : -1;
	l->bandwidth_bytes_per_s = has_link ? (float)e->bandwidth : 0;
}

/* Fills in the link as consoles show it. The newest report has no transfer time if no activation
 * was sent since the previous report. Therefore shows the newest transfer time of all reports. */
static void fill_link(const struct members *members, const struct observed_link *s,
		      struct msg_link *l)
{
	*l = s->link;
	l->measured_delay_s = s->took_s;
	if (members->run->options.cluster.time_scale != 0)
		fill_emulated(members, l);
	if (!members->links)
		return;
	l->planned_delay_s = find_planned_delay(members, l);
	if (link_table_at(members->links, l->from, l->to)->unreachable)
		l->latency_s = -1;
}

static void send_links(struct run *run, struct console *only, const struct msg_link *links,
		       uint32_t n)
{
	struct msg m = { .type = MSG_SEE_LINKS, .u.see_links = { n, links } };

	if (n == 0)
		return;
	if (only)
		console_send(run, only, &m);
	else
		consoles_tell(run, &m);
}

/* Sends all consoles the links that have changed since the last call. Sending every link would be
 * too much, because a cluster of 1,000 nodes has a million links. If `only` is not NULL, also
 * sends every link to the console `only`. */
static void send_changed_links(struct members *members, struct console *only)
{
	struct msg_link *links = alloc_array(LINKS_PER_MESSAGE, sizeof(*links));
	uint32_t n = 0;

	for (int all = 0; all <= (only ? 1 : 0); all++) {
		for (uint32_t i = 0; i < members->n; i++)
			for (uint32_t k = 0; k < members->list[i].links.n; k++) {
				struct observed_link *s = &members->list[i].links.list[k];

				fill_link(members, s, &links[n]);
				if (!all && memcmp(&links[n], &s->sent, sizeof(s->sent)) == 0)
					continue;
				s->sent = links[n];
				if (++n < LINKS_PER_MESSAGE)
					continue;
				send_links(members->run, all ? only : NULL, links, n);
				n = 0;
			}
		send_links(members->run, all ? only : NULL, links, n);
		n = 0;
	}
	free(links);
}

/* Sends the iteration's task events from index `at` up to `end` to the console `only`, or to all
 * consoles if `only` is NULL. */
static void send_events(struct iteration *it, uint32_t at, uint32_t end, bool whole,
			struct console *only)
{
	while (at < end) {
		struct msg m = { .type = MSG_SEE_TASKS };
		uint32_t n = end - at < 1024 ? end - at : 1024;

		m.u.see_tasks = (struct msg_see_tasks){ it->run->iteration, whole, n,
							it->progress.events + at };
		if (only)
			console_send(it->run, only, &m);
		else
			consoles_tell(it->run, &m);
		whole = false;
		at += n;
	}
}

/* ---- snapshots ---- */

/* Returns the index of the first row to send. A console gets at most the newest `most` of n
 * rows. */
static uint32_t first_sent(uint32_t n, uint32_t most)
{
	return n > most ? n - most : 0;
}

/* The order matters, because a console needs earlier messages to interpret later ones: the run,
 * nodes, the plan, curves, the journal, faults, links, tasks, the status. MSG_SEE_SYNCED ends the
 * snapshot. */
static void send_snapshot(struct operators *ops, struct console *to)
{
	const struct curves *curves = &ops->run->record.curves;
	const struct journal *journal = &ops->run->journal;
	struct msg m = { 0 };

	to->live = true;
	to->lagging = false;
	announce_fill_run(ops->members, &m);
	console_send(ops->run, to, &m);
	for (uint32_t i = 0; i < ops->members->n; i++) {
		node_message(&m, &ops->members->list[i], &ops->run->cluster->nodes[i],
			     member_work(ops->run, &ops->members->list[i]),
			     member_layers(ops->run, &ops->members->list[i]),
			     contingency_lost_s(ops->planning, &ops->members->list[i]));
		console_send(ops->run, to, &m);
	}
	if (ops->run->plan)
		announce_plan_to(ops->iteration, ops->run->plan, NULL, to);
	m.type = MSG_SEE_ITERATION;
	for (uint32_t i = first_sent(curves->n_iterations, KEPT_CURVE); i < curves->n_iterations;
	     i++) {
		m.u.see_iteration = curves->iterations[i];
		console_send(ops->run, to, &m);
	}
	m.type = MSG_SEE_VALIDATION;
	for (uint32_t i = first_sent(curves->n_validations, KEPT_CURVE);
	     i < curves->n_validations; i++) {
		m.u.see_validation = curves->validations[i];
		console_send(ops->run, to, &m);
	}
	m.type = MSG_SEE_NOTE;
	for (uint32_t i = first_sent(journal->n_notes, KEPT_NOTES); i < journal->n_notes; i++) {
		m.u.see_note = journal->notes[i];
		console_send(ops->run, to, &m);
	}
	for (uint32_t i = 0; i < ops->run->faults.n; i++) {
		announce_fill_fault(&ops->run->faults.list[i], &m);
		if (ops->run->faults.list[i].active)
			console_send(ops->run, to, &m);
	}
	send_changed_links(ops->members, to);
	if (ops->iteration->progress.n_shown <= SNAPSHOT_EVENTS &&
	    (ops->run->phase == PHASE_COMPUTING || ops->run->phase == PHASE_REDUCING))
		send_events(ops->iteration, 0, ops->iteration->progress.n_shown, true, to);
	send_status(ops, to);
	m.type = MSG_SEE_SYNCED;
	m.u.see_synced =
		(struct msg_see_synced){ .sequence = to->sequence, .watches = !to->may_command };
	memcpy(m.u.see_synced.name, to->name, sizeof(to->name));
	console_send(ops->run, to, &m);
}

void consoles_attach(struct operators *ops, post_peer_id peer, const struct msg_attach *a)
{
	struct post_peer_info info;
	struct console *to = console_of_peer(ops->run, peer);

	if (post_peer(ops->run->post, peer, &info) != 0 ||
	    (info.role != KEYS_CONSOLE && info.role != KEYS_WATCHER))
		return;
	if (!to) {
		array_reserve(&ops->run->stream.consoles, &ops->run->stream.room_consoles,
			      ops->run->stream.n_consoles + 1, sizeof(*ops->run->stream.consoles));
		to = &ops->run->stream.consoles[ops->run->stream.n_consoles++];
		*to = (struct console){ .peer = peer };
		/* The controller uses the name of the admitted key, because it is unique and the
		 * console cannot choose it. */
		snprintf(to->name, sizeof(to->name), "%s", info.name);
		if (rate_limit_take(&ops->run->stream.visits, 1, VISITS, visits_per_s,
				    ops->run->now_us))
			note(ops->run, NOTE_LOG, -1, 0, "console %s attached", to->name);
	}
	to->may_command = info.role == KEYS_CONSOLE && !a->readonly;
	send_snapshot(ops, to);
}

void consoles_down(struct run *run, post_peer_id peer)
{
	struct console *left = console_of_peer(run, peer);

	if (!left)
		return;
	if (rate_limit_take(&run->stream.visits, 1, VISITS, visits_per_s, run->now_us))
		note(run, NOTE_LOG, -1, 0, "console %s left", left->name);
	left = console_of_peer(run, peer);
	*left = run->stream.consoles[--run->stream.n_consoles];
}

/* ---- changes ---- */

static void send_tasks(struct iteration *it)
{
	struct progress *p = &it->progress;

	if (p->n_shown < p->n_events)
		send_events(it, p->n_shown, p->n_events, false, NULL);
	p->n_shown = p->n_events;
}

/* In each second, sends task events 20 times, the status 5 times, changed nodes twice and links
 * once. Sending more often would overload slow consoles. */
void consoles_turn(struct operators *ops)
{
	struct msg m = { 0 };

	if (ops->run->now_us < ops->run->stream.next_us && ops->run->stream.next_status_us != 0)
		return;
	ops->run->stream.next_us = ops->run->now_us + TASKS_EVERY_US;
	send_tasks(ops->iteration);
	for (uint32_t i = 0; i < ops->members->n; i++) {
		struct member *w = &ops->members->list[i];

		if (!w->shown.is_stale || ops->run->now_us - w->shown.sent_us < NODE_EVERY_US)
			continue;
		w->shown.is_stale = false;
		w->shown.sent_us = ops->run->now_us;
		node_message(&m, w, &ops->run->cluster->nodes[w->id], member_work(ops->run, w),
			     member_layers(ops->run, w),
			     contingency_lost_s(ops->planning, w));
		consoles_tell(ops->run, &m);
	}
	for (uint32_t i = 0; i < ops->run->stream.n_consoles; i++)
		if (ops->run->stream.consoles[i].lagging &&
		    post_room(ops->run->post, ops->run->stream.consoles[i].peer) > (8u << 20))
			send_snapshot(ops, &ops->run->stream.consoles[i]);
	if (ops->run->now_us < ops->run->stream.next_status_us)
		return;
	ops->run->stream.next_status_us = ops->run->now_us + STATUS_EVERY_US;
	for (uint32_t i = 0; i < ops->run->stream.n_consoles; i++) {
		if (!ops->run->stream.consoles[i].live || ops->run->stream.consoles[i].lagging)
			continue;
		send_status(ops, &ops->run->stream.consoles[i]);
	}
	if (ops->run->stream.links_changed && ops->run->stream.n_consoles > 0 &&
	    ops->run->now_us >= ops->run->stream.next_links_us) {
		ops->run->stream.next_links_us = ops->run->now_us + 1000000;
		ops->run->stream.links_changed = false;
		send_changed_links(ops->members, NULL);
	}
}

void consoles_fini(struct run *run)
{
	free(run->stream.consoles);
	free(run->journal.notes);
	free(run->record.curves.iterations);
	free(run->record.curves.validations);
}
