/* replay_serve.c - serves a recorded run to consoles.
 *
 * An operator can look at a finished run with the same console that shows live runs. Each console
 * has its own cursor. The console can start, stop and move the cursor, and change its speed. The
 * console gets the messages that the live run would send at the cursor. The planner answers
 * comparisons. Commands that would change a run are refused. */
#include "controller/replay/replay_serve.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "controller/iteration/plan_message.h"
#include "controller/network/network.h"
#include "controller/replay/replay.h"
#include "controller/operator/console_messages.h"
#include "controller/run/stream.h"

enum {
	/* Largest number of messages handled before the cursors move again */
	MESSAGES_A_TURN = 256,
	MOVE_EVERY_US = 50000,    /* time between two moves of a cursor */
	STATUS_EVERY_US = 200000, /* time between two status messages */
	NODES_EVERY_US = 500000,  /* time between two messages about each node */
	GROW_EVERY_US = 1000000,  /* least time between two checks for new rows */
	REFRESH_US = 300000,      /* time between two checks of the list of admitted keys */
	VIEWERS_MOST = 64,
	AWAITED_MOST = 16,
	LEASE_MOST_S = 86400
};
static const double speed_most = 10000; /* largest speed of a cursor, as a multiple of real time */

/* A console and its cursor. */
struct viewer {
	post_peer_id peer;
	char name[64];
	struct replay *replay;
	struct replay_pace pace;
	bool lagging; /* a message was lost; a snapshot is sent once the queue has room */
	uint64_t sequence, dropped;
	/* End of the console's lease, which a console needs before it sends commands */
	int64_t lease_ends_us;
	/* Times at which the cursor last moved, and at which the status and the nodes were last
	 * sent */
	int64_t moved_us, status_us, nodes_us;
};

/* A comparison that the planner has not answered. */
struct awaited {
	uint64_t request;
	/* index of the part of the run; the compared plans have the stages of this part */
	size_t part;
	post_peer_id peer;
	uint64_t command;
	char name[32];
};

/* The state of the server. */
struct server {
	const struct options *options;
	const struct log *log;
	struct keys_identity *identity;
	struct keys_list *admitted;
	struct post *post;
	struct store *store;
	struct recorded_run *recorded;
	struct planner *planner;
	size_t n_baselines; /* number of parts of the run whose baselines were planned */
	/* Allocated one by one, so that their addresses stay the same: callbacks point to them. */
	struct viewer *viewers[VIEWERS_MOST];
	uint32_t n_viewers;
	struct awaited awaited[AWAITED_MOST];
	uint32_t n_awaited;
	/* Present time, and times of the next checks for new rows and for new keys */
	int64_t now_us, grow_us, refresh_us;
};

/* The context of the callbacks of replay.h: the console that receives a message. */
struct recipient {
	struct server *t;
	struct viewer *v;
};

/* ---- sending ---- */

static void send_viewer(void *context, struct msg *m)
{
	struct recipient *to = context;
	struct viewer *v = to->v;

	if (v->lagging)
		return;
	if (m->type == MSG_SEE_SYNCED) {
		m->u.see_synced.sequence = v->sequence;
		memcpy(m->u.see_synced.name, v->name, sizeof(v->name));
	}
	if (m->type == MSG_SEE_STATUS && v->lease_ends_us > to->t->now_us) {
		memcpy(m->u.see_status.lease, v->name, sizeof(v->name));
		m->u.see_status.lease_us = v->lease_ends_us - to->t->now_us;
	}
	m->sequence = ++v->sequence;
	if (send_message_to(to->t->post, v->peer, m, to->t->now_us) != 0) {
		v->dropped++;
		v->lagging = true;
	}
}

static void log_failure(const struct server *t, int rc, const struct error *err)
{
	if (rc < 0)
		log_line(t->log, LOG_ERROR, "%s", err->text);
}

static void note_pace(struct viewer *v)
{
	replay_note_pace(v->replay, v->pace.stopped ? 0 : v->pace.speed, v->dropped);
}

static void send_snapshot(struct server *t, struct viewer *v)
{
	struct recipient to = { t, v };
	struct error err = { "" };

	v->lagging = false;
	v->status_us = v->nodes_us = t->now_us;
	note_pace(v);
	log_failure(t, replay_snapshot(v->replay, send_viewer, &to, &err), &err);
}

/* Moves the console's cursor as real time passes. A console that lost a message gets nothing until
 * its send queue has room, and then a snapshot. */
static void move_viewer(struct server *t, struct viewer *v)
{
	struct recipient to = { t, v };
	struct error err = { "" };
	int64_t to_us;

	if (t->now_us - v->moved_us < MOVE_EVERY_US)
		return;
	to_us = replay_cursor(v->replay) + replay_pace_step(&v->pace, t->now_us - v->moved_us);
	v->moved_us = t->now_us;
	if (v->lagging)
		log_failure(t, replay_seek(v->replay, to_us, &err), &err);
	else
		log_failure(t, replay_next(v->replay, to_us, send_viewer, &to, &err), &err);
	if (v->lagging && post_room(t->post, v->peer) > (8u << 20))
		send_snapshot(t, v);
	note_pace(v);
	if (t->now_us - v->nodes_us >= NODES_EVERY_US) {
		v->nodes_us = t->now_us;
		log_failure(t, replay_nodes(v->replay, send_viewer, &to, &err), &err);
	}
	if (t->now_us - v->status_us >= STATUS_EVERY_US) {
		v->status_us = t->now_us;
		replay_status(v->replay, send_viewer, &to);
	}
}

/* ---- viewers ---- */

static struct viewer *viewer_of(struct server *t, post_peer_id peer)
{
	for (uint32_t i = 0; i < t->n_viewers; i++)
		if (t->viewers[i]->peer == peer)
			return t->viewers[i];
	return NULL;
}

static void viewer_free(struct viewer *v)
{
	replay_free(v->replay);
	free(v);
}

static struct viewer *viewer_new(struct server *t, post_peer_id peer, const char *name)
{
	struct error err = { "too many consoles" };
	struct replay *replay;
	struct viewer *v;

	if (t->n_viewers == VIEWERS_MOST || replay_new(&replay, t->recorded, &err) != 0) {
		log_line(t->log, LOG_ERROR, "console %s: %s", name, err.text);
		return NULL;
	}
	v = alloc_new(sizeof(*v));
	v->replay = replay;
	v->peer = peer;
	v->pace.speed = t->options->mode.speed > 0 ? t->options->mode.speed : 1;
	v->pace.stopped = t->options->mode.speed <= 0;
	v->moved_us = t->now_us;
	snprintf(v->name, sizeof(v->name), "%s", name);
	t->viewers[t->n_viewers++] = v;
	log_line(t->log, LOG_INFO, "console %s attached", v->name);
	return v;
}

static void attach_viewer(struct server *t, post_peer_id peer)
{
	struct post_peer_info info;
	struct viewer *v = viewer_of(t, peer);

	if (post_peer(t->post, peer, &info) != 0)
		return;
	if (!v)
		v = viewer_new(t, peer, info.name);
	if (v)
		send_snapshot(t, v);
}

static void detach_viewer(struct server *t, post_peer_id peer)
{
	for (uint32_t i = 0; i < t->n_viewers; i++) {
		if (t->viewers[i]->peer != peer)
			continue;
		log_line(t->log, LOG_INFO, "console %s left", t->viewers[i]->name);
		viewer_free(t->viewers[i]);
		t->viewers[i] = t->viewers[--t->n_viewers];
		return;
	}
}

/* ---- commands ---- */

static void reply_to(struct server *t, struct viewer *v, uint64_t command, int status,
		     const char *format, ...)
	__attribute__((format(printf, 5, 6)));

static void reply_to(struct server *t, struct viewer *v, uint64_t command, int status,
		     const char *format, ...)
{
	struct recipient to = { t, v };
	struct msg m = { .type = MSG_SEE_REPLY,
			 .u.see_reply = { .command = command, .status = status } };
	va_list ap;

	va_start(ap, format);
	vsnprintf(m.u.see_reply.text, sizeof(m.u.see_reply.text), format, ap);
	va_end(ap);
	send_viewer(&to, &m);
}

static void jump_to(struct server *t, struct viewer *v, uint64_t command, int64_t to_us)
{
	const struct recorded_run *r = t->recorded;
	struct error err = { "" };
	int rc = replay_seek(v->replay, to_us, &err);

	v->moved_us = t->now_us;
	v->pace.carry_us = 0;
	if (rc != 0) {
		reply_to(t, v, command, rc, "%.180s", err.text);
		return;
	}
	send_snapshot(t, v);
	reply_to(t, v, command, 0, "at %.1f s of %.1f s",
	      (double)(replay_cursor(v->replay) - r->first_us) * 1e-6,
	      (double)(r->last_us - r->first_us) * 1e-6);
}

static void run_at(struct server *t, struct viewer *v, const struct msg_command *m)
{
	double speed = (double)m->factor;

	if (!(speed >= 0 && speed <= speed_most)) {
		reply_to(t, v, m->id, -EINVAL, "a speed is 0 to %g times real", speed_most);
		return;
	}
	v->pace.stopped = speed <= 0;
	if (speed > 0)
		v->pace.speed = speed;
	reply_to(t, v, m->id, 0, "%g times real", speed);
}

/* Grants the lease to the console. Each console has a lease of its own, because each has its own
 * cursor. */
static void arm_viewer(struct server *t, struct viewer *v, const struct msg_command *m)
{
	int64_t seconds = m->value < 0 ? 0 : m->value > LEASE_MOST_S ? LEASE_MOST_S : m->value;

	v->lease_ends_us = t->now_us + seconds * 1000000;
	reply_to(t, v, m->id, 0, seconds ? "the cursor is yours" : "locked");
}

static void ask_comparison(struct server *t, struct viewer *v, const struct msg_command *m)
{
	bool excluded[MSG_NODES];
	struct planner_request q = { .excluded = excluded, .threads = 1, .reason = "what if",
				     .seed = t->recorded->run->seed };
	struct cluster *cluster = NULL;
	struct awaited *a;
	char name[32];
	struct error err = { "" };
	int rc = replay_present(v->replay, &q.from, excluded, &cluster, &err);

	if (rc == 0)
		q.formats = cluster->formats;
	if (rc == 0)
		rc = compare_request(m, cluster->n_stages, cluster_most_skipped(cluster),
				     t->recorded->n_nodes, excluded, &q, name, sizeof(name),
				     &err);
	if (rc != 0) {
		reply_to(t, v, m->id, rc, "%.180s", err.text);
	} else {
		if (t->n_awaited == AWAITED_MOST) /* drops the oldest request */
			memmove(t->awaited, t->awaited + 1, --t->n_awaited * sizeof(*t->awaited));
		a = &t->awaited[t->n_awaited++];
		cluster_reformat(cluster, &q.formats);
		*a = (struct awaited){ planner_ask(t->planner, cluster, &q),
				       replay_part_at(v->replay), v->peer, m->id, "" };
		memcpy(a->name, name, sizeof(a->name));
		reply_to(t, v, m->id, 0, "planning %s", name);
	}
	cluster_free(cluster);
}

/* Returns true if the text requests a preview. Layers may follow the word, as in "preview
 * 0,7,5". */
static bool asks_preview(const char *text)
{
	size_t length = strlen("preview");

	return strncmp(text, "preview", length) == 0 && (!text[length] || text[length] == ' ');
}

static void refuse_act(struct server *t, struct viewer *v, const struct msg_command *m)
{
	static const char why[] = "a recorded run: commands are off";
	struct recipient to = { t, v };
	struct msg preview = { .type = MSG_SEE_PREVIEW,
			       .u.see_preview = { .command = m->id, .verb = m->verb } };

	if (!asks_preview(m->text)) {
		reply_to(t, v, m->id, -EPERM, "%s", why);
		return;
	}
	memcpy(preview.u.see_preview.text, why, sizeof(why));
	send_viewer(&to, &preview);
}

static void take_command(struct server *t, struct viewer *v, const struct msg_command *m)
{
	struct recipient to = { t, v };

	switch ((enum command_verb)m->verb) {
	case COMMAND_SEEK:
		jump_to(t, v, m->id, m->value);
		break;
	case COMMAND_SPEED:
		run_at(t, v, m);
		break;
	case COMMAND_PAUSE:
		v->pace.stopped = true;
		reply_to(t, v, m->id, 0, "stopped");
		break;
	case COMMAND_RESUME:
		v->pace.stopped = false;
		reply_to(t, v, m->id, 0, "%g times real", v->pace.speed);
		break;
	case COMMAND_STEP:
		v->pace.stopped = true;
		jump_to(t, v, m->id, replay_next_commit(v->replay));
		break;
	case COMMAND_ARM:
		arm_viewer(t, v, m);
		break;
	case COMMAND_ACK:
		reply_to(t, v, m->id, 0, "%u alerts acknowledged",
		      replay_acknowledge(v->replay, (uint64_t)m->value, send_viewer, &to));
		break;
	case COMMAND_COMPARE:
		ask_comparison(t, v, m);
		break;
	default:
		refuse_act(t, v, m);
	}
	v->status_us = 0; /* 0: the next turn sends the status with the new speed at once */
}

/* ---- main loop ---- */

static void take_message(struct server *t, const struct post_message *p)
{
	struct viewer *v = viewer_of(t, p->peer);
	struct msg m;
	int rc = msg_decode(&m, p->data, p->size);

	if (rc != 0) {
		log_line(t->log, LOG_WARN, "a malformed message: %s", strerror(-rc));
		return;
	}
	if (m.type == MSG_ATTACH)
		attach_viewer(t, p->peer);
	else if (m.type == MSG_COMMAND && v)
		take_command(t, v, &m.u.command);
	msg_clear(&m);
}

static void receive_messages(struct server *t)
{
	struct post_message p;
	struct error err;

	post_tick(t->post, t->now_us);
	for (int i = 0; i < MESSAGES_A_TURN && post_receive(t->post, t->now_us, &p) == 0; i++) {
		if (p.kind == POST_DATA)
			take_message(t, &p);
		else if (p.kind == POST_DOWN)
			detach_viewer(t, p.peer);
	}
	if (t->now_us >= t->refresh_us) {
		t->refresh_us = t->now_us + REFRESH_US;
		if (keys_list_refresh(t->admitted, &err) < 0)
			log_line(t->log, LOG_WARN, "%s", err.text);
	}
}

static void tell_candidate(struct server *t, const struct planned *p)
{
	const struct recorded_run *r = t->recorded;
	const struct recorded_part *part;
	struct message_run run;
	struct plan_message s;
	struct awaited a;
	struct recipient to = { t, NULL };
	uint32_t i = 0;

	while (i < t->n_awaited && t->awaited[i].request != p->request)
		i++;
	if (i == t->n_awaited)
		return;
	a = t->awaited[i];
	memmove(&t->awaited[i], &t->awaited[i + 1], (--t->n_awaited - i) * sizeof(a));
	to.v = viewer_of(t, a.peer);
	if (!to.v)
		return;
	part = &r->parts.list[a.part];
	run = (struct message_run){ r->n_nodes, part->n_shards, part->per_shard, part->shard_of,
				    r->unit_s };
	if (a.part != replay_part_at(to.v->replay)) {
		reply_to(t, to.v, a.command, -ESTALE, "%s: other stages at this time", a.name);
	} else if (!p->plan) {
		reply_to(t, to.v, a.command, -EINVAL, "%s: %.140s", a.name, p->infeasible);
	} else if (plan_message_init(&s, &run, p, a.name) == 0) {
		send_viewer(&to, &s.message);
		plan_message_fini(&s);
	}
}

static void run_all(struct server *t)
{
	for (uint32_t i = 0; i < t->n_viewers; i++) {
		struct recipient to = { t, t->viewers[i] };

		replay_run(t->viewers[i]->replay, send_viewer, &to);
	}
}

/* Requests the baseline of the first part that has none. The next call requests the baseline of
 * the next part, because the planner drops an unanswered request when another arrives. */
static void ask_baseline(struct server *t)
{
	const struct recorded_run *r = t->recorded;
	struct planner_request q = { .kind = PLANNER_BASELINE, .algorithm = PLAN_DTFM,
				     .budget_s = 0.5,
				     .threads = 1, .seed = r->run->seed,
				     .free_assignment = true,
				     .reason = "baseline: every stage, straight pipelines" };

	if (t->n_baselines == r->parts.n)
		return;
	q.path_length = r->parts.list[t->n_baselines].cluster->n_stages;
	planner_ask(t->planner, r->parts.list[t->n_baselines].cluster, &q);
}

static void take_baseline(struct server *t, const struct planned *p)
{
	struct recorded_part *part = &t->recorded->parts.list[t->n_baselines++];

	if (p->plan) {
		part->baseline_s = p->plan->predicted.iteration_s;
		run_all(t);
	}
	ask_baseline(t);
}

static void take_plans(struct server *t)
{
	struct planned *p;

	while ((p = planner_take(t->planner)) != NULL) {
		if (p->kind == PLANNER_BASELINE)
			take_baseline(t, p);
		else
			tell_candidate(t, p);
		planned_free(p);
	}
}

/* Opens the store again and reads the record. An open store keeps the description that it read at
 * first, so it would not show that the run has changed its stages. */
static int read_again(struct server *t, struct store **store, struct recorded_run **out,
		      struct error *err)
{
	int rc = store_open(store, t->options->run_dir, err);

	if (rc == 0)
		rc = recorded_run_read(out, *store, err);
	if (rc == 0)
		return 1;
	store_close(*store);
	return rc;
}

static void replace_record(struct server *t, struct store *store, struct recorded_run *more)
{
	bool is_idle = t->n_baselines == t->recorded->parts.n;

	for (size_t i = 0; i < more->parts.n && i < t->recorded->parts.n; i++)
		more->parts.list[i].baseline_s = t->recorded->parts.list[i].baseline_s;
	for (uint32_t i = 0; i < t->n_viewers; i++) {
		struct recipient to = { t, t->viewers[i] };
		struct error err = { "" };
		int rc = replay_renew(t->viewers[i]->replay, more, &err);

		log_failure(t, rc, &err);
		if (rc != 0)
			send_snapshot(t, t->viewers[i]);
		else
			replay_run(t->viewers[i]->replay, send_viewer, &to);
	}
	recorded_run_free(t->recorded);
	store_close(t->store);
	t->recorded = more;
	t->store = store;
	if (is_idle)
		ask_baseline(t);
}

/* Reads the recorded run again if the run has written more rows. The longer the reading takes, the
 * longer is the pause before the next check. */
static void grow_viewers(struct server *t)
{
	struct recorded_run *more;
	struct store *store = NULL;
	struct error err = { "" };
	int64_t took;
	int rc;

	if (t->now_us < t->grow_us)
		return;
	rc = recorded_run_grew(t->recorded, &err);
	if (rc == 1)
		rc = read_again(t, &store, &more, &err);
	log_failure(t, rc, &err);
	if (rc == 1)
		replace_record(t, store, more);
	took = clock_monotonic_us() - t->now_us;
	t->grow_us = t->now_us + GROW_EVERY_US + 20 * took;
}

static void run_loop(struct server *t, int signals)
{
	struct pollfd fds[] = { { post_fd(t->post), POLLIN, 0 },
				{ planner_fd(t->planner), POLLIN, 0 },
				{ signals, POLLIN, 0 } };

	for (;;) {
		int64_t left = post_deadline_us(t->post) - clock_monotonic_us();
		int wait_ms = left <= 0 ? 0 : left < 20000 ? (int)((left + 999) / 1000) : 20;

		if (poll(fds, 3, wait_ms) > 0 && (fds[2].revents & POLLIN))
			return;
		t->now_us = clock_monotonic_us();
		receive_messages(t);
		take_plans(t);
		grow_viewers(t);
		for (uint32_t i = 0; i < t->n_viewers; i++)
			move_viewer(t, t->viewers[i]);
	}
}

/* ---- start ---- */

int replay_serve(const struct options *o, const struct log *log, int signals, struct error *err)
{
	struct server t = { .options = o, .log = log, .now_us = clock_monotonic_us() };
	char bound[LINK_ADDRESS_SIZE];
	int rc = store_open(&t.store, o->run_dir, err);

	if (rc == 0) {
		rc = recorded_run_read(&t.recorded, t.store, err);
		if (rc != 0)
			error_prefix(err, rc, "%s", o->run_dir);
	}
	if (rc == 0)
		rc = network_open(o, KEYS_ROLE_BIT(KEYS_CONSOLE) | KEYS_ROLE_BIT(KEYS_WATCHER), log,
				  &t.identity, &t.admitted, &t.post, bound, err);
	if (rc == 0)
		rc = planner_start(&t.planner, err);
	if (rc == 0) {
		log_line(log, LOG_INFO, "replaying %s: %zu iterations in %.1f s", o->run_dir,
			 t.recorded->iterations.n,
			 (double)(t.recorded->last_us - t.recorded->first_us) * 1e-6);
		ask_baseline(&t);
		run_loop(&t, signals);
	}
	/* Each of these functions accepts NULL, so this code may run after any failure. */
	planner_stop(t.planner);
	for (uint32_t i = 0; i < t.n_viewers; i++)
		viewer_free(t.viewers[i]);
	post_close(t.post);
	recorded_run_free(t.recorded);
	store_close(t.store);
	keys_list_free(t.admitted);
	keys_free(t.identity);
	return rc;
}
