/* Tests trains of packets on the loopback interface. Announced trains are measured; other packets
 * must have no effect. */
#include "base/tests/test.h"
#include "wire/bandwidth/packet_train.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ADDRESS_SIZE 64

/* Opens a receiver of trains at a free port of the host. `address` gets the receiver's IPv4
 * address. */
static struct packet_train *open_at(const char *host, char address[ADDRESS_SIZE])
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	struct packet_train *t = NULL;
	struct error err;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
	close(fd);
	snprintf(address, ADDRESS_SIZE, "tcp://%s:%u", host, ntohs(at.sin_port));
	assert_int_equal(packet_train_open(&t, address, &err), 0);
	snprintf(address, ADDRESS_SIZE, "tcp://127.0.0.1:%u", ntohs(at.sin_port));
	return t;
}

static struct packet_train *open_one(char address[ADDRESS_SIZE])
{
	return open_at("127.0.0.1", address);
}

/* Receives everything that has arrived. */
static void hear_all(struct packet_train *t)
{
	while (poll(&(struct pollfd){ .fd = packet_train_fd(t), .events = POLLIN }, 1, 0) > 0)
		packet_train_hear(t);
}

/* Waits until the last packet of the train has arrived. */
static struct packet_train_heard wait_whole(struct packet_train *t, const uint8_t *token)
{
	struct packet_train_heard h;
	for (;;) {
		assert_true(packet_train_heard(t, token, &h));
		if (h.whole)
			return h;
		poll(&(struct pollfd){ .fd = packet_train_fd(t), .events = POLLIN }, 1, -1);
		packet_train_hear(t);
	}
}

TEST(a_train_is_timed)
{
	char address[2][ADDRESS_SIZE];
	struct packet_train *from = open_one(address[0]), *to = open_one(address[1]);
	uint8_t token[PACKET_TRAIN_TOKEN_BYTES];
	packet_train_token(token);
	packet_train_expect(to, token);
	assert_int_equal(packet_train_send(from, address[1], token, 64), 64);
	struct packet_train_heard h = wait_whole(to, token);
	assert_int_equal(h.packets, 64);
	assert_true(h.bytes_per_s > 0);
	packet_train_forget(to, token);
	assert_false(packet_train_heard(to, token, &h));
	packet_train_free(from);
	packet_train_free(to);
}

/* An agent that listens at [::] may have peers with IPv4 addresses. */
TEST(a_train_from_all_addresses_reaches_an_ipv4_address)
{
	char address[2][ADDRESS_SIZE];
	struct packet_train *from, *to;
	uint8_t token[PACKET_TRAIN_TOKEN_BYTES];
	if (access("/proc/net/if_inet6", F_OK) != 0)
		skip(); /* no IPv6 */
	from = open_at("[::]", address[0]);
	to = open_at("[::]", address[1]);
	packet_train_token(token);
	packet_train_expect(to, token);
	assert_int_equal(packet_train_send(from, address[1], token, 64), 64);
	assert_int_equal(wait_whole(to, token).packets, 64);
	packet_train_free(from);
	packet_train_free(to);
}

/* If the packets arrive before their announcement, they must be kept until the announcement. */
TEST(packets_may_come_before_their_announcement)
{
	char address[2][ADDRESS_SIZE];
	struct packet_train *from = open_one(address[0]), *to = open_one(address[1]);
	uint8_t token[PACKET_TRAIN_TOKEN_BYTES];
	struct packet_train_heard h;
	packet_train_token(token);
	assert_int_equal(packet_train_send(from, address[1], token, 40), 40);
	hear_all(to);
	assert_false(packet_train_heard(to, token, &h));
	packet_train_expect(to, token);
	h = wait_whole(to, token);
	assert_int_equal(h.packets, 40);
	packet_train_free(from);
	packet_train_free(to);
}

/* Strangers send many trains without an announcement, and malformed packets. Announced trains must
 * keep their memory. */
TEST(strangers_push_nobody_out)
{
	char address[2][ADDRESS_SIZE];
	struct packet_train *from = open_one(address[0]), *to = open_one(address[1]);
	uint8_t token[PACKET_TRAIN_TOKEN_BYTES], other[PACKET_TRAIN_TOKEN_BYTES];
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	static const uint8_t rubbish[2000];
	struct packet_train_heard h;
	packet_train_token(token);
	packet_train_expect(to, token);
	assert_int_equal(packet_train_send(from, address[1], token, 20), 20);
	hear_all(to);
	for (int i = 0; i < 100; i++) {
		packet_train_token(other);
		assert_int_equal(packet_train_send(from, address[1], other, 1), 1);
		hear_all(to);
		assert_false(packet_train_heard(to, other, &h));
	}
	at.sin_port = htons((uint16_t)atoi(strrchr(address[1], ':') + 1));
	for (size_t size = 0; size <= sizeof(rubbish); size += 100)
		sendto(packet_train_fd(from), rubbish, size, 0, (struct sockaddr *)&at, sizeof(at));
	hear_all(to);
	assert_true(packet_train_heard(to, token, &h));
	assert_int_equal(h.packets, 20);
	assert_true(h.whole);
	packet_train_free(from);
	packet_train_free(to);
}

/* If a sender announces too many trains, the newest trains must keep their memory. */
TEST(the_announced_are_bounded)
{
	char address[ADDRESS_SIZE];
	struct packet_train *t = open_one(address);
	uint8_t tokens[3 * PACKET_TRAIN_PLACES][PACKET_TRAIN_TOKEN_BYTES];
	struct packet_train_heard h;
	for (int i = 0; i < 3 * PACKET_TRAIN_PLACES; i++) {
		packet_train_token(tokens[i]);
		packet_train_expect(t, tokens[i]);
	}
	for (int i = 0; i < 3 * PACKET_TRAIN_PLACES; i++)
		assert_int_equal(packet_train_heard(t, tokens[i], &h),
				 i >= 2 * PACKET_TRAIN_PLACES);
	packet_train_free(t);
}

TEST(addresses_that_are_none_are_refused)
{
	static const char *const bad[] = { "ipc:///tmp/x", "tcp://1.2.3.4",           "tcp://", "",
					   "tcp://:",      "tcp://127.0.0.1:99999999" };
	uint8_t token[PACKET_TRAIN_TOKEN_BYTES] = { 0 };
	char address[ADDRESS_SIZE];
	struct packet_train *t = open_one(address), *none = NULL;
	struct error err;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(packet_train_send(t, bad[i], token, 1), -EINVAL);
	assert_int_equal(packet_train_send(t, "tcp://node.example:7700", token, 1), -EINVAL);
	assert_int_equal(packet_train_send(t, "tcp://[::1]:7700", token, 1),
			 -EINVAL); /* refused: the socket has no IPv6 */
	assert_int_equal(packet_train_open(&none, "ipc:///tmp/x", &err), -EINVAL);
	assert_int_equal(packet_train_open(&none, address, &err), -EADDRINUSE);
	assert_null(none);
	assert_int_equal(packet_train_fd(none), -1);
	packet_train_free(none);
	packet_train_free(t);
}
