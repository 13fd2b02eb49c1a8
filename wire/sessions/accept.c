/* accept.c - keeps file descriptors in reserve, so that strangers cannot take all of them. Without
 * the reserve, idle connections could stop the process from opening files or dialing. */
#include "wire/sessions/accept.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RESERVE_LEAST 64
/* The reserve is the limit of open files divided by RESERVE_SHARE, but at least RESERVE_LEAST. */
#define RESERVE_SHARE 8

static uint64_t limit_of_files(void)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? 1024 : limit.rlim_cur;
}

uint64_t accept_most(void)
{
	const uint64_t files = limit_of_files();
	const uint64_t share = files / RESERVE_SHARE;
	const uint64_t reserve = share > RESERVE_LEAST ? share : RESERVE_LEAST;
	return files > reserve ? files - reserve : 0;
}

uint64_t accept_limit_for(uint64_t descriptors)
{
	const uint64_t share = descriptors / (RESERVE_SHARE - 1) + 1;
	return descriptors + (share > RESERVE_LEAST ? share : RESERVE_LEAST);
}

/* If the connection asks for its own address (accept.h), answers and returns true. The first bytes
 * can be read now, because the kernel accepts a connection only when they have arrived (listen in
 * socket.c). */
static bool answer_question(int fd)
{
	static const char question[] = ACCEPT_QUESTION;
	char text[sizeof(question) - 1], host[64], reply[80];
	union {
		struct sockaddr any;
		struct sockaddr_in6 v6;
	} from;
	socklen_t size = sizeof(from);
	if (recv(fd, text, sizeof(text), MSG_PEEK | MSG_DONTWAIT) != (ssize_t)sizeof(text) ||
	    memcmp(text, question, sizeof(text)) != 0)
		return false;
	/* If these bytes stayed unread, close would reset the connection and could lose the
	 * answer. */
	(void)!recv(fd, text, sizeof(text), MSG_DONTWAIT);
	if (getpeername(fd, &from.any, &size) < 0 ||
	    getnameinfo(&from.any, size, host, sizeof(host), NULL, 0, NI_NUMERICHOST) != 0)
		return true;
	const char *shown = strncmp(host, "::ffff:", 7) == 0 ? host + 7 : host;
	const int n = snprintf(reply, sizeof(reply), "%s\n", shown);
	(void)!send(fd, reply, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	return true;
}

/* Replaces the C library's accept4 (see accept.h). The kernel always returns the lowest free
 * descriptor. A number at or above accept_most therefore shows that only the reserve is left. The
 * error ECONNABORTED makes nanomsg believe that the peer has closed the connection. */
int accept4(int listener, __SOCKADDR_ARG from, socklen_t *size, int flags)
{
	int fd = (int)syscall(SYS_accept4, listener, from.__sockaddr__, size, flags);
	if (fd < 0 || ((uint64_t)fd < accept_most() && !answer_question(fd)))
		return fd;
	close(fd);
	errno = ECONNABORTED;
	return -1;
}

/* Returns true if fd is a connection that a listener at this TCP port accepted. */
static bool accepted_at(int fd, uint16_t port)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at = {.any = {.sa_family = AF_UNSPEC}};
	socklen_t size = sizeof(at);
	int listens = 0;
	if (getsockname(fd, &at.any, &size) < 0)
		return false;
	if (!(at.any.sa_family == AF_INET && ntohs(at.v4.sin_port) == port) &&
	    !(at.any.sa_family == AF_INET6 && ntohs(at.v6.sin6_port) == port))
		return false;
	size = sizeof(listens);
	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && !listens;
}

/* Shuts the connections down but does not close them, because nanomsg owns their descriptors and
 * closes them in its own thread. If a descriptor is reused between the check and the shutdown,
 * another peer's connection is shut down, and that peer has to dial again. */
unsigned accept_end_silent(uint16_t port, int64_t silent_ms)
{
	const uint64_t files = limit_of_files();
	unsigned n = 0;
	for (int fd = 0; (uint64_t)fd < files && fd < (1 << 20); fd++) {
		struct tcp_info info = {.tcpi_state = 0};
		socklen_t size = sizeof(info);
		if (accepted_at(fd, port) &&
		    getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
		    info.tcpi_last_data_recv >= silent_ms && shutdown(fd, SHUT_RDWR) == 0)
			n++;
	}
	return n;
}
