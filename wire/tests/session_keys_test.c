/* Tests the limits of a session's keys. No limit may ever be exceeded, and the dialer must ask for
 * new keys once and in time. Two links run with a clock that the test moves. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/tests/test.h"
#include "wire/sessions/session.h"

enum { LATER_US = 1000000, LONG_US = 3600 * 1000000L };

struct side {
	struct keys_identity *id;
	struct link *link;
	struct link_counters counters;
	uint32_t session;              /* number of the newest session */
	unsigned up, said_no, data;
};

struct two {
	struct side listener, dialer;
	struct keys_list *list;
	struct link_hook hook;
	char address[LINK_ADDRESS_SIZE];
	int64_t now_us;
	/* Number of HELLOs that the dialer has sent after the test last set this number to 0. */
	unsigned hellos;
};

static int count_hellos(void *context, uint8_t *frame, size_t size)
{
	((struct two *)context)->hellos += size == FRAME_HELLO_SIZE && frame[3] == FRAME_HELLO;
	return 1;
}

static struct link_options options_of(struct two *t, struct side *s)
{
	return (struct link_options){ .identity = s->id,
				      .admitted = t->list,
				      .frame_most = 1 << 16,
				      .sessions_most = 8,
				      .silence_us = LONG_US,
				      .rekey_us = LONG_US,
				      .counters = &s->counters,
				      .hook = &t->hook };
}

static void listens(struct two *t, const char *address)
{
	struct link_options o = options_of(t, &t->listener);

	o.hook = NULL;
	assert_int_equal(link_listen(&t->listener.link, &o, address, t->address, NULL), 0);
}

static void dials(struct two *t)
{
	struct link_options o = options_of(t, &t->dialer);

	assert_int_equal(
		link_dial(&t->dialer.link, &o, t->address, keys_public_of(t->listener.id), 1, NULL),
		0);
}

static void admit(struct two *t)
{
	assert_int_equal(
		keys_list_admit(t->list, keys_public_of(t->dialer.id), KEYS_AGENT, "d", NULL), 0);
}

static void begin(struct two *t)
{
	memset(t, 0, sizeof(*t));
	t->hook = (struct link_hook){ count_hellos, t };
	assert_int_equal(keys_generate(&t->listener.id, NULL), 0);
	assert_int_equal(keys_generate(&t->dialer.id, NULL), 0);
	t->list = keys_list_new();
}

static void end(struct two *t)
{
	link_close(t->dialer.link);
	link_close(t->listener.link);
	keys_list_free(t->list);
	keys_free(t->listener.id);
	keys_free(t->dialer.id);
}

static void turn_side(struct side *s, int64_t now_us)
{
	struct link_event e;

	if (s->link == NULL)
		return;
	link_tick(s->link, now_us);
	while (link_receive(s->link, now_us, &e) == 0) {
		s->up += e.kind == LINK_UP;
		s->said_no += e.kind == LINK_REFUSAL;
		s->data += e.kind == LINK_DATA && e.size > 0;
		if (e.kind == LINK_UP)
			s->session = e.session;
		link_release(e.owner);
	}
}

static void turn(struct two *t)
{
	turn_side(&t->dialer, t->now_us);
	turn_side(&t->listener, t->now_us);
	poll(NULL, 0, 1);
}

#define UNTIL(t, condition)                                              \
	do {                                                             \
		int64_t give_up_ = clock_monotonic_us() + TEST_PATIENCE_US;      \
		while (!(condition)) {                                   \
			turn(t);                                         \
			if (clock_monotonic_us() > give_up_)             \
				fail_msg("never came: %s", #condition);  \
		}                                                        \
	} while (0)

static struct session *session_of(const struct side *s)
{
	return session_find(s->link, s->session);
}

static int try_to_send(struct two *t, struct side *s)
{
	uint8_t *content = link_buffer(4);

	assert_non_null(content);
	memcpy(content, "word", 4);
	return link_send(s->link, s->session, 0, content, 4, t->now_us);
}

/* Sends messages in both directions and waits until all have arrived. */
static void send_in_both_directions(struct two *t)
{
	unsigned heard = t->listener.data, answered = t->dialer.data;

	assert_int_equal(try_to_send(t, &t->dialer), 0);
	UNTIL(t, t->listener.data > heard);
	assert_int_equal(try_to_send(t, &t->listener), 0);
	UNTIL(t, t->dialer.data > answered);
}

static void meet(struct two *t)
{
	begin(t);
	admit(t);
	listens(t, "tcp://127.0.0.1:0");
	dials(t);
	UNTIL(t, t->dialer.up == 1 && t->listener.up == 1);
	t->now_us += LATER_US;
	/* The count of HELLOs starts here, because the dialer may have sent several HELLOs before
	 * it was connected. */
	t->hellos = 0;
}

/* Checks that the keys of the first session were replaced `times` times so far, and that the
 * dialer sent one request each time. */
static void expect_renewed(struct two *t, unsigned times)
{
	UNTIL(t, t->dialer.up == 1 + times && t->listener.up == 1 + times);
	t->now_us += LATER_US;
	send_in_both_directions(t);
	send_in_both_directions(t);
	assert_int_equal(t->dialer.up, 1 + times);
	assert_int_equal(t->hellos, times);
	assert_true(session_of(&t->dialer)->counter < 10);
	assert_true(session_of(&t->dialer)->sent_bytes < 1000);
}

/* Checks that no new keys are requested just below half of the limit. The next messages exceed
 * half of the limit, and must cause a request. */
static void expect_renewed_beyond_half(struct two *t, unsigned times)
{
	send_in_both_directions(t);
	assert_int_equal(t->hellos, times - 1);
	send_in_both_directions(t);
	expect_renewed(t, times);
}

TEST(half_used_keys_are_replaced)
{
	struct two t;

	meet(&t);
	session_of(&t.dialer)->counter = SEAL_FRAMES_MOST / 2 - 2;
	expect_renewed_beyond_half(&t, 1);
	session_of(&t.dialer)->sent_bytes = SEAL_BYTES_MOST / 2 - 8;
	expect_renewed_beyond_half(&t, 2);
	end(&t);
}

/* Received frames must count too, because a listener cannot request new keys for the frames that it
 * sends. */
TEST(frames_that_arrive_count_too)
{
	struct two t;

	meet(&t);
	session_of(&t.listener)->counter = SEAL_FRAMES_MOST / 2 - 1;
	expect_renewed_beyond_half(&t, 1);
	session_of(&t.dialer)->received_bytes = SEAL_BYTES_MOST / 2 - 8;
	expect_renewed_beyond_half(&t, 2);
	end(&t);
}

TEST(used_up_keys_seal_nothing)
{
	struct two t;

	meet(&t);
	session_of(&t.dialer)->counter = SEAL_FRAMES_MOST - 1;
	assert_int_equal(try_to_send(&t, &t.dialer), 0);
	assert_int_equal(try_to_send(&t, &t.dialer), -ENOTCONN);
	session_of(&t.listener)->sent_bytes = SEAL_BYTES_MOST - 1;
	assert_int_equal(try_to_send(&t, &t.listener), 0);
	assert_int_equal(try_to_send(&t, &t.listener), -ENOTCONN);
	end(&t);
}

/* Beyond half of the limit, every frame makes the dialer ask for new keys. A handshake under way
 * must not start again. */
TEST(a_request_is_not_repeated)
{
	struct two t;

	meet(&t);
	session_of(&t.dialer)->counter = SEAL_FRAMES_MOST / 2;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(try_to_send(&t, &t.dialer), 0);
		turn_side(&t.dialer, t.now_us);
		t.now_us += LATER_US / 100;
	}
	assert_int_equal(t.hellos, 1);
	expect_renewed(&t, 1);
	end(&t);
}

TEST(a_refused_dialer_waits)
{
	struct two t;

	begin(&t);
	listens(&t, "tcp://127.0.0.1:0");
	dials(&t);
	UNTIL(&t, t.dialer.said_no == 1);
	t.hellos = 0;
	admit(&t);
	t.now_us += t.dialer.link->dial.deadline_us - t.now_us - 1;
	for (int i = 0; i < 50; i++)
		turn(&t);
	assert_int_equal(t.hellos, 0);
	t.now_us++;
	UNTIL(&t, t.dialer.up == 1 && t.listener.up == 1);
	assert_int_equal(t.hellos, 1);
	end(&t);
}

/* At first there is no listener at the address. When a listener starts there, the dialer must
 * send its HELLO as soon as it is connected, without waiting for its timer. */
TEST(a_dialer_that_found_nobody_asks_once_connected)
{
	struct two t;
	char address[LINK_ADDRESS_SIZE];

	begin(&t);
	admit(&t);
	listens(&t, "tcp://127.0.0.1:0");
	memcpy(address, t.address, sizeof(address));
	link_close(t.listener.link);
	t.listener.link = NULL;
	dials(&t);
	for (int i = 0; i < 50; i++)
		turn(&t);
	assert_true(link_blocked(t.dialer.link, 0));
	assert_int_equal(t.dialer.up, 0);
	listens(&t, address);
	UNTIL(&t, t.dialer.up == 1 && t.listener.up == 1);
	end(&t);
}
