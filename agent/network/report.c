/* What the controller is told without asking: task events, heartbeats, links. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/state.h"

enum {
	REPORT_US = 5000,
	BEAT_US = 100000,
	LINKS_US = 1000000,
	LINKS_MANY_US = 2000000, /* of more than DIAL_ALL nodes */
	LINKS_SOON_US = 100000,
	UNLIKE = 2,
	RSS_BEATS = 10,
	PING_BYTES = 1024 /* more than that take */
};

void report_flush(struct agent *a, int64_t now_us)
{
	struct msg m = { .type = MSG_REPORT };

	a->report_by_us = INT64_MAX;
	if (a->n_events == 0)
		return;
	m.u.report.iteration = a->iteration;
	m.u.report.n_events = a->n_events;
	m.u.report.events = a->events;
	a->n_events = 0;
	agent_tell(a, &m, POST_RELIABLE, now_us);
}

static void remember(struct agent *a, const struct msg_task_event *e)
{
	if (a->n_happened == a->room_happened) {
		uint32_t room = a->room_happened ? 2 * a->room_happened : 256;
		struct msg_task_event *grown = realloc(a->happened, room * sizeof(*grown));

		if (!grown) {
			a->forgot = true;
			return;
		}
		a->happened = grown;
		a->room_happened = room;
	}
	a->happened[a->n_happened++] = *e;
}

void report_forget(struct agent *a)
{
	a->n_happened = a->n_accused = 0;
	a->forgot = false;
}

void report_recall(struct agent *a, const struct msg_recall *r, int64_t now_us)
{
	struct msg m = { .type = MSG_REPORT };
	uint32_t at = 0;

	if (r->iteration != a->iteration || a->forgot)
		return;
	a->n_events = 0; /* they are among them */
	a->report_by_us = INT64_MAX;
	m.u.report.iteration = a->iteration;
	m.u.report.whole = 1;
	do {
		uint32_t left = a->n_happened - at;

		m.u.report.n_events = left < EVENTS_MOST ? left : EVENTS_MOST;
		m.u.report.events = a->happened + at;
		agent_tell(a, &m, POST_RELIABLE, now_us);
		at += m.u.report.n_events;
		m.u.report.whole = 0;
	} while (at < a->n_happened);
	for (uint32_t i = 0; i < a->n_accused; i++) {
		struct msg t = { .type = MSG_TROUBLE, .u.trouble = a->accused[i] };

		agent_tell(a, &t, POST_RELIABLE, now_us);
	}
}

void report_event(struct agent *a, enum work_event type, const struct task *t, int64_t at_us,
		  float loss)
{
	if (a->n_events == 0)
		a->report_by_us = at_us + REPORT_US;
	a->events[a->n_events++] = (struct msg_task_event) {
		.type = (uint8_t)type,
		.kind = (uint8_t)t->kind,
		.node = a->run.node,
		.blocker_node = a->run.node,
		.microbatch = t->route.microbatch,
		.attempt = t->attempt,
		.blocker = type == WORK_ENDS ? QUEUE_NOBODY : t->blocker,
		.at_us = at_us,
		.arrived_us = t->arrived_us,
		.loss = type == WORK_ENDS && t->kind == WORK_LOSS ? loss : 0,
		.counted = type == WORK_ENDS && t->count,
		.slots = (uint8_t)queue_slots_held(a->queue),
	};
	remember(a, &a->events[a->n_events - 1]);
	if (a->n_events == EVENTS_MOST)
		report_flush(a, at_us);
}

static uint64_t resident_bytes(void)
{
	char text[64] = "", *at;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f)
		return 0;
	if (!fgets(text, sizeof(text), f))
		text[0] = 0;
	fclose(f);
	strtoull(text, &at, 10); /* the whole size stands first */
	return strtoull(at, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Tensors on their way: held here, or sent and not yet known to have come; pings are none. What the
 * controller is yet to hear counts too: a heartbeat overtakes the report of what has just ended. */
static uint32_t in_flight(const struct agent *a)
{
	size_t size = links_activation_bytes(a), n = delay_queue_count(a->delay_queue);
	struct post_peer_info info;

	n += a->n_events > 0 || !post_idle(a->control, a->controller);
	for (uint32_t i = 0; size && i < a->run.n_nodes; i++)
		if (a->peers[i].used && post_peer(a->tensors, a->peers[i].dial, &info) == 0 &&
		    info.retained_bytes > PING_BYTES)
			n += (info.retained_bytes + size - 1) / size;
	return (uint32_t)n;
}

static uint64_t refused(const struct agent *a, const struct post_counters *c)
{
	uint64_t n = 0;

	(void)a;
	for (int i = 0; i < LINK_REASON_COUNT; i++)
		n += c->link.refused[i];
	return n;
}

static void beat(struct agent *a, int64_t now_us)
{
	struct msg m = { .type = MSG_HEARTBEAT };
	struct msg_heartbeat *h = &m.u.heartbeat;
	struct post_counters control, tensors;
	struct msg_stuck stuck[MSG_STUCK];

	post_count(a->control, &control);
	post_count(a->tensors, &tensors);
	if (a->beat % RSS_BEATS == 0)
		a->rss_bytes = resident_bytes();
	h->beat = ++a->beat;
	h->now_us = now_us;
	h->echo_us = a->ping_us;
	h->echo_age_us = a->ping_at_us ? now_us - a->ping_at_us : 0;
	h->iteration = a->iteration;
	h->committed = a->committed;
	h->hash = a->hash;
	h->stage = a->standing == STAND_READY ? a->stage : MSG_NO_STAGE;
	if (a->queue) {
		h->slots = (uint8_t)queue_slots_held(a->queue);
		h->running = queue_running(a->queue) != NULL;
		h->blocked = queue_blocked(a->queue);
		h->queued = queue_waiting(a->queue);
		h->in_flight = in_flight(a);
	}
	h->tasks_done = a->tasks_done;
	h->rss_bytes = a->rss_bytes;
	h->sent_bytes = control.sent_bytes + tensors.sent_bytes;
	h->received_bytes = control.received_bytes + tensors.received_bytes;
	h->resent = control.resent_frames + tensors.resent_frames;
	h->refused = a->refused + refused(a, &control) + refused(a, &tensors);
	if (a->reducing == REDUCE_PARTS || a->reducing == REDUCE_SUMS)
		h->awaits = (uint16_t)(slices_awaits(a->slices) + 1);
	if (a->welcomed)
		tensors_look_at_frames(a, now_us);
	if (a->welcomed && !a->leaving)
		h->n_stuck = probe_links(a, stuck, now_us);
	h->stuck = stuck;
	agent_tell(a, &m, POST_LOSSY, now_us);
}

/* What a link carried while there was little to send is the least that it carries. */
void report_rate(struct peer *p, double bytes_per_s, bool limited)
{
	if (!limited || (p->bandwidth > 0 && bytes_per_s > (double)p->bandwidth))
		p->bandwidth = (float)bytes_per_s;
}

static bool measure_link(struct agent *a, uint16_t to, struct msg_link *l)
{
	struct peer *p = &a->peers[to];
	struct post_peer_info info;
	double latency, held;

	if (!p->dial || post_peer(a->tensors, p->dial, &info) < 0 || (!p->used && info.least_round_trip_us == 0))
		return false;
	latency = (double)info.least_round_trip_us * 0.5e-6;
	memset(l, 0, sizeof(*l));
	l->from = a->run.node;
	l->to = to;
	l->latency_s = (float)latency;
	l->spread_s = (float)info.round_trip_var_us * 0.5e-6f;
	report_rate(p, (double)info.delivery_bytes_per_s, info.delivery_limited);
	l->bandwidth_bytes_per_s = p->bandwidth;
	if (info.sent_messages)
		l->loss = (float)((double)info.resent_frames /
				  (double)(info.sent_messages + info.resent_frames));
	l->planned_delay_s = a->delay_s[to] > 0 ? a->delay_s[to] : 0;
	if (p->n_held) {
		held = p->held_s / (double)p->n_held;
		l->measured_delay_s = a->run.time_scale > 0
					      ? (float)((held + latency) / a->run.time_scale)
					      : (float)held;
		/* The next figure is of the tensors from here on. */
		p->told_s = held;
		p->held_s = 0;
		p->n_held = 0;
	}
	return true;
}

static const double unlike_s = 0.02; /* what differs by less is noise */

/* Two tensors that took twice as long on their way as was told last, or half, are told soon. */
void report_way(struct agent *a, uint16_t to, double way_s, int64_t now_us)
{
	struct peer *p = &a->peers[to];
	double told_s = p->told_s;

	if (told_s <= 0 && a->delay_s[to] > 0)
		told_s = (double)a->delay_s[to] * a->run.time_scale;
	p->held_s += way_s;
	p->n_held++;
	if (told_s <= 0 || fabs(way_s - told_s) < unlike_s || (way_s < 2 * told_s && way_s > told_s / 2))
		return;
	if (++a->n_unlike < UNLIKE || a->links_us < a->links_told_us + LINKS_SOON_US)
		return;
	a->links_us = a->links_told_us + LINKS_SOON_US;
	if (a->links_us < now_us)
		a->links_us = now_us;
}

void report_links(struct agent *a, int64_t now_us)
{
	struct msg_link *links = calloc(a->run.n_nodes, sizeof(links[0]));
	struct msg m = { .type = MSG_LINKS };

	for (uint16_t i = 0; links && i < a->run.n_nodes; i++)
		if (measure_link(a, i, &links[m.u.links.n_links]))
			m.u.links.n_links++;
	m.u.links.links = links;
	if (m.u.links.n_links)
		agent_tell(a, &m, POST_RELIABLE, now_us);
	free(links);
}

void report_turn(struct agent *a, int64_t now_us)
{
	if (now_us >= a->report_by_us)
		report_flush(a, now_us);
	/* Also before the welcome: it says that we wait for it. */
	if (now_us >= a->beat_us) {
		if (!a->leaving)
			beat(a, now_us);
		/* Beats that were missed stay missed. */
		a->beat_us += BEAT_US;
		if (a->beat_us <= now_us)
			a->beat_us = now_us + BEAT_US;
	}
	if (a->welcomed && now_us >= a->links_us && !a->leaving) {
		report_links(a, now_us);
		a->links_told_us = now_us;
		a->n_unlike = 0;
		a->links_us = now_us + (a->run.n_nodes > DIAL_ALL ? LINKS_MANY_US : LINKS_US);
	}
}
