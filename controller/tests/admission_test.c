/* admission_test.c - connects a whole controller to peers that it must not obey: watchers that send
 * commands, consoles without the lease, an agent and a watcher that flood the controller, and a
 * stranger. None of these peers may prevent the operator from working or from seeing reports. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/tests/test.h"
#include "controller/tests/visitor.h"

static int door_open(void **state)
{
	const char *options[] = { "--agents", "6", "--stages", "2,2,2", NULL };

	*state = door_new(options);
	return 0;
}

static int door_close(void **state)
{
	return door_free(*state);
}

#define FIXTURE_TEST(name) TEST_WITH(name, door_open, door_close)

/* ---- tests ---- */

FIXTURE_TEST(watchers_watch_and_operators_need_the_lease)
{
	struct door *d = *state;
	struct visitor watcher, operator;

	visitor_new(&watcher, d, KEYS_WATCHER, "watcher");
	visitor_new(&operator, d, KEYS_CONSOLE, "operator");
	visitor_attach(&watcher);
	for (int verb = COMMAND_SKIP; verb <= COMMAND_STOP; verb++)
		assert_int_equal(visitor_command(&watcher, (enum command_verb)verb, 1), -EPERM);
	assert_true(door_alive(d));
	visitor_attach(&operator);
	assert_int_equal(visitor_command(&operator, COMMAND_PAUSE, 0), -EACCES);
	assert_int_equal(visitor_command(&operator, COMMAND_ARM, 60), 0);
	assert_int_equal(visitor_command(&operator, COMMAND_PAUSE, 0), 0);
	assert_int_equal(visitor_command(&watcher, COMMAND_RESUME, 0), -EPERM);
	/* The operator still holds the lease, so the controller refuses it to the watcher. */
	assert_int_equal(visitor_command(&watcher, COMMAND_ARM, 60), -EPERM);
	assert_int_equal(visitor_command(&operator, COMMAND_RESUME, 0), 0);
	visitor_free(&watcher);
	visitor_free(&operator);
}

static void hear_refusal(void *context, const struct msg *m)
{
	*(bool *)context |= m->type == MSG_REFUSED;
}

/* An agent or a console of another version gets an answer, so that it can tell its user the
 * cause. */
FIXTURE_TEST(another_version_is_answered)
{
	static const enum keys_role roles[] = { KEYS_AGENT, KEYS_CONSOLE };
	struct msg hello = { .type = MSG_HELLO };
	unsigned char bytes[2048];
	struct post_part part = { bytes, msg_size(&hello) };
	struct visitor v;
	bool refused;

	assert_int_equal(msg_encode(&hello, bytes, sizeof(bytes)), (long)part.size);
	bytes[2]++; /* the version byte (MSG_VERSION) */
	for (int i = 0; i < 2; i++) {
		visitor_new(&v, *state, roles[i], keys_role_name(roles[i]));
		visitor_come_in(&v, NULL);
		refused = false;
		v.context = &refused;
		v.hear = hear_refusal;
		assert_int_equal(post_send(v.post, v.to, &part, 1, POST_RELIABLE,
					   clock_monotonic_us()), 0);
		UNTIL(&v, NULL, refused);
		visitor_free(&v);
	}
}

FIXTURE_TEST(an_agent_that_floods_is_barred)
{
	struct door *d = *state;
	struct visitor agent, operator;
	struct msg hello = { .type = MSG_HELLO }, trouble = { .type = MSG_TROUBLE };

	visitor_new(&operator, d, KEYS_CONSOLE, "operator");
	visitor_attach(&operator);
	visitor_new(&agent, d, KEYS_AGENT, "agent");
	visitor_come_in(&agent, &operator);
	hello.u.hello = (struct msg_hello){ .protocol = MSG_VERSION,
					    .node = -1,
					    .incarnation = 1,
					    .address = "tcp://127.0.0.1:9",
					    .device = "none" };
	visitor_send(&agent, &hello, POST_RELIABLE);
	trouble.u.trouble = (struct msg_trouble){ .refused_node = -1, .text = "I cannot stop" };
	for (int i = 0; i < 2000 && !agent.refused; i++) {
		visitor_send(&agent, &trouble, POST_RELIABLE);
		visitor_turn(&agent);
		visitor_turn(&operator);
	}
	UNTIL(&agent, &operator, agent.refused);
	assert_int_equal(agent.reason, LINK_FLOOD);
	UNTIL(&operator, NULL, strstr(operator.journal, "exceeded its quota"));
	assert_int_equal(visitor_command(&operator, COMMAND_ACK, 0), 0);
	assert_true(door_alive(d));
	visitor_free(&agent);
	visitor_free(&operator);
}

/* An agent's process, which answers pings with its next heartbeat. */
struct process {
	struct visitor v;
	uint64_t number; /* the process's incarnation number */
	uint64_t beats;
	int64_t ping_us;
	bool refused, final;
};

static void process_hears(void *context, const struct msg *m)
{
	struct process *p = context;

	if (m->type == MSG_PING)
		p->ping_us = m->u.ping.now_us;
	p->refused |= m->type == MSG_REFUSED;
	p->final |= m->type == MSG_REFUSED && m->u.refused.final == 1;
}

static void process_begin(struct process *p, uint64_t number, const char *address)
{
	struct msg m = { .type = MSG_HELLO };

	p->number = number;
	p->v.context = p;
	p->v.hear = process_hears;
	m.u.hello = (struct msg_hello){ .protocol = MSG_VERSION,
					.node = 1,
					.incarnation = number,
					.device = "none",
					.host = "host" };
	snprintf(m.u.hello.address, sizeof(m.u.hello.address), "%s", address);
	visitor_send(&p->v, &m, POST_RELIABLE);
}

static void process_turn(struct process *p)
{
	struct msg m = { .type = MSG_HEARTBEAT };

	visitor_turn(&p->v);
	m.u.heartbeat = (struct msg_heartbeat){ .beat = ++p->beats,
						.now_us = clock_monotonic_us(),
						.echo_us = p->ping_us,
						.stage = MSG_NO_STAGE };
	m.sequence = p->beats;
	visitor_send(&p->v, &m, POST_LOSSY);
}

#define PROCESSES_UNTIL(a, b, operator, condition) \
	do { \
		int64_t give_up_ = clock_monotonic_us() + TEST_PATIENCE_US; \
		while (!(condition)) { \
			process_turn(a); \
			process_turn(b); \
			visitor_turn(operator); \
			if (clock_monotonic_us() > give_up_) \
				fail_msg("never came: %s", #condition); \
		} \
	} while (0)

/* A machine was cloned together with its key. The first process keeps the node. The controller
 * refuses the clone permanently, however often the clone is started. */
FIXTURE_TEST(a_clone_is_refused_while_the_process_with_its_key_answers)
{
	struct door *d = *state;
	struct process first = { .number = 0 }, clone = { .number = 0 };
	struct visitor operator;
	char key[KEYS_TEXT_SIZE];

	visitor_new(&operator, d, KEYS_CONSOLE, "operator");
	visitor_attach(&operator);
	visitor_new(&first.v, d, KEYS_AGENT, "agent");
	visitor_come_in(&first.v, &operator);
	process_begin(&first, 1, "tcp://10.0.0.1:7701");
	for (uint64_t number = 2; number < 4; number++) {
		clone = (struct process){ .number = 0 };
		visitor_clone(&clone.v, &first.v, d);
		process_begin(&clone, number, "tcp://10.0.0.2:7701");
		PROCESSES_UNTIL(&first, &clone, &operator, clone.refused);
		assert_true(clone.final);
		visitor_free(&clone.v);
	}
	assert_false(first.refused || first.v.refused);
	keys_text(keys_public_of(first.v.id), key);
	UNTIL(&operator, & first.v, strstr(operator.journal, key));
	assert_non_null(strstr(operator.journal, "n01 (agent): two processes have its key: "
						 "tcp://10.0.0.1:7701 (host) keeps the node, "
						 "tcp://10.0.0.2:7701 (host) was refused"));
	visitor_free(&first.v);
	visitor_free(&operator);
}

FIXTURE_TEST(a_watcher_that_floods_is_barred)
{
	struct door *d = *state;
	struct visitor watcher, operator;
	struct msg again = { .type = MSG_ATTACH,
			     .u.attach = { .protocol = MSG_VERSION, .name = "again" } };

	visitor_new(&operator, d, KEYS_CONSOLE, "operator");
	visitor_attach(&operator);
	visitor_new(&watcher, d, KEYS_WATCHER, "watcher");
	visitor_come_in(&watcher, &operator);
	for (int i = 0; i < 500 && !watcher.refused; i++) {
		visitor_send(&watcher, &again, POST_RELIABLE);
		visitor_turn(&watcher);
		visitor_turn(&operator);
	}
	UNTIL(&watcher, &operator, watcher.refused);
	assert_int_equal(watcher.reason, LINK_FLOOD);
	assert_int_equal(visitor_command(&operator, COMMAND_ARM, 60), 0);
	visitor_free(&watcher);
	visitor_free(&operator);
}

/* Only agents may send MSG_READY. */
FIXTURE_TEST(a_watcher_that_sends_messages_of_agents_is_barred)
{
	struct door *d = *state;
	struct visitor watcher;
	struct msg ready = { .type = MSG_READY };

	visitor_new(&watcher, d, KEYS_WATCHER, "watcher");
	visitor_come_in(&watcher, NULL);
	for (int i = 0; i < 250; i++)
		visitor_send(&watcher, &ready, POST_RELIABLE);
	UNTIL(&watcher, NULL, watcher.refused);
	assert_int_equal(watcher.reason, LINK_FLOOD);
	visitor_free(&watcher);
}

FIXTURE_TEST(the_journal_reports_a_refused_key)
{
	struct door *d = *state;
	struct visitor stranger, operator;

	visitor_new(&operator, d, KEYS_CONSOLE, "operator");
	visitor_attach(&operator);
	visitor_new(&stranger, d, 0, "");
	UNTIL(&stranger, &operator, stranger.refused);
	assert_int_equal(stranger.reason, LINK_NOT_ADMITTED);
	UNTIL(&operator, & stranger, strstr(operator.journal, "refused connections"));
	assert_non_null(strstr(operator.journal, "the key is not admitted"));
	visitor_free(&stranger);
	visitor_free(&operator);
}

static size_t count_of(const char *text, const char *word)
{
	size_t n = 0;

	for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
		n++;
	return n;
}

/* A stranger is refused again and again. The journal must still show that another peer is refused,
 * and why. Long journal lines are cut, so each reason has a line of its own, with its number of
 * refusals. */
FIXTURE_TEST(the_journal_has_a_line_for_each_reason_of_refusals)
{
	struct door *d = *state;
	struct visitor stranger, impostor, operator;

	visitor_new(&operator, d, KEYS_CONSOLE, "operator");
	visitor_attach(&operator);
	visitor_new(&stranger, d, 0, "");
	visitor_new(&impostor, d, KEYS_CONTROLLER, "impostor");
	UNTIL(&stranger, &impostor, impostor.reason == LINK_ROLE && stranger.refused);
	for (int i = 0; i < 2; i++) {
		enum link_reason reason = i ? LINK_ROLE : LINK_NOT_ADMITTED;
		char line[128];

		snprintf(line, sizeof(line), " times: %s\n", link_reason_text(reason));
		UNTIL(&operator, &stranger, strstr(operator.journal, line));
	}
	assert_int_equal(count_of(operator.journal, " times: "),
			 count_of(operator.journal, "refused connections: "));
	visitor_free(&stranger);
	visitor_free(&impostor);
	visitor_free(&operator);
}

FIXTURE_TEST(an_expelled_console_is_disconnected)
{
	struct door *d = *state;
	struct visitor operator;
	int64_t began;

	visitor_new(&operator, d, KEYS_CONSOLE, "operator");
	visitor_attach(&operator);
	assert_int_equal(visitor_command(&operator, COMMAND_ARM, 60), 0);
	assert_int_equal(keys_list_expel(d->list, "operator", NULL), 0);
	began = clock_monotonic_us();
	while (!operator.refused && clock_monotonic_us() - began < 30000000) {
		struct msg m = { .type = MSG_COMMAND,
				 .u.command = { .id = 1000, .verb = COMMAND_ACK, .node = -1 } };

		visitor_send(&operator, & m, POST_LOSSY);
		visitor_turn(&operator);
	}
	assert_true(operator.refused);
	operator.answered = 0;
	for (int i = 0; i < 200; i++)
		visitor_turn(&operator);
	assert_int_equal(operator.answered, 0);
	visitor_free(&operator);
}
