/* packet_train.c - sends and receives trains of UDP packets that measure a link's bandwidth. A TCP
 * connection would need many round trips to reach the bandwidth of a long link. */
#include "wire/bandwidth/packet_train.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "base/alloc.h"
#include "wire/address.h"
#include "wire/bandwidth/dispersion.h"
#include "wire/sessions/link.h"

#define PACKET_BYTES 1400 /* UDP payload in bytes, which most tunnels carry without fragmentation */
#define HEADERS_BYTES 28
/* Payload bytes that TCP would carry in the time of one packet: 1,448 of each 1,500 bytes on the
 * link. */
#define GOODPUT_BYTES ((PACKET_BYTES + HEADERS_BYTES) * 1448 / 1500)
#define BUFFER_BYTES (4 << 20)
#define BATCH 64
#define BATCHES 16   /* largest number of batches that a call of packet_train_hear receives */
#define FULL_MS 2    /* milliseconds to wait while the kernel's send buffer is full */
#define FULL_MOST 10 /* largest number of waits for the send buffer during one train */

struct head {
	uint8_t token[PACKET_TRAIN_TOKEN_BYTES];
	uint8_t number[2], packets[2]; /* little endian */
};

/* Memory for one train that is being received. */
struct place {
	uint8_t token[PACKET_TRAIN_TOKEN_BYTES];
	bool used;
	bool expected;  /* the sender has announced the train */
	bool whole;     /* the last packet of the train arrived */
	/* This is train number `since`, counted in the order in which trains began. The place
	 * with the lowest number is reused first. */
	uint64_t since;
	uint32_t n;
	int64_t at_ns[PACKET_TRAIN_MOST]; /* the n arrival times, on the kernel's clock */
};

struct packet_train {
	int fd, family;
	uint64_t places_taken;
	/* Memory for trains. Half of the memory is for announced trains, so forged packets cannot
	 * displace announced trains. */
	struct place places[2 * PACKET_TRAIN_PLACES];
	/* Content of the packets: random bytes, which no device on the link can compress. */
	uint8_t noise[PACKET_BYTES];
};

/* Parses "tcp://HOST:PORT". If `any` is true, a HOST that is not numeric counts as the address of
 * all interfaces. If `any` is false, such a HOST is an error. */
static int parse_address(const char *address, bool any, struct sockaddr_storage *out,
			 socklen_t *size)
{
	char host[LINK_ADDRESS_SIZE], port[8];
	if (!address_split(address, host, port))
		return -EINVAL;
	const struct addrinfo hints = { .ai_family = address[6] == '[' ? AF_INET6 : AF_INET,
					.ai_socktype = SOCK_DGRAM,
					.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE };
	struct addrinfo *found = NULL;
	if (host[0] == 0 || atoi(port) == 0)
		return -EINVAL;
	if (getaddrinfo(host, port, &hints, &found) != 0 &&
	    (!any || getaddrinfo(NULL, port, &hints, &found) != 0))
		return -EINVAL;
	memcpy(out, found->ai_addr, found->ai_addrlen);
	*size = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

int packet_train_open(struct packet_train **out, const char *address, struct error *err)
{
	struct sockaddr_storage bound;
	socklen_t size;
	const int on = 1, bytes = BUFFER_BYTES;
	if (parse_address(address, true, &bound, &size) < 0)
		return error_set(err, -EINVAL, "%.60s: packet trains need a tcp:// address",
				 address);
	struct packet_train *t = alloc_new(sizeof(*t));
	t->family = bound.ss_family;
	t->fd = socket(t->family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (t->fd < 0 || bind(t->fd, (struct sockaddr *)&bound, size) < 0 ||
	    setsockopt(t->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) < 0) {
		const int code = errno;
		packet_train_free(t);
		return error_set(err, -code, "%.60s, UDP: %s", address, strerror(code));
	}
	/* Asks for a large buffer. The system may grant a smaller buffer. */
	(void)setsockopt(t->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	(void)setsockopt(t->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	randombytes_buf(t->noise, sizeof(t->noise));
	*out = t;
	return 0;
}

void packet_train_free(struct packet_train *t)
{
	if (t != NULL && t->fd >= 0)
		close(t->fd);
	free(t);
}

int packet_train_fd(const struct packet_train *t)
{
	return t == NULL ? -1 : t->fd;
}

void packet_train_token(uint8_t token[PACKET_TRAIN_TOKEN_BYTES])
{
	randombytes_buf(token, PACKET_TRAIN_TOKEN_BYTES);
}

/* ---- sending ---- */

static void put_u16(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)value;
	to[1] = (uint8_t)(value >> 8);
}

/* Sends a batch. Waits briefly while the kernel's buffer is full, which is normal on a slow
 * interface. *waits: number of waits left. Returns the number of packets sent. */
static uint32_t send_batch(struct packet_train *t, struct mmsghdr *batch, uint32_t n,
			   uint32_t *waits)
{
	uint32_t left = 0;
	while (left < n) {
		int sent = sendmmsg(t->fd, batch + left, n - left, 0);
		if (sent > 0) {
			left += (uint32_t)sent;
			continue;
		}
		if ((errno != EAGAIN && errno != ENOBUFS && errno != EINTR) || *waits == 0)
			break;
		(*waits)--;
		poll(&(struct pollfd){ .fd = t->fd, .events = POLLOUT }, 1, FULL_MS);
	}
	return left;
}

/* Turns an IPv4 address into the form that an IPv6 socket accepts. */
static void map_to_v6(struct sockaddr_storage *at, socklen_t *size)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	memcpy(&v4, at, sizeof(v4));
	v6.sin6_port = v4.sin_port;
	memset(v6.sin6_addr.s6_addr + 10, 0xff, 2);
	memcpy(v6.sin6_addr.s6_addr + 12, &v4.sin_addr, sizeof(v4.sin_addr));
	memcpy(at, &v6, sizeof(v6));
	*size = sizeof(v6);
}

int packet_train_send(struct packet_train *t, const char *address,
		      const uint8_t token[PACKET_TRAIN_TOKEN_BYTES], uint32_t packets)
{
	struct sockaddr_storage to;
	socklen_t size;
	struct head heads[BATCH];
	struct iovec parts[BATCH][2];
	struct mmsghdr batch[BATCH];
	uint32_t left = 0, waits = FULL_MOST;

	assert(packets <= PACKET_TRAIN_MOST);
	if (parse_address(address, false, &to, &size) < 0)
		return -EINVAL;
	if (t->family == AF_INET6 && to.ss_family == AF_INET)
		map_to_v6(&to, &size);
	if (to.ss_family != t->family)
		return -EINVAL;
	while (left < packets) {
		const uint32_t n = packets - left < BATCH ? packets - left : BATCH;
		for (uint32_t i = 0; i < n; i++) {
			memcpy(heads[i].token, token, PACKET_TRAIN_TOKEN_BYTES);
			put_u16(heads[i].number, left + i);
			put_u16(heads[i].packets, packets);
			parts[i][0] = (struct iovec){ &heads[i], sizeof(heads[i]) };
			parts[i][1] = (struct iovec){ t->noise, PACKET_BYTES - sizeof(heads[i]) };
			batch[i] = (struct mmsghdr){ .msg_hdr = { .msg_name = &to,
								  .msg_namelen = size,
								  .msg_iov = parts[i],
								  .msg_iovlen = 2 } };
		}
		const uint32_t sent = send_batch(t, batch, n, &waits);
		left += sent;
		if (sent < n)
			break;
	}
	return (int)left;
}

/* ---- receiving ---- */

static struct place *find_place(struct packet_train *t, const uint8_t *token)
{
	for (size_t i = 0; i < sizeof(t->places) / sizeof(t->places[0]); i++) {
		struct place *p = &t->places[i];
		if (p->used && memcmp(p->token, token, PACKET_TRAIN_TOKEN_BYTES) == 0)
			return p;
	}
	return NULL;
}

static uint32_t count_expected(const struct packet_train *t)
{
	uint32_t n = 0;
	for (size_t i = 0; i < sizeof(t->places) / sizeof(t->places[0]); i++)
		n += t->places[i].used && t->places[i].expected;
	return n;
}

/* Returns the place of the oldest announced train if `expected` is true, and the place of the
 * oldest unannounced train if it is false. NULL: there is no such train. */
static struct place *oldest_place(struct packet_train *t, bool expected)
{
	struct place *found = NULL;
	for (size_t i = 0; i < sizeof(t->places) / sizeof(t->places[0]); i++) {
		struct place *p = &t->places[i];
		if (p->used && p->expected == expected &&
		    (found == NULL || p->since < found->since))
			found = p;
	}
	return found;
}

/* Returns an unused place. If all places are used, returns the place of the oldest unannounced
 * train. There is always such a train, because announced trains occupy at most half of the
 * places. */
static struct place *take_place(struct packet_train *t, const uint8_t *token)
{
	struct place *p = NULL;
	for (size_t i = 0; p == NULL && i < sizeof(t->places) / sizeof(t->places[0]); i++)
		p = t->places[i].used ? NULL : &t->places[i];
	if (p == NULL)
		p = oldest_place(t, false);
	memcpy(p->token, token, PACKET_TRAIN_TOKEN_BYTES);
	p->used = true;
	p->expected = p->whole = false;
	p->since = ++t->places_taken;
	p->n = 0;
	return p;
}

void packet_train_expect(struct packet_train *t, const uint8_t token[PACKET_TRAIN_TOKEN_BYTES])
{
	struct place *p = find_place(t, token);
	if (p != NULL && p->expected)
		return;
	if (count_expected(t) == PACKET_TRAIN_PLACES)
		oldest_place(t, true)->used = false;
	if (p == NULL)
		p = take_place(t, token);
	p->expected = true;
}

static int64_t arrived_ns(struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		struct timespec at;
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		memcpy(&at, CMSG_DATA(c), sizeof(at));
		return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
	}
	return -1;
}

static void add_packet(struct packet_train *t, const struct head *head, int64_t at_ns)
{
	struct place *p = find_place(t, head->token);
	if (p == NULL)
		p = take_place(t, head->token);
	if (p->n < PACKET_TRAIN_MOST)
		p->at_ns[p->n++] = at_ns;
	const unsigned number = head->number[0] + 256u * head->number[1];
	const unsigned packets = head->packets[0] + 256u * head->packets[1];
	p->whole = p->whole || number + 1 == packets;
}

void packet_train_hear(struct packet_train *t)
{
	struct head heads[BATCH];
	struct iovec parts[BATCH];
	struct mmsghdr batch[BATCH];
	_Alignas(struct cmsghdr) uint8_t control[BATCH][64];
	int got = BATCH;

	for (int turn = 0; turn < BATCHES && got == BATCH; turn++) {
		for (int i = 0; i < BATCH; i++) {
			parts[i] = (struct iovec){ &heads[i], sizeof(heads[i]) };
			batch[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &parts[i],
								  .msg_iovlen = 1,
								  .msg_control = control[i],
								  .msg_controllen =
									  sizeof(control[i]) } };
		}
		got = recvmmsg(t->fd, batch, BATCH, MSG_DONTWAIT | MSG_TRUNC, NULL);
		for (int i = 0; i < got; i++) {
			const int64_t at_ns = arrived_ns(&batch[i].msg_hdr);
			if (batch[i].msg_len == PACKET_BYTES && at_ns >= 0)
				add_packet(t, &heads[i], at_ns);
		}
	}
}

bool packet_train_heard(struct packet_train *t, const uint8_t token[PACKET_TRAIN_TOKEN_BYTES],
			struct packet_train_heard *out)
{
	const struct place *p = find_place(t, token);
	if (p == NULL || !p->expected)
		return false;
	*out = (struct packet_train_heard){ .packets = p->n,
					    .whole = p->whole,
					    .bytes_per_s = dispersion_rate(p->at_ns, p->n,
									   GOODPUT_BYTES) };
	return true;
}

void packet_train_forget(struct packet_train *t, const uint8_t token[PACKET_TRAIN_TOKEN_BYTES])
{
	struct place *p = find_place(t, token);
	if (p != NULL)
		p->used = false;
}
