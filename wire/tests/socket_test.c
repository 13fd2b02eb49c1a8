/* Tests a dialer against a simulated listener: a TCP socket on which the test speaks nanomsg's
 * protocol. */
#include "wire/sessions/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/tests/test.h"
#include "wire/sessions/accept.h"

enum { HEAD = 8, WORD = 4, CONTENT = 5, MESSAGE = HEAD + WORD + CONTENT };

static const unsigned char their_head[HEAD] = {0, 'S', 'P', 0, 0, 0x31, 0, 0};
static const unsigned char dialers_head[HEAD] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};

static bool lacks_ipv6; /* true: sockets behave as on a kernel without IPv6 */

/* Replaces the C library's function, also for nanomsg. */
int socket(int family, int type, int protocol)
{
	if (family == AF_INET6 && lacks_ipv6) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	return (int)syscall(SYS_socket, family, type, protocol);
}

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

/* Accepts a connection and exchanges nanomsg's greetings on it. */
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

static bool try_to_send(int fd, int n)
{
	static const unsigned char message[MESSAGE] = {[HEAD - 1] = WORD + CONTENT, [HEAD] = 0x80};
	unsigned char bytes[8 * MESSAGE];

	for (int i = 0; i < n; i++)
		memcpy(bytes + i * MESSAGE, message, MESSAGE);
	return send(fd, bytes, (size_t)n * MESSAGE, MSG_NOSIGNAL) == n * MESSAGE;
}

static void send_messages(int fd, int n)
{
	assert_true(try_to_send(fd, n));
}

/* Accepts connections until a frame arrives on one of them. Returns the number of connections. */
static int wait_for_frame(struct socket *s, int listener)
{
	unsigned char bytes[MESSAGE];
	int64_t give_up = clock_monotonic_us() + TEST_PATIENCE_US;
	int fd = -1, tries = 0;
	bool came = false;

	while (!came && clock_monotonic_us() < give_up) {
		uint8_t *frame = socket_frame(CONTENT);

		memset(frame, 7, CONTENT);
		(void)socket_send(s, NULL, frame);
		socket_repair(s, clock_monotonic_us());
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

/* The first connection ends with unread bytes. These bytes must not count as bytes of the second
 * connection. */
static void unread_bytes_of_one_connection_do_not_end_another(void **state)
{
	char address[LINK_ADDRESS_SIZE];
	int listener = listen_anywhere(address), fd;
	struct socket s = {.nn = -1};

	(void)state;
	assert_int_equal(socket_dial(&s, address, 1, false, 1 << 16, NULL), 0);
	fd = answer(listener);
	send_messages(fd, 3);
	assert_true(readable(socket_read_fd(&s), 10000));
	close(fd);
	wait_for_frame(&s, listener);
	socket_close(&s);
	close(listener);
}

/* A connection that broke and was restored must not be redialed. */
static void a_connection_that_returned_is_not_redialed(void **state)
{
	char address[LINK_ADDRESS_SIZE];
	int listener = listen_anywhere(address), fd;
	struct socket s = {.nn = -1};

	(void)state;
	assert_int_equal(socket_dial(&s, address, 1, false, 1 << 16, NULL), 0);
	fd = answer(listener);
	close(fd);
	fd = answer(listener);
	for (int i = 0; i < 50; i++) {
		socket_repair(&s, clock_monotonic_us());
		/* The connection stays open, and no frame was sent on it. */
		assert_false(readable(fd, 10));
	}
	close(fd);
	assert_int_equal(wait_for_frame(&s, listener), 1);
	socket_close(&s);
	close(listener);
}

/* A tunnel accepts every connection and closes it, because nothing listens at the tunnel's other
 * end. The dialer must pause before it dials again. */
static void a_listener_that_closes_everything_is_dialed_after_pauses(void **state)
{
	char address[LINK_ADDRESS_SIZE];
	int listener = listen_anywhere(address), tries = 0;
	struct socket s = { .nn = -1 };
	int64_t now = 1;

	(void)state;
	assert_int_equal(socket_dial(&s, address, 1, false, 1 << 16, NULL), 0);
	/* The test's clock stands still, so the pause does not end. */
	while (readable(listener, 1000)) {
		close(accept(listener, NULL, NULL));
		assert_true(++tries < 20);
		poll(NULL, 0, 10); /* gives nanomsg's thread time to notice the end */
		socket_repair(&s, now);
	}
	socket_repair(&s, now += 60000000);
	assert_true(readable(listener, 10000));
	wait_for_frame(&s, listener);
	socket_close(&s);
	close(listener);
}

/* Returns true if this process's connections to the address have buffers of fixed size. */
static int fixed_buffers(const char *address, int option)
{
	const int port = atoi(strrchr(address, ':') + 1);
	int fixed = -1;
	for (int fd = 0; fd < 256; fd++) {
		struct sockaddr_in to;
		socklen_t size = sizeof(to);
		int locked = 0;
		if (getpeername(fd, (struct sockaddr *)&to, &size) < 0 ||
		    to.sin_family != AF_INET || ntohs(to.sin_port) != port)
			continue;
		size = sizeof(locked);
		assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &locked, &size), 0);
		fixed = (locked & option) != 0;
	}
	return fixed;
}

/* For connections to other machines, the kernel must choose the buffer sizes, because they must
 * grow with the link's delay. */
static void buffers_to_other_machines_follow_the_link(void **state)
{
	char address[LINK_ADDRESS_SIZE], far[LINK_ADDRESS_SIZE];
	int listener = listen_anywhere(address), locked = 0, fds[4];
	socklen_t size = sizeof(locked);
	struct socket s = {.nn = -1};

	(void)state;
	assert_true(socket_is_near(address));
	if (getsockopt(listener, SOL_SOCKET, SO_BUF_LOCK, &locked, &size) < 0)
		skip(); /* before Linux 5.14 the kernel does not tell if a size is fixed */
	assert_int_equal(socket_dial(&s, address, 1, false, 1 << 16, NULL), 0);
	fds[0] = answer(listener);
	assert_int_equal(fixed_buffers(address, SOCK_SNDBUF_LOCK), 1);
	assert_int_equal(fixed_buffers(address, SOCK_RCVBUF_LOCK), 1);
	socket_close(&s);
	close(fds[0]);

	/* 0.0.0.0 reaches this machine, but counts as another machine */
	snprintf(far, sizeof(far), "tcp://0.0.0.0%s", strrchr(address, ':'));
	assert_false(socket_is_near(far));
	assert_int_equal(socket_dial(&s, far, 4, false, 1 << 16, NULL), 0);
	for (int i = 0; i < 4; i++)
		fds[i] = answer(listener);
	assert_int_equal(fixed_buffers(address, SOCK_SNDBUF_LOCK), 0);
	assert_int_equal(fixed_buffers(address, SOCK_RCVBUF_LOCK), 0);
	socket_close(&s);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	close(listener);
}

/* One of several connections breaks again and again. The dialer must notice the broken connection
 * although frames arrive on the other connections. */
static void a_broken_connection_of_several_is_redialed(void **state)
{
	char address[LINK_ADDRESS_SIZE];
	int listener = listen_anywhere(address), fds[3], ended = 0;
	struct socket s = {.nn = -1};
	int64_t now = 1, give_up = clock_monotonic_us() + TEST_PATIENCE_US;

	(void)state;
	assert_int_equal(socket_dial(&s, address, 3, false, 1 << 16, NULL), 0);
	for (int i = 0; i < 3; i++)
		fds[i] = answer(listener);
	/* Ends the first connection again and again, and sends frames on the second. */
	while (ended < 20 && s.broken_accepted == 0 && clock_monotonic_us() < give_up) {
		struct socket_route route;
		uint8_t *frame;
		size_t size;

		close(fds[0]);
		fds[0] = answer(listener);
		if (!try_to_send(fds[1], 1))
			break; /* the connection is closed already */
		while (socket_receive(&s, &route, &frame, &size) == 0)
			socket_frame_free(frame);
		socket_repair(&s, now += 100000);
		ended++;
	}
	/* The dialer must have closed and redialed all connections. */
	assert_true(readable(fds[2], 10000));
	assert_true(ended < 20);
	socket_close(&s);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	close(listener);
}

/* Lock that nanomsg's thread needs for its work. While the test holds the lock, the thread does
 * nothing. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

/* Replaces the C library's epoll_wait, in which nanomsg's thread waits. */
int epoll_wait(int fd, struct epoll_event *events, int most, int ms)
{
	const int n = (int)syscall(SYS_epoll_pwait, fd, events, most, ms, NULL, 0);

	if (syscall(SYS_gettid) != getpid()) {
		pthread_mutex_lock(&gate);
		pthread_mutex_unlock(&gate);
	}
	return n;
}

enum { LARGE = 40000, SMALL = 1000 };

static void send_of_size(struct socket *s, size_t size)
{
	uint8_t *frame = socket_frame(size);

	memset(frame, 5, size);
	assert_true(readable(socket_write_fd(s), 10000));
	assert_int_equal(socket_send(s, NULL, frame), 0);
}

static void take_of_size(int fd, size_t size)
{
	static unsigned char bytes[HEAD + WORD + LARGE];
	const ssize_t all = (ssize_t)(HEAD + WORD + size);

	assert_true(readable(fd, 10000));
	assert_int_equal(recv(fd, bytes, (size_t)all, MSG_WAITALL), all);
	assert_int_equal(bytes[all - 1], 5);
}

/* The caller's thread itself must pass small frames to the kernel, but no large frames. */
static void a_large_frame_is_sent_by_nanomsgs_thread(void **state)
{
	char address[LINK_ADDRESS_SIZE];
	int listener = listen_anywhere(address), fd;
	struct socket s = { .nn = -1 };

	(void)state;
	assert_int_equal(socket_dial(&s, address, 1, false, 1 << 16, NULL), 0);
	fd = answer(listener);
	assert_true(readable(socket_write_fd(&s), 10000));
	pthread_mutex_lock(&gate);
	send_of_size(&s, SMALL);
	take_of_size(fd, SMALL);
	send_of_size(&s, LARGE);
	assert_false(readable(fd, 20));
	pthread_mutex_unlock(&gate);
	take_of_size(fd, LARGE);
	socket_close(&s);
	close(fd);
	close(listener);
}

/* The caller takes a frame, and the next frame is large and already in the kernel. The next frame
 * must be copied by nanomsg's thread and not by the caller. */
static void a_large_frame_is_received_by_nanomsgs_thread(void **state)
{
	static const unsigned char head[HEAD + WORD] = {
		[HEAD - 2] = (WORD + LARGE) >> 8, [HEAD - 1] = (WORD + LARGE) & 255, [HEAD] = 0x80
	};
	static const unsigned char content[LARGE];
	char address[LINK_ADDRESS_SIZE];
	int listener = listen_anywhere(address), fd;
	struct socket s = { .nn = -1 };
	struct socket_route route;
	uint8_t *frame;
	size_t size;

	(void)state;
	assert_int_equal(socket_dial(&s, address, 1, false, 1 << 16, NULL), 0);
	fd = answer(listener);
	send_messages(fd, 1);
	assert_true(readable(socket_read_fd(&s), 10000));
	pthread_mutex_lock(&gate);
	assert_int_equal(send(fd, head, sizeof(head), MSG_NOSIGNAL), sizeof(head));
	assert_int_equal(send(fd, content, LARGE, MSG_NOSIGNAL), LARGE);
	assert_int_equal(socket_receive(&s, &route, &frame, &size), 0);
	assert_int_equal(size, CONTENT);
	socket_frame_free(frame);
	assert_int_equal(socket_receive(&s, &route, &frame, &size), -EAGAIN);
	pthread_mutex_unlock(&gate);
	assert_true(readable(socket_read_fd(&s), 10000));
	assert_int_equal(socket_receive(&s, &route, &frame, &size), 0);
	assert_int_equal(size, LARGE);
	socket_frame_free(frame);
	socket_close(&s);
	close(fd);
	close(listener);
}

/* Opens n connections that send nanomsg's greeting and nothing else. */
static void come_and_say_nothing(const char *address, int *fds, int n)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	at.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
	for (int i = 0; i < n; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_true(fds[i] >= 0);
		assert_int_equal(connect(fds[i], (struct sockaddr *)&at, sizeof(at)), 0);
		(void)!send(fds[i], dialers_head, HEAD, MSG_NOSIGNAL);
	}
}

static uint64_t connections_of(const struct socket *s)
{
	uint64_t now, broken;

	socket_connections(s, &now, &broken);
	return now;
}

/* Runs the listener of strangers_leave_room in its own process. Returns the exit status, which is
 * 0 if the process could open files and dial although strangers took all its connections. */
static int serve_strangers(int tell, int all_here)
{
	const struct rlimit few = {.rlim_cur = 256, .rlim_max = 256};
	struct socket s = {.nn = -1}, peer = {.nn = -1};
	struct socket_route route;
	char bound[LINK_ADDRESS_SIZE];
	int reserve[40];
	uint8_t *frame;
	size_t size;
	char go;

	alarm(120);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(socket_listen(&s, "tcp://127.0.0.1:0", bound, 1 << 16, NULL), 0);
	assert_int_equal(write(tell, bound, sizeof(bound)), sizeof(bound));
	/* The strangers have all connections that the limit allows. The process must still be
	 * able to open files. */
	assert_int_equal(read(all_here, &go, 1), 1);
	while (connections_of(&s) < accept_most() - 32)
		poll(NULL, 0, 1);
	for (int i = 0; i < 40; i++) {
		reserve[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (reserve[i] < 0)
			return 1;
	}
	for (int i = 0; i < 40; i++)
		close(reserve[i]);
	/* No connection has been silent for an hour, so no connection may be ended. */
	if (socket_end_silent(&s, 3600000) != 0)
		return 2;
	while (connections_of(&s) > accept_most() / 2)
		if (socket_end_silent(&s, 1) == 0)
			poll(NULL, 0, 1);
	/* A new peer must now be able to connect. */
	assert_int_equal(socket_dial(&peer, bound, 1, false, 1 << 16, NULL), 0);
	do {
		frame = socket_frame(CONTENT);
		memset(frame, 7, CONTENT);
		(void)socket_send(&peer, NULL, frame);
		poll(NULL, 0, 10);
	} while (socket_receive(&s, &route, &frame, &size) < 0);
	socket_frame_free(frame);
	return 0;
}

/* However many strangers connect, descriptors must remain for files, and a new peer must be able to
 * connect. */
static void strangers_leave_room(void **state)
{
	char address[LINK_ADDRESS_SIZE];
	int tells[2], all_here[2], fds[400], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(tells), 0);
	assert_int_equal(pipe(all_here), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(serve_strangers(tells[1], all_here[0]));
	assert_int_equal(read(tells[0], address, sizeof(address)), sizeof(address));
	come_and_say_nothing(address, fds, 400);
	assert_int_equal(write(all_here[1], "t", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (int i = 0; i < 400; i++)
		close(fds[i]);
	for (int i = 0; i < 2; i++) {
		close(tells[i]);
		close(all_here[i]);
	}
}

static void a_listener_at_all_addresses_uses_ipv4_where_there_is_no_ipv6(void **state)
{
	char bound[LINK_ADDRESS_SIZE];
	struct socket s = {.nn = -1};

	(void)state;
	lacks_ipv6 = true;
	assert_int_equal(socket_listen(&s, "tcp://[::]:0", bound, 1 << 16, NULL), 0);
	lacks_ipv6 = false;
	assert_int_equal(strncmp(bound, "tcp://0.0.0.0:", 14), 0);
	assert_int_equal(atoi(bound + 14), s.port);
	socket_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* this must be the first test, because it forks, and nanomsg does not survive a
		 * fork */
		cmocka_unit_test(strangers_leave_room),
		cmocka_unit_test(unread_bytes_of_one_connection_do_not_end_another),
		cmocka_unit_test(a_connection_that_returned_is_not_redialed),
		cmocka_unit_test(a_listener_that_closes_everything_is_dialed_after_pauses),
		cmocka_unit_test(buffers_to_other_machines_follow_the_link),
		cmocka_unit_test(a_broken_connection_of_several_is_redialed),
		cmocka_unit_test(a_large_frame_is_sent_by_nanomsgs_thread),
		cmocka_unit_test(a_large_frame_is_received_by_nanomsgs_thread),
		cmocka_unit_test(a_listener_at_all_addresses_uses_ipv4_where_there_is_no_ipv6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
