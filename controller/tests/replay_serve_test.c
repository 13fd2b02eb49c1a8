/* replay_serve_test.c - a recorded run is served to real consoles over encrypted messages. Consoles
 * attach, jump, are refused, and request predictions. The server runs on its own thread, and no
 * test depends on its speed. */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/tests/test.h"
#include "controller/replay/replay_serve.h"
#include "controller/run/stream.h"
#include "controller/tests/recorded.h"
#include "wire/keys.h"
#include "wire/post.h"

enum { PATIENCE_US = 30000000 };

struct server {
	char folder[64], listen[96], key[96], admitted[96];
	struct options options;
	struct log log;
	struct keys_public public;
	pthread_t thread;
	int quit[2];
	int result;
	struct error err;
};

struct client {
	struct keys_identity *identity;
	struct post *post;
	post_peer_id server;
	uint64_t commands;
	struct msg last; /* the newest message, freed with msg_clear before the next message */
};

static void *serve(void *arg)
{
	struct server *s = arg;

	s->result = replay_serve(&s->options, &s->log, s->quit[0], &s->err);
	return NULL;
}

static void admit(const struct server *s, const struct keys_identity *who, enum keys_role role,
		  const char *name)
{
	struct keys_list *list;

	assert_int_equal(keys_list_open(&list, s->admitted, NULL), 0);
	assert_int_equal(keys_list_admit(list, keys_public_of(who), role, name, NULL), 0);
	keys_list_free(list);
}

static void start_with(struct server *s, struct client *c, int n_clients,
		       const struct recorded_options *o, struct store **writer)
{
	struct keys_identity *identity;

	memset(s, 0, sizeof(*s));
	strcpy(s->folder, "/tmp/skippipe-serve-XXXXXX");
	recorded_make(s->folder, o, writer);
	snprintf(s->listen, sizeof(s->listen), "ipc://%s/socket", s->folder);
	snprintf(s->key, sizeof(s->key), "%s/a.key", s->folder);
	snprintf(s->admitted, sizeof(s->admitted), "%s/admitted", s->folder);
	assert_int_equal(keys_generate(&identity, NULL), 0);
	assert_int_equal(keys_save(identity, s->key, NULL), 0);
	s->public = *keys_public_of(identity);
	keys_free(identity);
	for (int i = 0; i < n_clients; i++) {
		struct post_options po = { 0 };
		char name[16];

		memset(&c[i], 0, sizeof(c[i]));
		snprintf(name, sizeof(name), "console%d", i);
		assert_int_equal(keys_generate(&c[i].identity, NULL), 0);
		admit(s, c[i].identity, i == 0 ? KEYS_CONSOLE : KEYS_WATCHER, name);
		po.identity = c[i].identity;
		assert_int_equal(post_open(&c[i].post, &po, NULL), 0);
	}
	s->options = (struct options){ .mode.replay = true,
				       .run_dir = s->folder,
				       .listen = s->listen,
				       .key = s->key,
				       .admitted = s->admitted,
				       .mode.speed = 0 };
	assert_int_equal(pipe(s->quit), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
	for (int i = 0; i < n_clients; i++)
		assert_int_equal(post_dial(c[i].post, s->listen, &s->public, &c[i].server, NULL),
				 0);
}

static void start(struct server *s, struct client *c, int n_clients)
{
	static const struct recorded_options whole = { 0 };

	start_with(s, c, n_clients, &whole, NULL);
}

static void stop(struct server *s, struct client *c, int n_clients)
{
	char path[128];

	assert_int_equal(write(s->quit[1], "q", 1), 1);
	assert_int_equal(pthread_join(s->thread, NULL), 0);
	assert_int_equal(s->result, 0);
	for (int i = 0; i < n_clients; i++) {
		msg_clear(&c[i].last);
		post_close(c[i].post);
		keys_free(c[i].identity);
	}
	close(s->quit[0]);
	close(s->quit[1]);
	snprintf(path, sizeof(path), "%s/socket", s->folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/admitted.lock", s->folder);
	unlink(path);
	recorded_remove(s->folder);
}

static void tell(struct client *c, const struct msg *m)
{
	assert_int_equal(send_message_to(c->post, c->server, m, clock_monotonic_us()), 0);
}

static uint64_t ask(struct client *c, struct msg_command command)
{
	struct msg m = { .type = MSG_COMMAND };

	command.id = ++c->commands;
	m.u.command = command;
	tell(c, &m);
	return command.id;
}

/* Returns the next message of this type, which stays in c->last. Skips other messages. */
static const struct msg *expect(struct client *c, enum msg_type type)
{
	int64_t until = clock_monotonic_us() + PATIENCE_US;

	for (;;) {
		struct pollfd fd = { post_fd(c->post), POLLIN, 0 };
		int64_t now = clock_monotonic_us();
		struct post_message p;

		assert_true(now < until);
		poll(&fd, 1, 10);
		post_tick(c->post, now);
		while (post_receive(c->post, now, &p) == 0) {
			if (p.kind != POST_DATA)
				continue;
			msg_clear(&c->last);
			assert_int_equal(msg_decode(&c->last, p.data, p.size), 0);
			if (c->last.type == type)
				return &c->last;
		}
	}
}

static const struct msg_see_reply *reply_to(struct client *c, uint64_t id)
{
	const struct msg_see_reply *r;

	do
		r = &expect(c, MSG_SEE_REPLY)->u.see_reply;
	while (r->command != id);
	return r;
}

static void attach(struct client *c)
{
	struct msg m = { .type = MSG_ATTACH };

	tell(c, &m);
}

TEST(jumps_and_speeds_are_served)
{
	struct server s;
	struct client c;
	uint64_t run, id;

	start(&s, &c, 1);
	attach(&c);
	run = expect(&c, MSG_SEE_RUN)->u.see_run.run;
	assert_int_equal(c.last.u.see_run.replay, 1);
	assert_int_equal(c.last.u.see_run.first_us, 1000000);
	assert_int_equal(c.last.u.see_run.last_us, 5600000);
	assert_int_equal(expect(&c, MSG_SEE_STATUS)->u.see_status.now_us, 1000000);
	assert_int_equal(c.last.u.see_status.paused, 1);
	expect(&c, MSG_SEE_SYNCED);
	assert_int_equal(c.last.u.see_synced.sequence + 1, c.last.sequence);
	assert_string_equal(c.last.u.see_synced.name, "console0"); /* the name in the key list */

	id = ask(&c, (struct msg_command){ .verb = COMMAND_SEEK, .value = 3450000 });
	do /* before the jump, the server may describe the run once more, with its baseline */
		expect(&c, MSG_SEE_RUN);
	while (c.last.u.see_run.run == run);
	assert_int_equal(expect(&c, MSG_SEE_TASKS)->u.see_tasks.iteration, 2);
	assert_int_equal(expect(&c, MSG_SEE_STATUS)->u.see_status.now_us, 3450000);
	assert_int_equal(c.last.u.see_status.alive, 2);
	assert_int_equal(reply_to(&c, id)->status, 0);

	id = ask(&c, (struct msg_command){ .verb = COMMAND_STEP });
	assert_int_equal(reply_to(&c, id)->status, 0);
	assert_int_equal(expect(&c, MSG_SEE_STATUS)->u.see_status.now_us, 4400000);
	assert_int_equal(c.last.u.see_status.committed, 2);

	id = ask(&c, (struct msg_command){ .verb = COMMAND_SPEED, .factor = -1 });
	assert_int_equal(reply_to(&c, id)->status, -EINVAL);
	id = ask(&c, (struct msg_command){ .verb = COMMAND_SPEED, .factor = 100 });
	assert_int_equal(reply_to(&c, id)->status, 0);
	/* The replay continues */
	assert_int_equal(expect(&c, MSG_SEE_ITERATION)->u.see_iteration.iteration, 3);
	do
		expect(&c, MSG_SEE_STATUS);
	while (c.last.u.see_status.now_us != 5600000);
	assert_int_equal(c.last.u.see_status.phase, PHASE_FINISHED);
	assert_int_equal(c.last.u.see_status.paused, 0);
	id = ask(&c, (struct msg_command){ .verb = COMMAND_PAUSE });
	assert_int_equal(reply_to(&c, id)->status, 0);
	assert_int_equal(expect(&c, MSG_SEE_STATUS)->u.see_status.paused, 1);
	stop(&s, &c, 1);
}

TEST(the_past_stays_as_it_was)
{
	static const enum command_verb off[] = { COMMAND_SKIP,   COMMAND_FAIL, COMMAND_RECOVER,
						 COMMAND_INJECT, COMMAND_HEAL, COMMAND_HEAL_ALL,
						 COMMAND_UNDO,   COMMAND_STOP };
	struct server s;
	struct client c;
	uint64_t id;

	start(&s, &c, 1);
	attach(&c);
	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
		id = ask(&c,
			 (struct msg_command){ .verb = (uint8_t)off[i], .value = 1, .factor = 1 });
		assert_int_equal(reply_to(&c, id)->status, -EPERM);
		assert_string_equal(c.last.u.see_reply.text, "a recorded run: commands are off");
	}
	id = ask(&c, (struct msg_command){ .verb = COMMAND_SKIP, .value = 1, .text = "preview" });
	assert_int_equal(expect(&c, MSG_SEE_PREVIEW)->u.see_preview.command, id);
	assert_int_equal(c.last.u.see_preview.feasible, 0);
	id = ask(&c, (struct msg_command){ .verb = COMMAND_CUT, .text = "preview 0,7,5" });
	assert_int_equal(expect(&c, MSG_SEE_PREVIEW)->u.see_preview.command, id);
	assert_int_equal(c.last.u.see_preview.feasible, 0);
	stop(&s, &c, 1);
}

TEST(comparisons_are_served)
{
	struct server s;
	struct client c;
	uint64_t id;

	start(&s, &c, 1);
	attach(&c);
	expect(&c, MSG_SEE_SYNCED);
	id = ask(&c, (struct msg_command){ .verb = COMMAND_COMPARE, .node = -1, .text = "best" });
	/* The cursor is before the first plan, so the server cannot compare anything */
	assert_int_equal(reply_to(&c, id)->status, -EAGAIN);
	id = ask(&c, (struct msg_command){ .verb = COMMAND_SEEK, .value = 3300000 });
	assert_int_equal(reply_to(&c, id)->status, 0);
	id = ask(&c, (struct msg_command){
			     .verb = COMMAND_COMPARE, .node = 2, .value = 0, .text = "best" });
	assert_int_equal(reply_to(&c, id)->status, 0);
	do
		expect(&c, MSG_SEE_PLAN);
	while (!c.last.u.see_plan.candidate);
	assert_string_equal(c.last.u.see_plan.name, "best 0/2 -n02");
	assert_int_equal(c.last.u.see_plan.n_routes, RECORDED_MICROBATCHES);
	for (uint32_t i = 0; i < c.last.u.see_plan.n_routes; i++) {
		const struct route *r = &c.last.u.see_plan.routes[i];

		assert_int_equal(r->n_hops, 2);
		assert_int_equal(r->nodes[0], 0);
		assert_int_equal(r->nodes[1], 1); /* n02 is excluded, and n03 has not joined yet */
	}
	stop(&s, &c, 1);
}

static void expect_comparison(struct client *c, int64_t at_us, const char *name)
{
	uint64_t id = ask(c, (struct msg_command){ .verb = COMMAND_SEEK, .value = at_us });

	assert_int_equal(reply_to(c, id)->status, 0);
	ask(c, (struct msg_command){ .verb = COMMAND_COMPARE, .node = -1, .text = "best" });
	do
		expect(c, MSG_SEE_PLAN);
	while (!c->last.u.see_plan.candidate);
	assert_string_equal(c->last.u.see_plan.name, name);
	assert_int_equal(c->last.u.see_plan.n_routes, RECORDED_MICROBATCHES);
}

/* The run changes its stages while its replay is served. */
TEST(a_change_of_stages_is_followed)
{
	static const struct recorded_options o = { .until = 2, .recut = true };
	struct store *writer;
	struct server s;
	struct client c;
	uint64_t run;

	start_with(&s, &c, 1, &o, &writer);
	attach(&c);
	assert_int_equal(expect(&c, MSG_SEE_RUN)->u.see_run.n_stages, 2);
	run = c.last.u.see_run.run;
	expect(&c, MSG_SEE_SYNCED);
	recorded_restart(&writer, s.folder, &o);
	recorded_iteration(writer, 3, &o);
	do
		expect(&c, MSG_SEE_RUN);
	while (c.last.u.see_run.last_us != 5600000);
	assert_int_equal(c.last.u.see_run.run, run); /* the console keeps its picture of the run */
	expect_comparison(&c, 5000000, "best 0/3");
	expect_comparison(&c, 3300000, "best 0/2");
	ask(&c, (struct msg_command){ .verb = COMMAND_SPEED, .factor = 100 });
	assert_int_equal(expect(&c, MSG_SEE_RUN)->u.see_run.n_stages, 3);
	stop(&s, &c, 1);
	store_close(writer);
}

/* A console that does not know about replays takes a lease before it stops or steps the run. The
 * server grants such leases. */
TEST(the_lease_is_granted_to_all)
{
	struct server s;
	struct client c[2];
	uint64_t id;

	start(&s, c, 2);
	for (int i = 0; i < 2; i++) {
		attach(&c[i]);
		assert_string_equal(expect(&c[i], MSG_SEE_STATUS)->u.see_status.lease, "");
		id = ask(&c[i], (struct msg_command){ .verb = COMMAND_ARM, .value = 600 });
		assert_int_equal(reply_to(&c[i], id)->status, 0);
	}
	for (int i = 0; i < 2; i++) {
		expect(&c[i], MSG_SEE_STATUS);
		assert_string_equal(c[i].last.u.see_status.lease, i ? "console1" : "console0");
		assert_in_range(c[i].last.u.see_status.lease_us, 1, 600000000);
	}
	stop(&s, c, 2);
}

/* Two people look at two different times. One of them has only a watcher's key, but can still move
 * a cursor. */
TEST(each_console_has_a_cursor)
{
	struct server s;
	struct client c[2];
	uint64_t id;

	start(&s, c, 2);
	for (int i = 0; i < 2; i++) {
		attach(&c[i]);
		id = ask(&c[i], (struct msg_command){ .verb = COMMAND_SEEK,
						      .value = 2000000 + 1000000 * i });
		assert_int_equal(reply_to(&c[i], id)->status, 0);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(expect(&c[i], MSG_SEE_STATUS)->u.see_status.now_us,
				 2000000 + 1000000 * i);
	stop(&s, c, 2);
}

TEST(a_missing_run_is_reported)
{
	struct options o = { .mode.replay = true,
			     .run_dir = "/nonexistent",
			     .listen = "tcp://127.0.0.1:0" };
	struct log log = { 0 };
	struct error err = { "" };

	assert_int_equal(replay_serve(&o, &log, -1, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent"));
}
