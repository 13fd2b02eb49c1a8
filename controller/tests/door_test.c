/* A whole controller, and those it must not obey: watchers who would steer, consoles without
 * the lease, an agent and a watcher that send too much, a stranger. The operator goes on and is
 * told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/keys.h"
#include "wire/msg.h"
#include "wire/post.h"

struct door {
	char folder[64], admitted[96], key[96];
	struct keys_identity *controller;
	struct keys_list *list;
	char address[LINK_ADDRESS_SIZE];
	pid_t pid;
};

struct visitor {
	struct keys_identity *id;
	struct post *post;
	post_peer_id to;
	bool up, synced, refused;
	enum link_reason reason;
	uint64_t answered;
	int32_t status;
	char journal[1 << 14]; /* notes told, one a line */
};

static void visitor_new(struct visitor *v, struct door *d, enum keys_role role,
			const char *name)
{
	struct post_options o = { 0 };

	*v = (struct visitor){ 0 };
	assert_int_equal(keys_generate(&v->id, NULL), 0);
	if (role)
		assert_int_equal(
			keys_list_admit(d->list, keys_public_of(v->id), role, name, NULL), 0);
	o.identity = v->id;
	assert_int_equal(post_open(&v->post, &o, NULL), 0);
	assert_int_equal(
		post_dial(v->post, d->address, keys_public_of(d->controller), &v->to, NULL), 0);
}

static void visitor_free(struct visitor *v)
{
	post_close(v->post);
	keys_free(v->id);
}

static void hear(struct visitor *v, const struct msg *m)
{
	size_t at = strlen(v->journal);

	if (m->type == MSG_SEE_SYNCED)
		v->synced = true;
	if (m->type == MSG_SEE_REPLY) {
		v->answered = m->u.see_reply.command;
		v->status = m->u.see_reply.status;
	}
	if (m->type == MSG_SEE_NOTE)
		snprintf(v->journal + at, sizeof(v->journal) - at, "%s\n", m->u.see_note.text);
}

static void turn(struct visitor *v)
{
	struct pollfd p = { .fd = post_fd(v->post), .events = POLLIN };
	struct post_message in;
	struct msg m;

	poll(&p, 1, 1);
	post_tick(v->post, clock_monotonic_us());
	for (int i = 0; i < 64 && post_receive(v->post, clock_monotonic_us(), &in) == 0; i++) {
		v->up = v->up || in.kind == POST_UP;
		if (in.kind == POST_REFUSED) {
			v->refused = true;
			v->reason = in.reason;
		}
		if (in.kind != POST_DATA || msg_decode(&m, in.data, in.size) != 0)
			continue;
		hear(v, &m);
		msg_clear(&m);
	}
}

/* Turns v (and w, unless NULL) until the condition holds. */
#define UNTIL(v, w, condition) \
	do { \
		int64_t give_up_ = clock_monotonic_us() + 30000000; \
		struct visitor *w_ = (w); \
		while (!(condition)) { \
			turn(v); \
			if (w_) \
				turn(w_); \
			if (clock_monotonic_us() > give_up_) \
				fail_msg("never came: %s", #condition); \
		} \
	} while (0)

/* The controller looks at its list a few times a second: until then even the admitted are
 * refused. */
static void come_in(struct visitor *v, struct visitor *other)
{
	UNTIL(v, other, v->up);
	v->refused = false;
}

static void send(struct visitor *v, const struct msg *m, enum post_flags flags)
{
	unsigned char data[2048];
	long size = msg_encode(m, data, sizeof(data));
	struct post_part part = { data, (size_t)size };

	assert_true(size > 0);
	post_send(v->post, v->to, &part, 1, flags, clock_monotonic_us());
}

static void attach(struct visitor *v)
{
	struct msg m = { .type = MSG_ATTACH,
			 .u.attach = { .protocol = MSG_VERSION, .name = "test" } };

	send(v, &m, POST_RELIABLE);
	UNTIL(v, NULL, v->synced);
	v->refused = false;
}

/* The status the controller answers. */
static int32_t command(struct visitor *v, enum command_verb verb, int64_t value)
{
	static uint64_t id;
	struct msg m = { .type = MSG_COMMAND };

	m.u.command = (struct msg_command){
		.id = ++id, .verb = (uint8_t)verb, .node = -1, .peer = -1, .value = value
	};
	send(v, &m, POST_RELIABLE);
	UNTIL(v, NULL, v->answered == id);
	return v->status;
}

/* ---- the controller ---- */

static void read_address(struct door *d, int from)
{
	char line[512] = "", *at;
	FILE *f = fdopen(from, "r");

	while (fgets(line, sizeof(line), f)) {
		at = strstr(line, "listening at ");
		if (at && sscanf(at, "listening at %100s", d->address) == 1)
			return; /* f stays open: a closed pipe would end the controller's log */
	}
	fail_msg("the controller does not listen: %s", line);
}

static int door_open(void **state)
{
	struct door *d = calloc(1, sizeof(*d));
	const char *build = getenv("SKIPPIPE_BUILD");
	char program[512], run[96];
	int pipes[2];

	strcpy(d->folder, "/tmp/skippipe-door-XXXXXX");
	assert_non_null(mkdtemp(d->folder));
	snprintf(d->admitted, sizeof(d->admitted), "%s/admitted", d->folder);
	snprintf(d->key, sizeof(d->key), "%s/key", d->folder);
	snprintf(run, sizeof(run), "%s/run", d->folder);
	snprintf(program, sizeof(program), "%s/bin/skippipe-controller",
		 build ? build : "build");
	assert_int_equal(keys_generate(&d->controller, NULL), 0);
	assert_int_equal(keys_save(d->controller, d->key, NULL), 0);
	assert_int_equal(keys_list_open(&d->list, d->admitted, NULL), 0);
	assert_int_equal(pipe(pipes), 0);
	d->pid = fork();
	assert_true(d->pid >= 0);
	if (d->pid == 0) {
		dup2(pipes[1], STDERR_FILENO);
		close(pipes[0]);
		execl(program, program, "--run-dir", run, "--key", d->key, "--admitted",
		      d->admitted, "--gather-s", "300", "--agents", "6", "--stages", "2,2,2",
		      (char *)NULL);
		_exit(127);
	}
	close(pipes[1]);
	read_address(d, pipes[0]);
	*state = d;
	return 0;
}

static int door_close(void **state)
{
	struct door *d = *state;
	char command_line[128];
	int status;

	kill(d->pid, SIGTERM);
	waitpid(d->pid, &status, 0);
	keys_list_free(d->list);
	keys_free(d->controller);
	snprintf(command_line, sizeof(command_line), "rm -rf '%s'", d->folder);
	status = system(command_line);
	free(d);
	return status;
}

static bool alive(const struct door *d)
{
	return waitpid(d->pid, NULL, WNOHANG) == 0;
}

/* ---- tests ---- */

static void watchers_watch_and_operators_need_the_lease(void **state)
{
	struct door *d = *state;
	struct visitor watcher, operator;

	visitor_new(&watcher, d, KEYS_WATCHER, "watcher");
	visitor_new(&operator, d, KEYS_CONSOLE, "operator");
	attach(&watcher);
	for (int verb = COMMAND_SKIP; verb <= COMMAND_STOP; verb++)
		assert_int_equal(command(&watcher, (enum command_verb)verb, 1), -EPERM);
	assert_true(alive(d));
	attach(&operator);
	assert_int_equal(command(&operator, COMMAND_PAUSE, 0), -EACCES);
	assert_int_equal(command(&operator, COMMAND_ARM, 60), 0);
	assert_int_equal(command(&operator, COMMAND_PAUSE, 0), 0);
	assert_int_equal(command(&watcher, COMMAND_RESUME, 0), -EPERM);
	/* Its lease stays its own. */
	assert_int_equal(command(&watcher, COMMAND_ARM, 60), -EPERM);
	assert_int_equal(command(&operator, COMMAND_RESUME, 0), 0);
	visitor_free(&watcher);
	visitor_free(&operator);
}

static void an_agent_that_floods_is_shut_out(void **state)
{
	struct door *d = *state;
	struct visitor agent, operator;
	struct msg hello = { .type = MSG_HELLO }, trouble = { .type = MSG_TROUBLE };

	visitor_new(&operator, d, KEYS_CONSOLE, "operator");
	attach(&operator);
	visitor_new(&agent, d, KEYS_AGENT, "agent");
	come_in(&agent, &operator);
	hello.u.hello = (struct msg_hello){ .protocol = MSG_VERSION,
					    .node = -1,
					    .incarnation = 1,
					    .address = "tcp://127.0.0.1:9",
					    .device = "none" };
	send(&agent, &hello, POST_RELIABLE);
	trouble.u.trouble = (struct msg_trouble){ .accused = -1, .text = "I cannot stop" };
	for (int i = 0; i < 2000 && !agent.refused; i++) {
		send(&agent, &trouble, POST_RELIABLE);
		turn(&agent);
		turn(&operator);
	}
	UNTIL(&agent, &operator, agent.refused);
	assert_int_equal(agent.reason, LINK_FLOOD);
	UNTIL(&operator, NULL, strstr(operator.journal, "sent more than it may"));
	assert_int_equal(command(&operator, COMMAND_ACK, 0), 0);
	assert_true(alive(d));
	visitor_free(&agent);
	visitor_free(&operator);
}

static void a_watcher_that_floods_is_shut_out(void **state)
{
	struct door *d = *state;
	struct visitor watcher, operator;
	struct msg again = { .type = MSG_ATTACH,
			     .u.attach = { .protocol = MSG_VERSION, .name = "again" } };

	visitor_new(&operator, d, KEYS_CONSOLE, "operator");
	attach(&operator);
	visitor_new(&watcher, d, KEYS_WATCHER, "watcher");
	come_in(&watcher, &operator);
	for (int i = 0; i < 500 && !watcher.refused; i++) {
		send(&watcher, &again, POST_RELIABLE);
		turn(&watcher);
		turn(&operator);
	}
	UNTIL(&watcher, &operator, watcher.refused);
	assert_int_equal(watcher.reason, LINK_FLOOD);
	assert_int_equal(command(&operator, COMMAND_ARM, 60), 0);
	visitor_free(&watcher);
	visitor_free(&operator);
}

static void a_stranger_is_told_of_in_the_journal(void **state)
{
	struct door *d = *state;
	struct visitor stranger, operator;

	visitor_new(&operator, d, KEYS_CONSOLE, "operator");
	attach(&operator);
	visitor_new(&stranger, d, 0, "");
	UNTIL(&stranger, &operator, stranger.refused);
	assert_int_equal(stranger.reason, LINK_NOT_ADMITTED);
	UNTIL(&operator, & stranger, strstr(operator.journal, "refused at the door"));
	assert_non_null(strstr(operator.journal, "the key is not admitted"));
	visitor_free(&stranger);
	visitor_free(&operator);
}

static void an_expelled_console_is_cut(void **state)
{
	struct door *d = *state;
	struct visitor operator;
	int64_t began;

	visitor_new(&operator, d, KEYS_CONSOLE, "operator");
	attach(&operator);
	assert_int_equal(command(&operator, COMMAND_ARM, 60), 0);
	assert_int_equal(keys_list_expel(d->list, "operator", NULL), 0);
	began = clock_monotonic_us();
	while (!operator.refused && clock_monotonic_us() - began < 30000000) {
		struct msg m = { .type = MSG_COMMAND,
				 .u.command = { .id = 1000, .verb = COMMAND_ACK, .node = -1 } };

		send(&operator, & m, POST_LOSSY);
		turn(&operator);
	}
	assert_true(operator.refused);
	operator.answered = 0;
	for (int i = 0; i < 200; i++)
		turn(&operator);
	assert_int_equal(operator.answered, 0);
	visitor_free(&operator);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, door_open, door_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(watchers_watch_and_operators_need_the_lease),
		TEST(an_agent_that_floods_is_shut_out),
		TEST(a_watcher_that_floods_is_shut_out),
		TEST(a_stranger_is_told_of_in_the_journal),
		TEST(an_expelled_console_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
