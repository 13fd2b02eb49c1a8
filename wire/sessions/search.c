/* search.c - resolves a name and tries its addresses, in a thread.
 * An attempt starts 250 ms after the one before, or as soon as that one fails; the first that
 * succeeds wins (as in RFC 8305). A dead first address therefore costs a quarter of a second. */
#include "wire/sessions/search.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "wire/address.h"

#define ADDRESSES_MOST (SEARCH_MOST_MS / NEXT_MS) /* more are never reached in time */
#define NEXT_MS        250
#define NAME_CHARACTERS \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._"

/* Shared by the thread and its owner; the last of them frees it. */
struct search {
	pthread_mutex_t lock;
	unsigned users;
	bool done;
	int rc;
	char host[LINK_ADDRESS_SIZE], port[8];
	char found[LINK_ADDRESS_SIZE];
	struct error why;
	int64_t until_us;
};

/* An attempt to connect to one address. */
struct attempt {
	int fd;    /* descriptor of the attempt; -1: it has failed */
	int cause; /* errno of the attempt; 0: no answer yet */
	char text[INET6_ADDRSTRLEN + IF_NAMESIZE]; /* with its zone, if it has one */
	bool v6;
};

bool search_is_name(const char *address)
{
	char host[LINK_ADDRESS_SIZE], port[8];
	unsigned char number[sizeof(struct in_addr)];
	return address_split(address, host, port) && host[0] != 0 && atoi(port) > 0 &&
	       host[strspn(host, NAME_CHARACTERS)] == 0 && inet_pton(AF_INET, host, number) != 1;
}

static void leave(struct search *s)
{
	pthread_mutex_lock(&s->lock);
	bool last = --s->users == 0;
	pthread_mutex_unlock(&s->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static void finish(struct search *s, int rc)
{
	pthread_mutex_lock(&s->lock);
	s->rc = rc;
	s->done = true;
	pthread_mutex_unlock(&s->lock);
}

static void begin_attempt(struct attempt *a, const struct addrinfo *to)
{
	a->v6 = to->ai_family == AF_INET6;
	if (getnameinfo(to->ai_addr, to->ai_addrlen, a->text, sizeof(a->text), NULL, 0,
			NI_NUMERICHOST) != 0)
		a->text[0] = 0;
	a->fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	a->cause = a->fd < 0 ? errno : 0;
	if (a->fd >= 0 && connect(a->fd, to->ai_addr, to->ai_addrlen) < 0 && errno != EINPROGRESS) {
		a->cause = errno;
		close(a->fd);
		a->fd = -1;
	}
}

/* Returns true if the attempt has succeeded. Closes one that has failed. */
static bool is_connected(struct attempt *a)
{
	struct pollfd p = {.fd = a->fd, .events = POLLOUT};
	socklen_t size = sizeof(a->cause);
	if (a->fd < 0 || poll(&p, 1, 0) <= 0)
		return false;
	if (getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &a->cause, &size) == 0 && a->cause == 0)
		return true;
	close(a->fd);
	a->fd = -1;
	return false;
}

static void describe(struct search *s, const struct attempt *a, unsigned n)
{
	char text[sizeof(s->why.text)];
	size_t used = (size_t)snprintf(text, sizeof(text), "%.80s port %s", s->host, s->port);
	for (unsigned i = 0; i < n && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s: %s",
			i == 0 ? ":" : ";", a[i].text,
			a[i].cause != 0 ? strerror(a[i].cause) : "no answer");
	(void)error_set(&s->why, -EHOSTUNREACH, "%s", text);
}

/* Waits until some attempt changes, or for at most ms. */
static void wait_for_any(const struct attempt *a, unsigned n, int ms)
{
	struct pollfd p[ADDRESSES_MOST];
	for (unsigned i = 0; i < n; i++)
		p[i] = (struct pollfd){.fd = a[i].fd, .events = POLLOUT};
	poll(p, n, ms);
}

static int try_all(struct search *s, const struct addrinfo *list)
{
	struct attempt a[ADDRESSES_MOST];
	unsigned n = 0, open = 0;
	int winner = -1;
	int64_t next_us = 0;
	do {
		const int64_t now_us = clock_monotonic_us();
		if (list != NULL && n < ADDRESSES_MOST && (open == 0 || now_us >= next_us)) {
			begin_attempt(&a[n++], list);
			list = list->ai_next;
			next_us = now_us + NEXT_MS * 1000;
		}
		wait_for_any(a, n, list != NULL && n < ADDRESSES_MOST ? NEXT_MS / 5 : NEXT_MS);
		open = 0;
		for (unsigned i = 0; winner < 0 && i < n; i++) {
			if (is_connected(&a[i]))
				winner = (int)i;
			open += a[i].fd >= 0;
		}
	} while (winner < 0 && clock_monotonic_us() < s->until_us &&
		 (open > 0 || (list != NULL && n < ADDRESSES_MOST)));
	if (winner >= 0)
		snprintf(s->found, sizeof(s->found), a[winner].v6 ? "tcp://[%s]:%s" : "tcp://%s:%s",
			a[winner].text, s->port);
	else
		describe(s, a, n);
	for (unsigned i = 0; i < n; i++)
		if (a[i].fd >= 0)
			close(a[i].fd);
	return winner >= 0 ? 0 : -EHOSTUNREACH;
}

static void *run_search(void *context)
{
	struct search *s = context;
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list = NULL;
	int rc = getaddrinfo(s->host, s->port, &hints, &list);
	if (rc != 0) {
		(void)error_set(&s->why, -EHOSTUNREACH, "%.80s: %s", s->host, gai_strerror(rc));
		finish(s, -EHOSTUNREACH);
	} else {
		rc = try_all(s, list);
		freeaddrinfo(list);
		finish(s, rc);
	}
	leave(s);
	return NULL;
}

struct search *search_new(const char *address)
{
	struct search *s = alloc_new(sizeof(*s));
	pthread_attr_t attributes;
	pthread_t thread;
	if (!address_split(address, s->host, s->port)) {
		free(s);
		return NULL;
	}
	pthread_mutex_init(&s->lock, NULL);
	s->users = 2;
	s->until_us = clock_monotonic_us() + SEARCH_MOST_MS * 1000;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attributes, run_search, s) != 0) {
		s->users = 1;
		leave(s);
		s = NULL;
	}
	pthread_attr_destroy(&attributes);
	return s;
}

int search_result(struct search *s, char address[LINK_ADDRESS_SIZE], struct error *why)
{
	pthread_mutex_lock(&s->lock);
	int rc = s->done ? s->rc : -EAGAIN;
	if (rc == 0)
		memcpy(address, s->found, sizeof(s->found));
	else if (s->done)
		*why = s->why;
	pthread_mutex_unlock(&s->lock);
	if (rc == -EAGAIN && clock_monotonic_us() > s->until_us)
		return error_set(why, -EHOSTUNREACH, "%.80s: the name service does not answer",
			s->host);
	return rc;
}

void search_free(struct search *s)
{
	if (s != NULL)
		leave(s);
}
