/* consoles.c - the state stream.
 *
 * A console that attaches gets a snapshot, then every change. One that cannot keep up loses messages
 * (counted) and gets a fresh snapshot once there is room.
 */
#include "controller/operator/consoles.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "controller/controller.h"
#include "controller/members/startup.h"
#include "controller/members/member.h"
#include "controller/network/observed_links.h"
#include "controller/operator/announce.h"
#include "controller/operator/journal.h"
#include "controller/operator/console_messages.h"
#include "controller/operator/stream.h"
#include "controller/planning/contingency.h"

enum {
	STATUS_EVERY_US = 200000, TASKS_EVERY_US = 50000, NODE_EVERY_US = 500000,
	SNAPSHOT_EVENTS = 16384, /* of the iteration under way; of one with more, what follows */
	LINKS_TOLD = 8192, /* in one message */
	VISITS = 100
};
static const double visits_per_s = 0.1;

/* ---- what the messages say ---- */

/* A phase in words, for a person who waits. */
static void describe_phase(const struct controller *c, char *out, size_t room)
{
	if (c->saving.awaited) {
		snprintf(out, room, "writing the checkpoint of it%llu, then the run ends",
			 (unsigned long long)c->saving.iteration);
		return;
	}
	switch (c->phase) {
	case PHASE_COMPUTING:
	case PHASE_REDUCING:
		describe_iteration(out, room, c->phase, c->iteration, c->routes.done, c->routes.n);
		break;
	case PHASE_EVALUATING:
		snprintf(out, room, "validating it%llu", (unsigned long long)c->committed);
		break;
	case PHASE_PAUSED:
		snprintf(out, room, "paused after it%llu", (unsigned long long)c->committed);
		break;
	case PHASE_STALLED:
		snprintf(out, room, "%s", phase_in_words(c->phase));
		break;
	default:
		snprintf(out, room, "planning it%llu", (unsigned long long)c->committed + 1);
	}
}

/* What is counted here and what agents count themselves are added up. */
static void fill_status(const struct controller *c, const struct console *to, struct msg *m)
{
	struct msg_see_status *s = &m->u.see_status;
	struct post_counters counters;

	post_count(c->post, &counters);
	m->type = MSG_SEE_STATUS;
	*s = (struct msg_see_status){
		.phase = (uint8_t)c->phase, .paused = c->pause && !c->step, .iteration = c->iteration,
		.committed = c->committed, .epoch = c->epoch, .alive = members_live(c),
		.n_nodes = c->n_members,
		.path_length = c->current ? (uint32_t)c->current->plan->path_length : c->path_length,
		.n_stages = (uint32_t)c->cluster->n_stages, .now_us = c->now_us,
		.iteration_started_us = c->progress.started_us,
		.lease_us = c->operators.lease[0] ? c->operators.lease_ends_us - c->now_us : 0,
		.resent = counters.resent_frames, .dropped = to->dropped,
	};
	for (int i = 0; i < LINK_REASON_COUNT; i++)
		s->refused += counters.link.refused[i];
	for (uint32_t i = 0; i < c->n_members; i++) {
		s->refused += c->members[i].beat.refused;
		s->resent += c->members[i].beat.resent;
	}
	for (uint32_t i = 0; i < c->n_faults; i++)
		s->faults += c->faults[i].active;
	snprintf(s->lease, sizeof(s->lease), "%s", c->operators.lease);
	if (c->phase == PHASE_GATHERING)
		startup_status(c, s);
	else
		describe_phase(c, s->doing, sizeof(s->doing));
}

/* Before there is a plan: what it will assume, where that is known. */
static float find_planned_delay(const struct controller *c, const struct msg_link *l)
{
	if (c->phase == PHASE_GATHERING && c->gathering < GATHER_PLAN && !c->resumed)
		return (float)link_table_transfer_s(c->links, l->from, l->to, c->links->activation_bytes);
	return (float)c->cluster->delay_s[l->from * c->n_members + l->to];
}

/* An agent tells what it saw since it last told; here it is what was seen at all. */
static void fill_link(const struct controller *c, const struct observed_link *s, struct msg_link *l)
{
	*l = s->link;
	l->measured_delay_s = s->took_s;
	if (!c->links)
		return;
	l->planned_delay_s = find_planned_delay(c, l);
	if (link_table_at(c->links, l->from, l->to)->unreachable)
		l->latency_s = -1;
}

static void send_links(struct controller *c, struct console *only, const struct msg_link *links, uint32_t n)
{
	struct msg m = { .type = MSG_SEE_LINKS, .u.see_links = { n, links } };

	if (n == 0)
		return;
	if (only)
		console_send(c, only, &m);
	else
		consoles_tell(c, &m);
}

/* Tells the links that have changed, to all: a large cluster has a million. only: then all of them, as told, to that one. */
static void tell_links(struct controller *c, struct console *only)
{
	struct msg_link *links = malloc(LINKS_TOLD * sizeof(*links));
	uint32_t n = 0;

	for (int all = 0; links && all <= (only ? 1 : 0); all++) {
		for (uint32_t i = 0; i < c->n_members; i++)
			for (uint32_t k = 0; k < c->members[i].n_links; k++) {
				struct observed_link *s = &c->members[i].links[k];

				fill_link(c, s, &links[n]);
				if (!all && memcmp(&links[n], &s->told, sizeof(s->told)) == 0)
					continue;
				s->told = links[n];
				if (++n < LINKS_TOLD)
					continue;
				send_links(c, all ? only : NULL, links, n);
				n = 0;
			}
		send_links(c, all ? only : NULL, links, n);
		n = 0;
	}
	free(links);
}

/* The iteration's, from `at` to `end`; only: NULL all consoles. */
static void tell_events(struct controller *c, uint32_t at, uint32_t end, bool whole,
			struct console *only)
{
	while (at < end) {
		struct msg m = { .type = MSG_SEE_TASKS };
		uint32_t n = end - at < 1024 ? end - at : 1024;

		m.u.see_tasks = (struct msg_see_tasks){ c->iteration, whole, n,
							c->progress.events + at };
		if (only)
			console_send(c, only, &m);
		else
			consoles_tell(c, &m);
		whole = false;
		at += n;
	}
}

/* ---- snapshots ---- */

/* In the order in which a console can make sense of it: the run, nodes, the plan, curves, the journal, faults, links,
 * tasks, the status; at last that it has all. */
static void send_snapshot(struct controller *c, struct console *to)
{
	uint32_t first;
	struct msg m = { 0 };

	to->live = true;
	to->lagging = false;
	announce_fill_run(c, &m);
	console_send(c, to, &m);
	for (uint32_t i = 0; i < c->n_members; i++) {
		node_message(&m, &c->members[i], &c->cluster->nodes[i], contingency_lost_s(c, &c->members[i]));
		console_send(c, to, &m);
	}
	if (c->current)
		announce_plan_to(c, c->current, NULL, to);
	m.type = MSG_SEE_ITERATION;
	first = c->curves.n_history > KEPT_CURVE ? c->curves.n_history - KEPT_CURVE : 0;
	for (uint32_t i = first; i < c->curves.n_history; i++) {
		m.u.see_iteration = c->curves.history[i];
		console_send(c, to, &m);
	}
	m.type = MSG_SEE_VALIDATION;
	first = c->curves.n_validations > KEPT_CURVE ? c->curves.n_validations - KEPT_CURVE : 0;
	for (uint32_t i = first; i < c->curves.n_validations; i++) {
		m.u.see_validation = c->curves.validations[i];
		console_send(c, to, &m);
	}
	m.type = MSG_SEE_NOTE;
	first = c->journal.n_notes > KEPT_NOTES ? c->journal.n_notes - KEPT_NOTES : 0;
	for (uint32_t i = first; i < c->journal.n_notes; i++) {
		m.u.see_note = c->journal.notes[i];
		console_send(c, to, &m);
	}
	for (uint32_t i = 0; i < c->n_faults; i++) {
		announce_fill_fault(&c->faults[i], &m);
		if (c->faults[i].active)
			console_send(c, to, &m);
	}
	tell_links(c, to);
	if (c->progress.told <= SNAPSHOT_EVENTS &&
	    (c->phase == PHASE_COMPUTING || c->phase == PHASE_REDUCING))
		tell_events(c, 0, c->progress.told, true, to);
	fill_status(c, to, &m);
	console_send(c, to, &m);
	m.type = MSG_SEE_SYNCED;
	m.u.see_synced = (struct msg_see_synced){ .sequence = to->sequence, .watches = !to->may_command };
	memcpy(m.u.see_synced.name, to->name, sizeof(to->name));
	console_send(c, to, &m);
}

void consoles_attach(struct controller *c, post_peer_id peer, const struct msg_attach *a)
{
	struct post_peer_info info;
	struct console *to = console_of_peer(c, peer);

	if (post_peer(c->post, peer, &info) != 0 ||
	    (info.role != KEYS_CONSOLE && info.role != KEYS_WATCHER))
		return;
	if (!to) {
		if (!array_grow(&c->stream.consoles, &c->stream.room_consoles, c->stream.n_consoles + 1, sizeof(*c->stream.consoles)))
			return;
		to = &c->stream.consoles[c->stream.n_consoles++];
		*to = (struct console){ .peer = peer };
		/* An admitted name is unique; what the console says of itself is not proven. */
		snprintf(to->name, sizeof(to->name), "%s", info.name);
		if (rate_limit_take(&c->stream.visits, 1, VISITS, visits_per_s, c->now_us))
			note(c, NOTE_LOG, -1, 0, "console %s attached", to->name);
	}
	to->may_command = info.role == KEYS_CONSOLE && !a->readonly;
	send_snapshot(c, to);
}

void consoles_down(struct controller *c, post_peer_id peer)
{
	struct console *gone = console_of_peer(c, peer);

	if (!gone)
		return;
	if (rate_limit_take(&c->stream.visits, 1, VISITS, visits_per_s, c->now_us))
		note(c, NOTE_LOG, -1, 0, "console %s left", gone->name);
	gone = console_of_peer(c, peer);
	*gone = c->stream.consoles[--c->stream.n_consoles];
}

/* ---- live ---- */

static void tell_tasks(struct controller *c)
{
	struct progress *p = &c->progress;

	if (p->told < p->n_events)
		tell_events(c, p->told, p->n_events, false, NULL);
	p->told = p->n_events;
}

/* Task events twenty times a second, nodes that changed twice, the status five times, links once: what is told at each
 * turn would keep slow consoles behind. */
void consoles_turn(struct controller *c)
{
	struct msg m = { 0 };

	if (c->now_us < c->stream.next_us && c->stream.next_status_us != 0)
		return;
	c->stream.next_us = c->now_us + TASKS_EVERY_US;
	tell_tasks(c);
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *w = &c->members[i];

		if (!w->changed || c->now_us - w->told_us < NODE_EVERY_US)
			continue;
		w->changed = false;
		w->told_us = c->now_us;
		node_message(&m, w, &c->cluster->nodes[w->id], contingency_lost_s(c, w));
		consoles_tell(c, &m);
	}
	for (uint32_t i = 0; i < c->stream.n_consoles; i++)
		if (c->stream.consoles[i].lagging && post_room(c->post, c->stream.consoles[i].peer) > (8u << 20))
			send_snapshot(c, &c->stream.consoles[i]);
	if (c->now_us < c->stream.next_status_us)
		return;
	c->stream.next_status_us = c->now_us + STATUS_EVERY_US;
	for (uint32_t i = 0; i < c->stream.n_consoles; i++) {
		if (!c->stream.consoles[i].live || c->stream.consoles[i].lagging)
			continue;
		fill_status(c, &c->stream.consoles[i], &m);
		console_send(c, &c->stream.consoles[i], &m);
	}
	if (c->stream.links_changed && c->stream.n_consoles > 0 && c->now_us >= c->stream.next_links_us) {
		c->stream.next_links_us = c->now_us + 1000000;
		c->stream.links_changed = false;
		tell_links(c, NULL);
	}
}

void consoles_fini(struct controller *c)
{
	free(c->stream.consoles);
	free(c->journal.notes);
	free(c->curves.history);
	free(c->curves.validations);
}
