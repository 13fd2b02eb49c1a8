/* fetch.c - a client that reads one page. It uses HTTP/1.0, so that the server sends the answer in
 * one piece and closes the connection. */
#include "controller/monitor/fetch.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "controller/monitor/server.h"

enum { READ_BYTES = 65536, REQUEST = 512 };

/* Waits until the socket is ready for the events. Returns 0 or -ETIMEDOUT. */
static int wait_for_socket(int fd, short events, int64_t until_us)
{
	int64_t left_us = until_us - clock_monotonic_us();
	struct pollfd p = { fd, events, 0 };

	if (left_us <= 0 || poll(&p, 1, (int)(left_us / 1000) + 1) <= 0)
		return -ETIMEDOUT;
	return 0;
}

static int connect_to(const struct addrinfo *at, int64_t until_us)
{
	int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
			at->ai_protocol);
	int failure = 0, rc = 0;
	socklen_t size = sizeof(failure);

	if (fd < 0)
		return -errno;
	if (connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
		rc = errno == EINPROGRESS ? wait_for_socket(fd, POLLOUT, until_us) : -errno;
		if (rc == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) == 0)
			rc = -failure;
	}
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* Tries the addresses of the host in turn, and connects to the first one that answers. */
static int open_connection(const char *address, int64_t until_us, struct error *err)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM };
	char host[LINK_ADDRESS_SIZE], port[8];
	struct addrinfo *found = NULL;
	int fd = -EHOSTUNREACH, rc;

	if (!server_split(address, host, port))
		return error_set(err, -EINVAL, "expected PORT or HOST:PORT, got \"%s\"", address);
	rc = getaddrinfo(host, port, &hints, &found);
	if (rc != 0)
		return error_set(err, -EHOSTUNREACH, "%s: %s", address, gai_strerror(rc));
	for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next)
		fd = connect_to(at, until_us);
	freeaddrinfo(found);
	return fd < 0 ? error_set(err, fd, "%s: %s", address, strerror(-fd)) : fd;
}

/* Reads until the server closes the connection. */
static int read_answer(int fd, size_t most, int64_t until_us, char **out, size_t *size)
{
	size_t n = 0, room = 0;
	char *text = NULL;
	ssize_t got = 1;
	int rc = 0;

	while (rc == 0 && got > 0 && n <= most) {
		array_reserve(&text, &room, n + READ_BYTES, 1);
		rc = wait_for_socket(fd, POLLIN, until_us);
		got = rc == 0 ? recv(fd, text + n, READ_BYTES - 1, 0) : 0;
		if (got < 0)
			rc = errno == EAGAIN || errno == EINTR ? 0 : -errno;
		if (got < 0 && rc == 0)
			got = 1;
		else if (got > 0)
			n += (size_t)got;
	}
	if (rc == 0 && n > most)
		rc = -EFBIG;
	if (rc != 0) {
		free(text);
		return rc;
	}
	text[n] = '\0';
	*out = text;
	*size = n;
	return 0;
}

bool fetch_body(char *text, size_t *size)
{
	char *body = strstr(text, "\r\n\r\n");

	if (!body || strncmp(text, "HTTP/1.", 7) != 0 || strncmp(text + 8, " 200 ", 5) != 0)
		return false;
	body += 4;
	*size -= (size_t)(body - text);
	memmove(text, body, *size + 1);
	return true;
}

int fetch_page(const char *address, const char *path, size_t most, int64_t limit_us, char **out,
	       size_t *size, struct error *err)
{
	const int64_t until_us = clock_monotonic_us() + limit_us;
	char request[REQUEST], *text = NULL;
	int fd = open_connection(address, until_us, err), rc;

	if (fd < 0)
		return fd;
	snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\nHost: %.200s\r\n\r\n", path,
		 address);
	/* A new connection's send buffer has room for the whole request, so one call is enough. */
	rc = send(fd, request, strlen(request), MSG_NOSIGNAL) < 0 ? -errno : 0;
	if (rc == 0)
		rc = read_answer(fd, most, until_us, &text, size);
	close(fd);
	if (rc != 0)
		return error_set(err, rc, "%s: %s", address, strerror(-rc));
	if (!fetch_body(text, size)) {
		text[strcspn(text, "\r\n")] = '\0';
		error_set(err, -EBADMSG, "%s: the answer is not a controller's: %.80s", address,
			  text);
		free(text);
		return -EBADMSG;
	}
	*out = text;
	return 0;
}
