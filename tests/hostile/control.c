/* control.c - attacks on the controller with an admitted agent's key. Messages try to make the
 * controller believe, record, store or plan more than it should. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "tests/hostile/hostile.h"

enum {
	/* For each kind of message: the number of rows in a message, and the shortest interval that
	 * the key's quota allows. */
	LINKS = 1000,
	LINKS_EVERY_US = 300000,
	EVENTS = 1000,
	EVENTS_EVERY_US = 50000,
	LINES_EVERY_US = 150000,
	ATTACHES = 19
};

/* Returns true if every_us have passed since this function last returned true. */
static bool is_due(struct hostile *h, int64_t now_us, int64_t every_us)
{
	if (now_us < (int64_t)h->next)
		return false;
	h->next = (uint64_t)(now_us + every_us);
	return true;
}

void contradict(struct hostile *h, int64_t now_us)
{
	const struct agent *a = h->agent;
	struct msg_link links[LINKS];
	struct msg m = { .type = MSG_LINKS,
			 .u.links = { LINKS, links, (uint8_t)a->progress.wire, 0, 0 } };

	if (!is_due(h, now_us, LINKS_EVERY_US))
		return;
	h->done = !h->done;
	for (uint32_t i = 0; i < LINKS; i++)
		links[i] = (struct msg_link){ .from = a->run.welcome.node,
					      .to = (uint16_t)(i / 2 % a->run.welcome.n_nodes),
					      .latency_s = h->done ? 2 : 1e-3f,
					      .measured_delay_s = h->done ? 30 : 1e-3f };
	hostile_send_control(h, &m, now_us);
}

void forge(struct hostile *h, int64_t now_us)
{
	const uint64_t done = h->agent->held.committed;

	for (uint64_t stage = 0; stage < 3; stage++) {
		struct msg saved = { .type = MSG_SAVED }, committed = { .type = MSG_COMMITTED };

		saved.u.saved = (struct msg_saved){ .iteration = done - h->turns % 4,
						    .stage = (uint8_t)stage,
						    .hash = h->turns,
						    .bytes = 1000000 };
		committed.u.committed = (struct msg_committed){ done + 1 - h->turns % 8,
								(uint8_t)stage, h->turns, 0,
								{ { UINT64_MAX, 1, 2, 3 } } };
		hostile_send_control(h, &saved, now_us);
		hostile_send_control(h, &committed, now_us);
	}
}

void repeat(struct hostile *h, int64_t now_us)
{
	const struct agent *a = h->agent;
	struct msg_task_event events[EVENTS];
	struct msg m = { .type = MSG_REPORT };

	if (!is_due(h, now_us, EVENTS_EVERY_US))
		return;
	for (uint32_t i = 0; i < EVENTS; i++)
		events[i] = (struct msg_task_event){ .type = WORK_STARTS,
						     .kind = (uint8_t)(i % 3),
						     .node = a->run.welcome.node,
						     .microbatch = i / 3 % 8,
						     .attempt = i / 24,
						     .blocker = UINT32_MAX,
						     .at_us = now_us,
						     .arrived_us = now_us };
	m.u.report = (struct msg_report){ .iteration = a->progress.iteration,
					  .n_events = EVENTS,
					  .events = events };
	hostile_send_control(h, &m, now_us);
}

void lines(struct hostile *h, int64_t now_us)
{
	struct msg m = { .type = MSG_LOG, .u.log = { .level = LOG_ERROR, .dropped = UINT32_MAX } };

	if (!is_due(h, now_us, LINES_EVERY_US))
		return;
	snprintf(m.u.log.text, sizeof(m.u.log.text),
		 "\x1b]0;owned\x07\x1b[2J\r\n2026-01-01T00:00:00.000Z error controller: "
		 "forged\xff\xc2\x9b");
	hostile_send_control(h, &m, now_us);
}

/* ---- attacks with a watcher's key ---- */

struct watcher {
	struct keys_identity *id;
	struct post *post;
	post_peer_id to;
	bool attached;
	uint32_t received;
};

static bool connect_watcher(struct hostile *h, struct watcher *w)
{
	const struct agent_options *o = &h->agent->options;
	struct post_options p = { .silence_us = 0 };
	const char *path = getenv("HOSTILE_WATCHER");

	if (!w->id && (!path || keys_load(&w->id, path, NULL) != 0))
		return false;
	p.identity = w->id;
	w->attached = false;
	w->received = 0;
	return post_open(&w->post, &p, NULL) == 0 &&
	       post_dial(w->post, o->join, &o->controller, &w->to, NULL) == 0;
}

static void send_message(struct watcher *w, const struct msg *m, int64_t now_us)
{
	uint8_t bytes[512];
	long size = msg_encode(m, bytes, sizeof(bytes));
	const struct post_part part = { bytes, (size_t)size };

	if (size > 0)
		(void)post_send(w->post, w->to, &part, 1, POST_RELIABLE, now_us);
}

/* Sends ATTACHES pairs of requests as one watcher. When enough answers have arrived, the watcher
 * leaves, and another watcher connects. */
static void send_requests(struct watcher *w, int64_t now_us)
{
	struct msg attach = { .type = MSG_ATTACH,
			      .u.attach = { .protocol = MSG_VERSION, .name = "again" } };
	struct msg compare = { .type = MSG_COMMAND };

	for (uint32_t i = 0; i < ATTACHES; i++) {
		compare.u.command = (struct msg_command){ .id = i + 1,
							  .verb = COMMAND_COMPARE,
							  .node = -1,
							  .peer = -1,
							  .value = i % 2,
							  .text = "best" };
		send_message(w, &attach, now_us);
		send_message(w, &compare, now_us);
	}
	w->attached = true;
}

void watch(struct hostile *h, int64_t now_us)
{
	static struct watcher w;
	struct post_message in;

	if (!w.post && !connect_watcher(h, &w))
		return;
	post_tick(w.post, now_us);
	while (post_receive(w.post, now_us, &in) == 0) {
		if (in.kind == POST_UP && !w.attached)
			send_requests(&w, now_us);
		w.received += in.kind == POST_DATA;
	}
	if (w.received < ATTACHES)
		return;
	post_close(w.post);
	w.post = NULL;
}
