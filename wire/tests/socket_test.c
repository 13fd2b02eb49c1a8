/* A dialer and a listener that is played, on a plain TCP socket: nanomsg's own words byte by byte. */
#include "wire/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

enum { HEAD = 8, WORD = 4, CONTENT = 5, MESSAGE = HEAD + WORD + CONTENT };

static const unsigned char their_head[HEAD] = {0, 'S', 'P', 0, 0, 0x31, 0, 0};

static int listen_anywhere(char *address)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
	snprintf(address, LINK_ADDRESS_SIZE, "tcp://127.0.0.1:%u", ntohs(at.sin_port));
	return fd;
}

static bool readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	return poll(&p, 1, ms) == 1;
}

/* A connection whose heads were exchanged. */
static int answer(int listener)
{
	unsigned char head[HEAD];
	int fd;

	assert_true(readable(listener, 10000));
	fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	assert_int_equal(recv(fd, head, HEAD, MSG_WAITALL), HEAD);
	assert_int_equal(send(fd, their_head, HEAD, MSG_NOSIGNAL), HEAD);
	return fd;
}

static void send_messages(int fd, int n)
{
	static const unsigned char message[MESSAGE] = {[HEAD - 1] = WORD + CONTENT, [HEAD] = 0x80};
	unsigned char bytes[8 * MESSAGE];

	for (int i = 0; i < n; i++)
		memcpy(bytes + i * MESSAGE, message, MESSAGE);
	assert_int_equal(send(fd, bytes, (size_t)n * MESSAGE, MSG_NOSIGNAL), n * MESSAGE);
}

/* Until a frame has come by a new connection; how many connections that took. */
static int frame_comes(struct socket *s, int listener)
{
	unsigned char bytes[MESSAGE];
	int64_t give_up = clock_monotonic_us() + 10000000;
	int fd = -1, tries = 0;
	bool came = false;

	while (!came && clock_monotonic_us() < give_up) {
		uint8_t *frame = socket_frame(CONTENT);

		memset(frame, 7, CONTENT);
		(void)socket_send(s, NULL, frame);
		socket_mend(s);
		if (fd < 0 && readable(listener, 0)) {
			fd = answer(listener);
			tries++;
		}
		if (fd < 0 || !readable(fd, 20))
			continue;
		came = recv(fd, bytes, MESSAGE, MSG_WAITALL) == MESSAGE && bytes[MESSAGE - 1] == 7;
		if (!came) {
			close(fd);
			fd = -1;
		}
	}
	assert_true(came);
	close(fd);
	return tries;
}

/* What the dialer has not taken of the first connection is not of the second. */
static void what_was_not_taken_ends_no_other_connection(void **state)
{
	char address[LINK_ADDRESS_SIZE];
	int listener = listen_anywhere(address), fd;
	struct socket s = {.nn = -1};

	(void)state;
	assert_int_equal(socket_dial(&s, address, 1 << 16, NULL), 0);
	fd = answer(listener);
	send_messages(fd, 3);
	assert_true(readable(socket_read_fd(&s), 10000));
	close(fd);
	frame_comes(&s, listener);
	socket_close(&s);
	close(listener);
}

/* A connection that was lost, but came again, is left alone. */
static void what_comes_again_by_itself_stays(void **state)
{
	char address[LINK_ADDRESS_SIZE];
	int listener = listen_anywhere(address), fd;
	struct socket s = {.nn = -1};

	(void)state;
	assert_int_equal(socket_dial(&s, address, 1 << 16, NULL), 0);
	fd = answer(listener);
	close(fd);
	fd = answer(listener);
	for (int i = 0; i < 50; i++) {
		socket_mend(&s);
		assert_false(readable(fd, 10)); /* neither closed nor, yet, used */
	}
	close(fd);
	assert_int_equal(frame_comes(&s, listener), 1);
	socket_close(&s);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_not_taken_ends_no_other_connection),
		cmocka_unit_test(what_comes_again_by_itself_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
