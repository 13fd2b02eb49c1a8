/* search.c - resolves names and tries their addresses, in a thread. A new attempt starts every
 * 250 ms, or as soon as all attempts have failed. The first attempt that succeeds ends the search
 * (as in RFC 8305). A dead first address therefore costs only a quarter of a second. */
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

/* Limit of the number of addresses that are tried. If no attempt fails early, there is no time
 * within SEARCH_MOST_MS to try more addresses. */
#define ADDRESSES_MOST (SEARCH_MOST_MS / NEXT_MS)
#define TARGETS_MOST 8
#define NEXT_MS        250
/* Time in which an address must answer. This time suffices for a long round trip and a lost
 * packet. */
#define ANSWER_MS 1000
#define NAME_CHARACTERS \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._"

/* A search, shared by its thread and its owner. The last of the two to leave frees the search. */
struct search {
	pthread_mutex_t lock;
	unsigned users;
	bool resolved; /* the name service has answered */
	bool done;
	int rc;
	struct target {
		char host[LINK_ADDRESS_SIZE], port[8];
	} targets[TARGETS_MOST]; /* the n targets in the order in which they are tried */
	unsigned n;
	char found[LINK_ADDRESS_SIZE];
	struct error why;
	int64_t until_us;
};

/* An address that belongs to a target. */
struct candidate {
	const struct addrinfo *to;
	const struct target *of;
};

/* An attempt to connect to one address. */
struct attempt {
	const struct target *of;
	int fd;    /* descriptor of the attempt; -1: it has failed */
	int cause; /* errno with which the attempt failed; 0: no answer yet */
	char text[INET6_ADDRSTRLEN + IF_NAMESIZE]; /* the address, with its zone if it has one */
	bool v6;
};

bool search_is_name(const char *address)
{
	char host[LINK_ADDRESS_SIZE], port[8];
	unsigned char number[sizeof(struct in_addr)];
	if (strchr(address, ' ') != NULL && strstr(address, " tcp://") != NULL)
		return strncmp(address, "tcp://", 6) == 0;
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

static void begin_attempt(struct attempt *a, const struct candidate *c)
{
	const struct addrinfo *to = c->to;
	a->of = c->of;
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

/* Returns true if the attempt has succeeded. Closes the attempt if it has failed. */
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
	size_t used = 0;
	for (unsigned i = 0; i < n && used < sizeof(text); i++) {
		if (i == 0 || a[i].of != a[i - 1].of)
			used += (size_t)snprintf(text + used, sizeof(text) - used,
						 "%s%.80s port %s", i == 0 ? "" : "; ",
						 a[i].of->host, a[i].of->port);
		if (used < sizeof(text))
			used += (size_t)snprintf(
				text + used, sizeof(text) - used, "%s %s: %s",
				i == 0 || a[i].of != a[i - 1].of ? ":" : ";", a[i].text,
				a[i].cause != 0 ? strerror(a[i].cause) : "no answer");
	}
	(void)error_set(&s->why, -EHOSTUNREACH, "%s", text);
}

/* Waits until the state of an attempt changes, but for at most `ms` milliseconds. */
static void wait_for_any(const struct attempt *a, unsigned n, int ms)
{
	struct pollfd p[ADDRESSES_MOST];
	for (unsigned i = 0; i < n; i++)
		p[i] = (struct pollfd){.fd = a[i].fd, .events = POLLOUT};
	poll(p, n, ms);
}

/* Tries the addresses until an address accepts a connection. If no address does so, the error
 * says why. If the name service left too little time for the addresses, the error blames the name
 * service. */
static int try_all(struct search *s, const struct candidate *list, unsigned n_list)
{
	struct attempt a[ADDRESSES_MOST];
	unsigned n = 0, open = 0;
	int winner = -1;
	int64_t next_us = 0;
	const bool late = clock_monotonic_us() > s->until_us - ANSWER_MS * 1000;
	do {
		const int64_t now_us = clock_monotonic_us();
		if (n < n_list && (open == 0 || now_us >= next_us)) {
			begin_attempt(&a[n], &list[n]);
			n++;
			next_us = now_us + NEXT_MS * 1000;
		}
		wait_for_any(a, n, n < n_list ? NEXT_MS / 5 : NEXT_MS);
		open = 0;
		for (unsigned i = 0; winner < 0 && i < n; i++) {
			if (is_connected(&a[i]))
				winner = (int)i;
			open += a[i].fd >= 0;
		}
	} while (winner < 0 && clock_monotonic_us() < s->until_us && (open > 0 || n < n_list));
	if (winner >= 0)
		snprintf(s->found, sizeof(s->found), a[winner].v6 ? "tcp://[%s]:%s" : "tcp://%s:%s",
			 a[winner].text, a[winner].of->port);
	else if (late && (open > 0 || n < n_list))
		(void)error_set(&s->why, -EHOSTUNREACH, "%.80s: the name service answers too late",
				s->targets[0].host);
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
	struct addrinfo *lists[TARGETS_MOST] = { NULL };
	struct candidate all[ADDRESSES_MOST];
	unsigned n = 0;
	int rc = 0;
	for (unsigned i = 0; i < s->n; i++) {
		const struct target *t = &s->targets[i];
		rc = getaddrinfo(t->host, t->port, &hints, &lists[i]);
		if (rc != 0) {
			lists[i] = NULL;
			(void)error_set(&s->why, -EHOSTUNREACH, "%.80s: %s", t->host,
					gai_strerror(rc));
		}
		for (const struct addrinfo *at = lists[i]; at != NULL && n < ADDRESSES_MOST;
		     at = at->ai_next)
			all[n++] = (struct candidate){ at, t };
	}
	pthread_mutex_lock(&s->lock);
	s->resolved = true;
	pthread_mutex_unlock(&s->lock);
	finish(s, n == 0 ? -EHOSTUNREACH : try_all(s, all, n));
	for (unsigned i = 0; i < s->n; i++) {
		if (lists[i] != NULL)
			freeaddrinfo(lists[i]);
	}
	leave(s);
	return NULL;
}

/* Splits `text` into targets. If one of the targets is `last`, puts this target at the end. */
static void read_targets(struct search *s, const char *text, const char *last)
{
	for (int pass = 0; pass < 2; pass++) {
		for (const char *at = text; *at != 0;) {
			char one[LINK_ADDRESS_SIZE];
			const size_t length = strcspn(at, " ");
			snprintf(one, sizeof(one), "%.*s", (int)length, at);
			if ((strcmp(one, last) == 0) == (pass == 1) && s->n < TARGETS_MOST &&
			    address_split(one, s->targets[s->n].host, s->targets[s->n].port))
				s->n++;
			at += length;
			at += strspn(at, " ");
		}
	}
}

struct search *search_new(const char *target, const char *last)
{
	struct search *s = alloc_new(sizeof(*s));
	pthread_attr_t attributes;
	pthread_t thread;
	read_targets(s, target, last);
	if (s->n == 0) {
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
	/* True: the name service has answered, and the thread itself keeps to the time limit. */
	bool resolved = s->resolved;
	if (rc == 0)
		memcpy(address, s->found, sizeof(s->found));
	else if (s->done)
		*why = s->why;
	pthread_mutex_unlock(&s->lock);
	if (rc == -EAGAIN && !resolved && clock_monotonic_us() > s->until_us)
		return error_set(why, -EHOSTUNREACH, "%.80s: the name service does not answer",
				 s->targets[0].host);
	return rc;
}

void search_free(struct search *s)
{
	if (s != NULL)
		leave(s);
}
