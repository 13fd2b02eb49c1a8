/* Tests that a file arrives whole although messages are lost and repeated, and the sender restarts.
 * A file that cannot be transferred must be refused, and no part of it may stay. */
#include "wire/transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/tests/test.h"

enum { SIZE = 11 * MSG_FILE_BYTES / 2 + 3, STEP_US = 100000, ASKS = 64 };

struct channel {
	char folder[64], from[96], to[96];
	struct transfer t;
	int64_t now_us;
	struct msg_file_ask asks[ASKS]; /* the n requests that were sent and not answered */
	int n;
};

static void write_file(const char *path, size_t size, unsigned seed)
{
	char *data = malloc(size);
	struct rng rng;

	rng_init(&rng, seed);
	for (size_t i = 0; i < size; i++)
		data[i] = (char)rng_next(&rng);
	assert_int_equal(file_write(path, data, size, 0600, NULL), 0);
	free(data);
}

static int open_channel(void **state)
{
	struct channel *c = calloc(1, sizeof(*c));

	strcpy(c->folder, "/tmp/transfer_test.XXXXXX");
	assert_non_null(mkdtemp(c->folder));
	snprintf(c->from, sizeof(c->from), "%s/from", c->folder);
	snprintf(c->to, sizeof(c->to), "%s/deep/to", c->folder);
	write_file(c->from, SIZE, 1);
	c->t.fd = -1;
	*state = c;
	return 0;
}

static int close_channel(void **state)
{
	struct channel *c = *state;

	transfer_cancel(&c->t);
	file_remove_folder(c->folder);
	free(c);
	return 0;
}

static void begin(struct channel *c, enum file_kind kind)
{
	struct msg_file_ask ask = { .kind = (uint8_t)kind, .iteration = 7, .index = 2 };

	c->n = 0;
	transfer_begin(&c->t, &ask, c->to, c->now_us);
}

static void send_asks(struct channel *c)
{
	while (c->n < ASKS && transfer_next(&c->t, &c->asks[c->n], c->now_us))
		c->n++;
}

/* Answers the oldest request. */
static void answer(struct channel *c)
{
	char *body = malloc(MSG_FILE_BYTES);
	struct msg m;

	assert_true(c->n > 0);
	transfer_answer(&c->asks[0], c->from, &m, body);
	assert_true(transfer_take(&c->t, &m, c->now_us));
	memmove(c->asks, c->asks + 1, (size_t)--c->n * sizeof(c->asks[0]));
	free(body);
}

static void assert_arrived(const struct channel *c)
{
	char *a, *b;
	size_t n_a, n_b;

	assert_int_equal(c->t.state, TRANSFER_DONE);
	assert_int_equal(file_read(c->from, SIZE, &a, &n_a, NULL), 0);
	assert_int_equal(file_read(c->to, SIZE, &b, &n_b, NULL), 0);
	assert_int_equal(n_a, n_b);
	assert_memory_equal(a, b, n_a);
	assert_int_not_equal(access(c->t.aside, F_OK), 0);
	free(a);
	free(b);
}

#define FIXTURE_TEST(name) TEST_WITH(name, open_channel, close_channel)

FIXTURE_TEST(a_file_arrives_in_parts)
{
	struct channel *c = *state;
	int most = 0;

	begin(c, FILE_STAGE);
	for (int i = 0; i < 100 && c->t.state == TRANSFER_RUNNING; i++) {
		send_asks(c);
		most = c->n > most ? c->n : most;
		answer(c);
	}
	assert_arrived(c);
	assert_true(most > 1 && most <= 16);
}

/* A third of the answers is lost. At one point all requests under way are lost, as if the sender
 * had restarted. */
FIXTURE_TEST(lost_parts_are_requested_again)
{
	struct channel *c = *state;
	struct rng rng;

	rng_init(&rng, 5);
	begin(c, FILE_STAGE);
	for (int i = 0; i < 1000 && c->t.state == TRANSFER_RUNNING; i++) {
		send_asks(c);
		if (i == 4)
			c->n = 0;
		if (c->n > 0 && rng_next(&rng) % 3 == 0)
			memmove(c->asks, c->asks + 1, (size_t)--c->n * sizeof(c->asks[0]));
		else if (c->n > 0)
			answer(c);
		c->now_us += STEP_US;
		assert_true(transfer_deadline_us(&c->t) != INT64_MAX ||
			    c->t.state == TRANSFER_DONE);
	}
	assert_arrived(c);
}

FIXTURE_TEST(a_file_that_is_not_there_is_refused)
{
	struct channel *c = *state;

	strcat(c->from, ".gone");
	begin(c, FILE_STAGE);
	send_asks(c);
	assert_int_equal(c->n, 1);
	answer(c);
	assert_int_equal(c->t.state, TRANSFER_FAILED);
	assert_non_null(strstr(c->t.reason, "from.gone"));
	assert_int_not_equal(access(c->t.aside, F_OK), 0);
	assert_int_equal(transfer_deadline_us(&c->t), INT64_MAX);
}

FIXTURE_TEST(a_file_that_changes_is_refused)
{
	struct channel *c = *state;

	begin(c, FILE_STAGE);
	send_asks(c);
	answer(c);
	send_asks(c);
	write_file(c->from, SIZE - 1, 2);
	answer(c);
	assert_int_equal(c->t.state, TRANSFER_FAILED);
	assert_non_null(strstr(c->t.reason, "changed"));
	assert_int_not_equal(access(c->to, F_OK), 0);
}

/* A part beyond the announced size, or out of order, must be ignored or refused. */
FIXTURE_TEST(parts_of_another_size_or_order_change_nothing)
{
	struct channel *c = *state;
	char *body = calloc(1, MSG_FILE_BYTES + 1);
	struct msg m;

	begin(c, FILE_STAGE);
	send_asks(c);
	transfer_answer(&c->asks[0], c->from, &m, body);
	m.u.file_part.index++;
	assert_false(transfer_take(&c->t, &m, c->now_us));
	m.u.file_part.index--;
	m.u.file_part.offset = MSG_FILE_BYTES;
	assert_true(transfer_take(&c->t, &m, c->now_us));
	assert_true(c->t.have == 0 && c->t.state == TRANSFER_RUNNING);
	m.u.file_part.offset = 0;
	m.u.file_part.total = m.body_size - 1;
	assert_true(transfer_take(&c->t, &m, c->now_us));
	assert_int_equal(c->t.state, TRANSFER_FAILED);
	free(body);
}

/* If an earlier process has fetched a corpus file and the file has not changed, it must not be
 * sent again. */
FIXTURE_TEST(a_corpus_is_fetched_once)
{
	struct channel *c = *state;
	int parts[3];

	for (int turn = 0; turn < 3; turn++) {
		if (turn == 2)
			write_file(c->from, SIZE, 3);
		begin(c, FILE_CORPUS);
		for (parts[turn] = 0; c->t.state == TRANSFER_RUNNING; parts[turn]++) {
			send_asks(c);
			answer(c);
		}
		assert_arrived(c);
	}
	assert_int_equal(parts[0], 6);
	assert_int_equal(parts[1], 1);
	assert_int_equal(parts[2], 6);
}
