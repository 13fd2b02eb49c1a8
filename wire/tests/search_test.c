/* Tests which addresses count as names, and what a search reports. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/tests/test.h"

int slow_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		     struct addrinfo **out);
int64_t skewed_clock_us(void);

#define getaddrinfo        slow_getaddrinfo
#define clock_monotonic_us skewed_clock_us
#include "wire/sessions/search.c"
#undef getaddrinfo
#undef clock_monotonic_us

static _Atomic int64_t resolving_us; /* time that the name service takes, on the search's clock */
static _Atomic int64_t skew_us;

int slow_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		     struct addrinfo **out)
{
	skew_us += resolving_us;
	return getaddrinfo(host, port, hints, out);
}

int64_t skewed_clock_us(void)
{
	return clock_monotonic_us() + skew_us;
}

TEST(names_differ_from_numbers)
{
	assert_true(search_is_name("tcp://boss:7700"));
	assert_true(search_is_name("tcp://localhost:1"));
	assert_true(search_is_name("tcp://a.b.example:1"));
	assert_false(search_is_name("tcp://10.0.0.1:7700"));
	assert_false(search_is_name("tcp://[::1]:7700"));
	assert_false(search_is_name("tcp://[fe80::1%eth0]:7700"));
	assert_false(search_is_name("tcp://*:7700"));
	/* these addresses have mistakes, so no name service can resolve them */
	assert_false(search_is_name("tcp://boss:77000"));
	assert_false(search_is_name("tcp://boss:0"));
	assert_false(search_is_name("tcp://boss:7700/"));
	assert_false(search_is_name("tcp:// boss:7700"));
	assert_false(search_is_name("tcp://[::1:7700"));
	assert_false(search_is_name("tcp://fd00::1:7700"));
	assert_false(search_is_name("tcp://:7700"));
	assert_false(search_is_name("ipc:///tmp/socket"));
	assert_false(search_is_name("tcp:/"));
}

static int wait_search(struct search *s, char *found, struct error *why)
{
	int rc;

	assert_non_null(s);
	while ((rc = search_result(s, found, why)) == -EAGAIN)
		poll(NULL, 0, 5);
	search_free(s);
	return rc;
}

static int wait_result(const char *address, char *found, struct error *why)
{
	return wait_search(search_new(address, ""), found, why);
}

/* Returns a listening socket on a free port of 127.0.0.1. */
static int listen_here(uint16_t *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, size), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &size), 0);
	*port = ntohs(a.sin_port);
	return fd;
}

TEST(a_listener_is_found_or_the_cause_is_named)
{
	char address[LINK_ADDRESS_SIZE], found[LINK_ADDRESS_SIZE], expected[LINK_ADDRESS_SIZE];
	struct error why = { "" };
	uint16_t port;
	int fd = listen_here(&port);

	snprintf(address, sizeof(address), "tcp://localhost:%u", port);
	snprintf(expected, sizeof(expected), "tcp://127.0.0.1:%u", port);
	/* the first address of localhost may be ::1, where nothing listens */
	assert_int_equal(wait_result(address, found, &why), 0);
	assert_string_equal(found, expected);
	close(fd);
	assert_int_equal(wait_result(address, found, &why), -EHOSTUNREACH);
	assert_non_null(strstr(why.text, "localhost port"));
	assert_non_null(strstr(why.text, "127.0.0.1: Connection refused"));
	assert_int_equal(wait_result("tcp://no-such-host.invalid:1", found, &why), -EHOSTUNREACH);
	assert_non_null(strstr(why.text, "no-such-host.invalid: "));
	search_free(search_new(address, "")); /* an abandoned search frees itself */
	search_free(NULL);
}

/* Fills the listener's queue. The listener then ignores further connections, as a firewall does.
 * Returns the number of connections in held. */
static size_t fill_queue(uint16_t port, int *held, size_t most)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct pollfd p = { .events = POLLOUT };
	size_t n = 0;

	do {
		assert_true(n < most);
		held[n] = p.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)connect(held[n++], (struct sockaddr *)&a, sizeof(a));
	} while (poll(&p, 1, 200) > 0);
	return n;
}

/* An address that does not answer must be named as the cause. If the name service was slow, the
 * name service must be named and not the address. */
TEST(an_address_without_an_answer_is_named)
{
	char address[LINK_ADDRESS_SIZE], found[LINK_ADDRESS_SIZE];
	struct error why = { "" };
	uint16_t port;
	int listener = listen_here(&port), held[32];
	size_t n = fill_queue(port, held, sizeof(held) / sizeof(held[0]));

	snprintf(address, sizeof(address), "tcp://127.0.0.1:%u", port);
	assert_int_equal(wait_result(address, found, &why), -EHOSTUNREACH);
	assert_non_null(strstr(why.text, ": no answer"));
	/* The name service leaves the address too little time to answer, so the address must not be
	 * blamed. */
	resolving_us = (SEARCH_MOST_MS - ANSWER_MS + 100) * 1000;
	assert_int_equal(wait_result(address, found, &why), -EHOSTUNREACH);
	assert_non_null(strstr(why.text, "127.0.0.1: the name service "));
	resolving_us = 0;
	while (n > 0)
		close(held[--n]);
	close(listener);
}

/* A peer behind a router has an inside and an outside address, which must be tried in turn. */
TEST(several_addresses_are_tried_in_turn)
{
	char one[64], two[64], both[LINK_ADDRESS_SIZE], found[LINK_ADDRESS_SIZE];
	struct error why = { "" };
	uint16_t port, other;
	int fd = listen_here(&port), closed = listen_here(&other);

	snprintf(one, sizeof(one), "tcp://127.0.0.1:%u", other);
	snprintf(two, sizeof(two), "tcp://127.0.0.1:%u", port);
	snprintf(both, sizeof(both), "%s %s", one, two);
	assert_true(search_is_name(both));
	assert_int_equal(wait_result(both, found, &why), 0);
	assert_string_equal(found, one);
	/* The listener at the first address was not the peer, so this address must be tried
	 * last. */
	assert_int_equal(wait_search(search_new(both, one), found, &why), 0);
	assert_string_equal(found, two);
	close(closed);
	assert_int_equal(wait_result(both, found, &why), 0);
	assert_string_equal(found, two);
	close(fd);
	assert_int_equal(wait_result(both, found, &why), -EHOSTUNREACH);
	snprintf(one, sizeof(one), "127.0.0.1 port %u: 127.0.0.1: Connection refused; ", other);
	assert_non_null(strstr(why.text, one));
	assert_null(search_new("ipc:///tmp/x", ""));
}

/* A listener may accept connections and never answer, like a tunnel whose other end is missing.
 * Such a listener must be named as the cause. In this test the link's clock runs faster than the
 * clock of the search. */
TEST(a_listener_that_does_not_answer_is_named)
{
	struct keys_identity *id = NULL;
	struct link_options options = { .frame_most = 1 << 16, .silence_us = 5000000,
					.rekey_us = 3600000000 };
	char address[LINK_ADDRESS_SIZE];
	struct link *link = NULL;
	int64_t now_us = 1, give_up_us = clock_monotonic_us() + TEST_PATIENCE_US;
	uint16_t port;
	int fd = listen_here(&port);

	assert_int_equal(keys_generate(&id, NULL), 0);
	options.identity = id;
	snprintf(address, sizeof(address), "tcp://127.0.0.1:%u", port);
	assert_int_equal(link_dial(&link, &options, address, keys_public_of(id), 1, NULL), 0);
	while (!strstr(link_trouble(link), "does not answer")) {
		link_tick(link, now_us += 100000);
		poll(NULL, 0, 2);
		assert_true(clock_monotonic_us() < give_up_us);
	}
	assert_non_null(strstr(link_trouble(link), address));
	link_close(link);
	keys_free(id);
	close(fd);
}
