/* socket.c - raw nanomsg sockets for the links. This module tunes the sockets for links with long
 * round trips, and repairs the sockets when they fail. The rest of the program therefore needs no
 * knowledge of nanomsg. */
#include "wire/sessions/socket.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <nanomsg/nn.h>
#include <nanomsg/reqrep.h>
#include <nanomsg/tcp.h>
#include <sodium.h>

#include "wire/address.h"
#include "wire/sessions/accept.h"
#include "wire/sessions/link.h"
#include "wire/sessions/search.h"

#define BUFFER_BYTES     (1 << 20)
/* Two buffer sizes that only this file uses. nanomsg passes these sizes to the setsockopt below,
 * which leaves the real size to the kernel. BUFFER_BULKS is for connections of bulk data,
 * BUFFER_KERNELS for all other connections. */
#define BUFFER_KERNELS   (BUFFER_BYTES + 1)
#define BUFFER_BULKS     (BUFFER_BYTES + 2)
/* Sends and receives of at least this many bytes are left to nanomsg's own thread. */
#define COPY_BYTES (32 << 10)
#define FIRST_FLIGHT_BYTES (96 << 10)
/* Limit of the unsent bytes of a connection that the kernel may hold. */
#define UNSENT_BYTES 32768
/* The kernel ends a connection on which nothing was acknowledged for this number of
 * milliseconds. */
#define DEAD_MS 30000
#define STABLE_US          INT64_C(2000000)
/* First pause of a dialer after its connections broke too often. */
#define PAUSE_LEAST_US INT64_C(200000)
#define PAUSE_MOST_US INT64_C(4000000) /* longest pause of a dialer; each pause is twice the last */
#define RECONNECT_MS     50
#define RECONNECT_MOST_MS 400
/* Unused ports are searched from PORT_FIRST on. These ports are below the ports that the kernel
 * gives to outgoing connections. */
#define PORT_FIRST       20000
#define PORT_RANGE       12000
#define PORT_TRIES       256

/* ---- the kernel's sockets ---- */

static void set_tcp(int fd, int level, int name, int value)
{
	(void)syscall(SYS_setsockopt, fd, level, name, &value, sizeof(value));
}

#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72 /* as in Linux 5.14, for older headers */
#endif

/* Gives a new connection a send buffer for more than ten packets. TCP may send ten packets at
 * once, but the kernel's initial buffer holds fewer packets. Setting SO_SNDBUF stops the kernel
 * from enlarging the buffer later, so SO_BUF_LOCK restores the kernel's control. A kernel without
 * SO_BUF_LOCK keeps its initial buffer. */
static void widen_first_flight(int fd)
{
	int lock = 0;
	socklen_t size = sizeof(lock);
	if (getsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &lock, &size) < 0)
		return;
	set_tcp(fd, SOL_SOCKET, SO_SNDBUF, FIRST_FLIGHT_BYTES);
	set_tcp(fd, SOL_SOCKET, SO_BUF_LOCK, lock);
}

/* Lets the kernel choose the buffer sizes by the link's bandwidth and delay, and makes the kernel
 * detect a dead connection. Returns false for a socket that is not TCP. Bytes that do not fit the
 * buffers wait in this process, where urgent messages can overtake them. */
static bool tune_connection(int fd, bool bulk)
{
	/* Bulk uses BBR, which keeps its rate when one packet in a hundred is lost. Other
	 * connections use CUBIC, because CUBIC sends urgent bytes at once, while BBR would pace
	 * them. A system that lacks the chosen algorithm keeps its default. */
	const char *control = bulk ? "bbr" : "cubic";
	int domain = AF_UNIX;
	socklen_t size = sizeof(domain);
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0 || domain == AF_UNIX)
		return false;
	(void)syscall(SYS_setsockopt, fd, IPPROTO_TCP, TCP_CONGESTION, control, strlen(control));
	set_tcp(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT_BYTES);
	set_tcp(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_tcp(fd, IPPROTO_TCP, TCP_KEEPIDLE, DEAD_MS / 1000 / 2);
	set_tcp(fd, IPPROTO_TCP, TCP_KEEPINTVL, DEAD_MS / 1000 / 6);
	set_tcp(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
	set_tcp(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, DEAD_MS);
	return true;
}

/* Replaces the C library's setsockopt (see socket.h). */
int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	int bytes = 0;
	if (level == SOL_SOCKET && (name == SO_SNDBUF || name == SO_RCVBUF) &&
	    size == sizeof(bytes)) {
		memcpy(&bytes, value, sizeof(bytes));
		if ((bytes == BUFFER_KERNELS || bytes == BUFFER_BULKS) &&
		    tune_connection(fd, bytes == BUFFER_BULKS)) {
			/* Only dialed connections get these sizes for SO_SNDBUF. The send buffers
			 * of accepted connections are large anyway. */
			if (name == SO_SNDBUF)
				widen_first_flight(fd);
			return 0;
		}
	}
	return (int)syscall(SYS_setsockopt, fd, level, name, value, size);
}

/* Returns the address that the kernel must get. Usually this is `at`. If `at` is link-local and
 * contains the number of an interface (address_for_nanomsg), makes a copy in `room` and returns
 * the copy. In the copy, the number is moved to sin6_scope_id, and bytes 2 to 5 of the address
 * are zero again. */
static const struct sockaddr *with_zone(struct sockaddr_in6 *room, const struct sockaddr *at,
					socklen_t size)
{
	uint32_t index;
	if (size < sizeof(*room) || at->sa_family != AF_INET6)
		return at;
	memcpy(room, at, sizeof(*room));
	memcpy(&index, room->sin6_addr.s6_addr + 2, sizeof(index));
	if (!IN6_IS_ADDR_LINKLOCAL(&room->sin6_addr) || index == 0)
		return at;
	memset(room->sin6_addr.s6_addr + 2, 0, sizeof(index));
	room->sin6_scope_id = ntohl(index);
	return (const struct sockaddr *)room;
}

/* Replace the C library's bind and connect for nanomsg, which has no zones. A socket bound to [::]
 * also accepts IPv4, even if the system's default is IPv6 only (net.ipv6.bindv6only). */
int bind(int fd, __CONST_SOCKADDR_ARG at, socklen_t size)
{
	struct sockaddr_in6 room;
	if (at.__sockaddr__->sa_family == AF_INET6 && size >= sizeof(room) &&
	    IN6_IS_ADDR_UNSPECIFIED(&at.__sockaddr_in6__->sin6_addr))
		set_tcp(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	return (int)syscall(SYS_bind, fd, with_zone(&room, at.__sockaddr__, size), size);
}

/* Replaces the C library's listen. The kernel then accepts a connection only when its first bytes
 * have arrived. accept.c reads these bytes, and nanomsg's dialers send them at once. For a socket
 * that is not TCP, setting the option fails, which does no harm. */
int listen(int fd, int backlog)
{
	set_tcp(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, 1);
	return (int)syscall(SYS_listen, fd, backlog);
}

int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t size)
{
	struct sockaddr_in6 room;
	return (int)syscall(SYS_connect, fd, with_zone(&room, to.__sockaddr__, size), size);
}

/* True while this thread is in a call of nanomsg that must leave large copies to nanomsg's
 * thread. */
static _Thread_local bool leaves_copies;

static bool is_left(const struct msghdr *message)
{
	size_t bytes = 0;
	for (size_t i = 0; leaves_copies && i < message->msg_iovlen; i++)
		bytes += message->msg_iov[i].iov_len;
	if (bytes < COPY_BYTES)
		return false;
	errno = EAGAIN;
	return true;
}

/* Replace the C library's sendmsg and recvmsg (see socket.h). */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	return is_left(message) ? -1 : syscall(SYS_sendmsg, fd, message, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	return is_left(message) ? -1 : syscall(SYS_recvmsg, fd, message, flags);
}

/* ---- nanomsg's sockets ---- */

static int set_option(int nn, int level, int option, int value)
{
	return nn_setsockopt(nn, level, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

static int open_raw(struct socket *s, bool listens, const char *address, bool bulk,
	size_t frame_most, struct error *err)
{
	/* A listener drops frames that do not fit its send buffer, so the buffer is large from the
	 * start. */
	const bool near = socket_is_near(address);
	const int kernels = bulk ? BUFFER_BULKS : BUFFER_KERNELS;
	const int sends = near || listens ? BUFFER_BYTES : kernels;
	const int takes = near ? BUFFER_BYTES : kernels;
	int nn = nn_socket(AF_SP_RAW, listens ? NN_REP : NN_REQ);
	if (nn < 0)
		return error_set(err, -errno, "no more sockets: %s", nn_strerror(errno));
	int rc = set_option(nn, NN_SOL_SOCKET, NN_RCVMAXSIZE, (int)frame_most + 8);
	if (rc == 0)
		rc = set_option(nn, NN_SOL_SOCKET, NN_SNDBUF, sends);
	if (rc == 0)
		rc = set_option(nn, NN_SOL_SOCKET, NN_RCVBUF, takes);
	if (rc == 0)
		rc = set_option(nn, NN_SOL_SOCKET, NN_SNDTIMEO, 0);
	if (rc == 0)
		rc = set_option(nn, NN_SOL_SOCKET, NN_RECONNECT_IVL, RECONNECT_MS);
	if (rc == 0)
		rc = set_option(nn, NN_SOL_SOCKET, NN_RECONNECT_IVL_MAX, RECONNECT_MOST_MS);
	if (rc == 0)
		rc = set_option(nn, NN_SOL_SOCKET, NN_MAXTTL, 1);
	if (rc == 0 && strchr(address, '[') != NULL)
		rc = set_option(nn, NN_SOL_SOCKET, NN_IPV4ONLY, 0); /* needed for IPv6 */
	if (rc == 0) /* without NODELAY, small messages wait up to 40 ms for a delayed ACK */
		rc = set_option(nn, NN_TCP, NN_TCP_NODELAY, 1);
	if (rc < 0) {
		nn_close(nn);
		return error_set(err, rc, "a socket's option: %s", nn_strerror(-rc));
	}
	s->nn = nn;
	s->listens = listens;
	return 0;
}

bool socket_is_near(const char *address)
{
	static const char *const near[] = {"ipc://", "tcp://127.", "tcp://localhost:",
		"tcp://[::1]"};
	for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++)
		if (strncmp(address, near[i], strlen(near[i])) == 0)
			return true;
	return false;
}

static const char *advice_for(int code)
{
	switch (code) {
	case EADDRINUSE:
		return "the address is in use: another program listens there";
	case EADDRNOTAVAIL:
		return "no interface of this machine has this address";
	case ENODEV:
		return "no address or interface of this machine; names are not looked up here";
	case EINVAL:
	case EPROTONOSUPPORT:
		return "not an address: expected tcp://ADDRESS:PORT or ipc://PATH";
	default:
		return nn_strerror(code);
	}
}

/* Binds tcp://HOST:0 to a free port and writes the port to the address, because nanomsg does not
 * support port 0. Returns 0 or a negative errno. */
static int bind_any_port(int nn, char address[LINK_ADDRESS_SIZE])
{
	char *port_text = strrchr(address, ':');
	const size_t room = LINK_ADDRESS_SIZE - (size_t)(port_text - address);
	unsigned seed = randombytes_random();
	int rc = -EADDRINUSE;
	for (int i = 0; i < PORT_TRIES && rc == -EADDRINUSE; i++) {
		unsigned port = PORT_FIRST + (seed + (unsigned)i * 7919u) % PORT_RANGE;
		snprintf(port_text, room, ":%u", port);
		rc = nn_bind(nn, address) < 0 ? -errno : 0;
	}
	return rc;
}

/* Binds the address. If any_port is true, the address has port 0, and the function writes the
 * bound port to the address. Returns 0 or a negative errno. */
static int bind_to(int nn, bool any_port, char address[LINK_ADDRESS_SIZE])
{
	if (any_port)
		return bind_any_port(nn, address);
	return nn_bind(nn, address) < 0 ? -errno : 0;
}

/* Refuses the path of an ipc address if a file other than a socket is there, because nanomsg
 * would remove the file. A socket may be removed, because a killed process has left it. */
static int check_path(const char *address, struct error *err)
{
	struct stat st;
	if (strncmp(address, "ipc://", 6) != 0 || lstat(address + 6, &st) < 0 ||
	    S_ISSOCK(st.st_mode))
		return 0;
	return error_set(err, -EEXIST,
		"%s: a file that is not a socket is there; give another path", address);
}

int socket_listen(struct socket *s, const char *address, char *bound, size_t frame_most,
	struct error *err)
{
	static const char every_v6[] = "tcp://[::]:";
	char text[LINK_ADDRESS_SIZE], v4[LINK_ADDRESS_SIZE];
	size_t given = strlen(address);
	if (given >= LINK_ADDRESS_SIZE - 8)
		return error_set(err, -EINVAL, "%.60s...: the address is too long", address);
	s->port = 0;
	int rc = check_path(address, err);
	if (rc == 0)
		rc = address_for_nanomsg(text, address, err);
	if (rc == 0)
		rc = open_raw(s, true, address, false, frame_most, err);
	if (rc < 0)
		return rc;
	const bool any_port =
		strncmp(address, "tcp://", 6) == 0 && strcmp(address + given - 2, ":0") == 0;
	rc = bind_to(s->nn, any_port, text);
	if (rc == -EAFNOSUPPORT && strncmp(address, every_v6, sizeof(every_v6) - 1) == 0) {
		/* The kernel has no IPv6. */
		snprintf(v4, sizeof(v4), "tcp://0.0.0.0:%s", address + sizeof(every_v6) - 1);
		memcpy(text, v4, sizeof(text));
		address = v4;
		given = strlen(address);
		rc = bind_to(s->nn, any_port, text);
	}
	if (rc < 0) {
		socket_close(s);
		return error_set(err, rc, "%s: %s", address, advice_for(-rc));
	}
	if (bound != NULL)
		snprintf(bound, LINK_ADDRESS_SIZE, "%.*s%s", (int)(any_port ? given - 2 : given),
			 address, any_port ? strrchr(text, ':') : "");
	if (strncmp(text, "tcp://", 6) == 0)
		s->port = (uint16_t)atoi(strrchr(text, ':') + 1);
	return 0;
}

/* Opens a connection to the address. Returns the number of nanomsg's endpoint. Returns -1 if the
 * address is not known yet. If the connection cannot be opened, returns -1 and sets errno. */
static int open_connection(const struct socket *s)
{
	char address[LINK_ADDRESS_SIZE];
	if (s->address[0] == 0)
		return -1; /* the target is a name, and socket_redirect will give its address */
	/* The number of the interface may have changed after the last connection. */
	const int rc = address_for_nanomsg(address, s->address, NULL);
	if (rc < 0) {
		errno = -rc;
		return -1;
	}
	return nn_connect(s->nn, address);
}

static int add_connections(struct socket *s, unsigned connections)
{
	while (s->n_endpoints < connections) {
		int endpoint = open_connection(s);
		if (endpoint < 0 && s->address[0] != 0)
			return -errno;
		s->endpoints[s->n_endpoints++] = endpoint;
	}
	return 0;
}

unsigned socket_end_silent(const struct socket *s, int64_t silent_ms)
{
	uint64_t now, broken;
	if (s->port == 0)
		return 0;
	socket_connections(s, &now, &broken);
	return now > accept_most() / 2 ? accept_end_silent(s->port, silent_ms) : 0;
}

int socket_dial(struct socket *s, const char *address, unsigned connections, bool bulk,
	size_t frame_most, struct error *err)
{
	assert(connections >= 1 && connections <= LINK_CONNECTIONS_MOST);
	s->n_endpoints = 0;
	s->received = false;
	s->broken_accepted = s->broken_seen = 0;
	s->stable_since_us = s->pause_us = s->paused_until_us = 0;
	if (strlen(address) >= LINK_ADDRESS_SIZE)
		return error_set(err, -EINVAL, "%.60s...: the address is too long", address);
	char unused[LINK_ADDRESS_SIZE];
	int rc = address_for_nanomsg(unused, address, err);
	if (rc == 0)
		rc = open_raw(s, false, address, bulk, frame_most, err);
	if (rc < 0)
		return rc;
	s->address[0] = 0;
	if (!search_is_name(address))
		memcpy(s->address, address, strlen(address) + 1);
	rc = add_connections(s, connections);
	if (rc < 0) {
		socket_close(s);
		return error_set(err, rc, "%s: %s", address, advice_for(-rc));
	}
	return 0;
}

void socket_widen(struct socket *s, unsigned connections)
{
	assert(!s->listens && connections <= LINK_CONNECTIONS_MOST);
	(void)add_connections(s, connections);
}

static void close_connections(struct socket *s)
{
	for (unsigned i = 0; i < s->n_endpoints; i++) {
		if (s->endpoints[i] >= 0)
			nn_shutdown(s->nn, s->endpoints[i]);
		s->endpoints[i] = -1;
	}
}

static void open_missing(struct socket *s)
{
	for (unsigned i = 0; i < s->n_endpoints; i++) {
		/* The endpoint is missing after a pause, or because nn_connect had no memory. */
		if (s->endpoints[i] < 0)
			s->endpoints[i] = open_connection(s);
	}
}

void socket_redial(struct socket *s)
{
	uint64_t now;
	close_connections(s);
	open_missing(s);
	s->paused_until_us = 0;
	socket_connections(s, &now, &s->broken_accepted);
}

void socket_redirect(struct socket *s, const char *address)
{
	(void)set_option(s->nn, NN_SOL_SOCKET, NN_IPV4ONLY, strchr(address, '[') == NULL);
	memcpy(s->address, address, strlen(address) + 1);
	socket_redial(s);
}

/* The first time, redials at once. If the connections break again and again, closes them for a
 * pause, which grows each time. A tunnel or a proxy may accept every connection and close it
 * again, and nanomsg alone would then dial it twenty times a second. */
static void redial_or_pause(struct socket *s, int64_t now_us)
{
	if (s->pause_us == 0) {
		socket_redial(s);
	} else {
		close_connections(s);
		s->paused_until_us = now_us + s->pause_us;
	}
	s->pause_us = s->pause_us == 0 ? PAUSE_LEAST_US : 2 * s->pause_us;
	if (s->pause_us > PAUSE_MOST_US)
		s->pause_us = PAUSE_MOST_US;
}

void socket_repair(struct socket *s, int64_t now_us)
{
	uint64_t now, broken;

	if (s->listens || now_us < s->paused_until_us)
		return;
	socket_connections(s, &now, &broken);
	if (s->paused_until_us != 0)
		s->broken_accepted = broken;
	s->paused_until_us = 0;
	open_missing(s);
	/* A single connection works if a frame has arrived on it. With several connections, a
	 * frame does not show which of them works. Therefore this check also requires that all
	 * connections have been open for STABLE_US. */
	bool stable = now == s->n_endpoints && broken == s->broken_seen;
	if (!stable)
		s->stable_since_us = 0;
	else if (s->stable_since_us == 0)
		s->stable_since_us = now_us;
	if (s->received &&
	    (s->n_endpoints == 1 || (stable && now_us - s->stable_since_us >= STABLE_US))) {
		s->broken_accepted = broken;
		s->pause_us = 0;
	}
	s->received = false;
	s->broken_seen = broken;
	if (broken > s->broken_accepted + s->n_endpoints)
		redial_or_pause(s, now_us);
}

void socket_close(struct socket *s)
{
	if (s->nn >= 0)
		while (nn_close(s->nn) < 0 && errno == EINTR)
			;
	s->nn = -1;
}

static int get_fd(const struct socket *s, int option)
{
	int fd = -1;
	size_t size = sizeof(fd);
	return nn_getsockopt(s->nn, NN_SOL_SOCKET, option, &fd, &size) < 0 ? -1 : fd;
}

int socket_read_fd(const struct socket *s)
{
	return get_fd(s, NN_RCVFD);
}

int socket_write_fd(const struct socket *s)
{
	return s->listens ? -1 : get_fd(s, NN_SNDFD);
}

void socket_connections(const struct socket *s, uint64_t *now, uint64_t *broken)
{
	*now = nn_get_statistic(s->nn, NN_STAT_CURRENT_CONNECTIONS);
	*broken = nn_get_statistic(s->nn, NN_STAT_BROKEN_CONNECTIONS);
}

uint8_t *socket_frame(size_t size)
{
	return nn_allocmsg(size, 0);
}

void socket_frame_free(void *frame)
{
	if (frame != NULL)
		nn_freemsg(frame);
}

/* nanomsg takes the SP header as ancillary data: the header's length as a size_t, then its bytes.
 * A listener's header has two words: the connection's number, and a word that the dialer sent. A
 * dialer's header has a single word. The top bit of this word marks the end of the header. */
int socket_send(struct socket *s, const struct socket_route *route, uint8_t *frame)
{
	static const uint8_t end[4] = {0x80, 0, 0, 0};
	const size_t size = s->listens ? sizeof(route->bytes) : sizeof(end);
	_Alignas(struct nn_cmsghdr) uint8_t control[64] = {0};
	struct nn_cmsghdr *head = (struct nn_cmsghdr *)control;
	struct nn_iovec part = {&frame, NN_MSG};
	struct nn_msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = NN_CMSG_SPACE(sizeof(size_t) + size)};

	head->cmsg_len = NN_CMSG_LEN(sizeof(size_t) + size);
	head->cmsg_level = PROTO_SP;
	head->cmsg_type = SP_HDR;
	memcpy(NN_CMSG_DATA(head), &size, sizeof(size));
	memcpy(NN_CMSG_DATA(head) + sizeof(size), s->listens ? route->bytes : end, size);
	/* A listener must not leave copies to nanomsg's thread. While this thread sends a frame,
	 * nanomsg would drop the listener's next frame. */
	leaves_copies = !s->listens;
	const int n = nn_sendmsg(s->nn, &message, NN_DONTWAIT);
	leaves_copies = false;
	if (n >= 0)
		return 0;
	nn_freemsg(frame);
	/* The buffer is full, nothing is connected, or a signal interrupted the call. */
	return -EAGAIN;
}

int socket_receive(struct socket *s, struct socket_route *route, uint8_t **frame, size_t *size)
{
	_Alignas(struct nn_cmsghdr) uint8_t control[64] = {0};
	const struct nn_cmsghdr *head = (const struct nn_cmsghdr *)control;
	uint8_t *got = NULL;
	size_t length = 0;
	struct nn_iovec part = {&got, NN_MSG};
	struct nn_msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control)};

	leaves_copies = true;
	const int n = nn_recvmsg(s->nn, &message, NN_DONTWAIT);
	leaves_copies = false;
	if (n < 0)
		return -EAGAIN;
	memset(route, 0, sizeof(*route));
	if (head->cmsg_level == PROTO_SP && head->cmsg_type == SP_HDR)
		memcpy(&length, NN_CMSG_DATA(head), sizeof(length));
	if (length > 0 && length <= sizeof(route->bytes))
		memcpy(route->bytes, NN_CMSG_DATA(head) + sizeof(length), length);
	*frame = got;
	*size = (size_t)n;
	s->received = true;
	return 0;
}
