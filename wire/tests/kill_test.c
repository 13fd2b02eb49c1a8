/* Tests a receiver process that is killed with SIGKILL again and again while messages are under
 * way. Each receiver must get consecutive numbers, and each number once. POST_LOST must count
 * every message whose delivery is uncertain. The receiver is this program, started with exec. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/tests/test.h"
#include "wire/post.h"

#define LIVES 6
#define BODY  30000

/* ---- the receiver: prints the number of each message that it gets ---- */

static int receive_for_ever(const char *address, const char *key, const char *list)
{
	struct keys_identity *id;
	struct keys_list *admitted;
	struct post *post;
	struct error err = {""};
	if (keys_load(&id, key, &err) != 0 || keys_list_open(&admitted, list, &err) != 0)
		return 1;
	const struct post_options options = {.identity = id, .admitted = admitted};
	if (post_open(&post, &options, &err) != 0 || post_listen(post, address, NULL, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	for (;;) {
		struct pollfd fd = {.fd = post_fd(post), .events = POLLIN};
		struct post_message m;
		poll(&fd, 1, 10);
		post_tick(post, clock_monotonic_us());
		while (post_receive(post, clock_monotonic_us(), &m) == 0) {
			if (m.kind == POST_DATA && m.size == BODY + 8 &&
			    write(STDOUT_FILENO, m.data, 8) != 8)
				return 0;
		}
	}
}

/* ---- the sender ---- */

struct life {
	pid_t pid;
	int numbers; /* descriptor from which the receiver's output is read */
};

static char folder[] = "/tmp/skippipe-kill-test.XXXXXX", address[128], key[128], list[128];

static struct life start(void)
{
	struct life life;
	int out[2];
	assert_int_equal(pipe(out), 0);
	life.pid = fork();
	if (life.pid == 0) {
		dup2(out[1], STDOUT_FILENO);
		close(out[0]);
		execl("/proc/self/exe", "kill_test", address, key, list, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	life.numbers = out[0];
	return life;
}

/* Checks that one receiver process got consecutive numbers. Sets *first to the first number.
 * Returns how many numbers the process got. */
static uint64_t check_life(const struct life *life, uint64_t *first)
{
	uint64_t n = 0, number;
	while (read(life->numbers, &number, 8) == 8) {
		if (n == 0)
			*first = number;
		assert_int_equal(number, *first + n);
		n++;
	}
	close(life->numbers);
	return n;
}

struct sender {
	struct post *post;
	post_peer_id peer;
	uint64_t sent, lost;
	uint64_t from; /* first number sent to the present receiver process */
	unsigned ups;
};

static void turn(struct sender *s)
{
	struct pollfd fd = {.fd = post_fd(s->post), .events = POLLIN};
	struct post_message m;
	poll(&fd, 1, 1);
	post_tick(s->post, clock_monotonic_us());
	while (post_receive(s->post, clock_monotonic_us(), &m) == 0) {
		if (m.kind == POST_LOST)
			s->lost += m.lost;
		if (m.kind == POST_UP) {
			s->ups++;
			if (m.restarted)
				/* The post has dropped the messages that it kept for the old
				 * process. */
				s->from = s->sent;
		}
	}
}

static void send_next(struct sender *s)
{
	static uint8_t body[BODY];
	const struct post_part parts[] = {{&s->sent, 8}, {body, BODY}};
	if (post_send(s->post, s->peer, parts, 2, POST_RELIABLE, clock_monotonic_us()) == 0)
		s->sent++;
}

static void each_life_gets_a_gapless_run(void **state)
{
	(void)state;
	struct keys_identity *theirs, *mine;
	struct keys_list *admitted;
	struct sender s = {.post = NULL};
	uint64_t received = 0, expected_first = 0;
	assert_non_null(mkdtemp(folder));
	snprintf(address, sizeof(address), "ipc://%s/socket", folder);
	snprintf(key, sizeof(key), "%s/key", folder);
	snprintf(list, sizeof(list), "%s/list", folder);
	assert_int_equal(keys_load_or_make(&theirs, key, NULL), 0);
	assert_int_equal(keys_generate(&mine, NULL), 0);
	assert_int_equal(keys_list_open(&admitted, list, NULL), 0);
	assert_int_equal(
		keys_list_admit(admitted, keys_public_of(mine), KEYS_AGENT, "sender", NULL), 0);
	const struct post_options options = {.identity = mine};
	assert_int_equal(post_open(&s.post, &options, NULL), 0);
	assert_int_equal(post_dial(s.post, address, keys_public_of(theirs), &s.peer, NULL), 0);

	for (unsigned round = 1; round <= LIVES; round++) {
		struct life life = start();
		uint64_t first = 0, had = s.sent;
		int64_t give_up = clock_monotonic_us() + TEST_PATIENCE_US;
		while (s.ups < round || s.sent < had + 200 + 37 * round) {
			if (s.ups == round || s.sent < had + 50)
				send_next(&s);
			turn(&s);
			assert_true(clock_monotonic_us() < give_up);
		}
		expected_first = s.from;
		/* In the last round, the receiver is killed only when all messages are
		 * acknowledged. */
		if (round == LIVES) {
			while (!post_idle(s.post, s.peer)) {
				turn(&s);
				assert_true(clock_monotonic_us() < give_up);
			}
		}
		kill(life.pid, SIGKILL);
		waitpid(life.pid, NULL, 0);
		uint64_t n = check_life(&life, &first);
		assert_true(n > 0);
		assert_int_equal(first, expected_first);
		received += n;
		if (round == LIVES)
			assert_int_equal(first + n, s.sent);
	}
	/* Each message must be received or counted as lost. A message may be both received and
	 * counted as lost, if its receiver was killed before it sent the acknowledgement. */
	assert_true(received + s.lost >= s.sent);
	assert_true(s.lost > 0);
	post_close(s.post);
	keys_list_free(admitted);
	keys_free(mine);
	keys_free(theirs);
	char lock[160];
	snprintf(lock, sizeof(lock), "%s.lock", list);
	unlink(lock);
	unlink(list);
	unlink(key);
	unlink(address + 6);
	assert_int_equal(rmdir(folder), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_life_gets_a_gapless_run)};
	if (argc == 4)
		return receive_for_ever(argv[1], argv[2], argv[3]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
