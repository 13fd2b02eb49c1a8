/* reach.c - reads the port mappings of cloud providers, and the addresses of this machine's
 * interfaces (reach.h). */
#include "wire/reach.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/address.h"
#include "wire/sessions/accept.h"

#define ENVIRONMENT_MOST (256 << 10)
/* If the number in a variable's name is SAME_FROM or more, this number is not a port. The port
 * inside the container then equals the outside port, which is the variable's value. */
#define SAME_FROM 70000

extern char **environ;

static const struct provider {
	const char *port, *address;
} providers[] = {
	{ "VAST_TCP_PORT_", "PUBLIC_IPADDR" },
	{ "RUNPOD_TCP_PORT_", "RUNPOD_PUBLIC_IP" },
};

/* Ports that programs in the providers' container images use: ssh, web portals, Jupyter,
 * TensorBoard, Syncthing. */
static const uint16_t taken[] = { 22, 1111, 6006, 8080, 8384, 8888 };

static bool is_taken(unsigned long port)
{
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		if (taken[i] == port)
			return true;
	}
	return false;
}

/* Returns the value of a variable in an environment block; NULL: it is not set, or is empty. */
static const char *value_of(const char *block, const char *end, const char *name)
{
	const size_t n = strlen(name);
	for (const char *at = block; at < end; at += strlen(at) + 1) {
		if (strncmp(at, name, n) == 0 && at[n] == '=' && at[n + 1] != 0)
			return at + n + 1;
	}
	return NULL;
}

/* Parses "NUMBER=PORT", which follows the prefix in a provider's variable. */
static bool read_mapping(const char *text, uint16_t *inside, uint16_t *outside)
{
	char *end;
	const unsigned long number = strtoul(text, &end, 10);
	if (end == text || *end != '=')
		return false;
	const char *value = end + 1;
	const unsigned long port = strtoul(value, &end, 10);
	if (end == value || *end != 0 || port == 0 || port > UINT16_MAX || number == 0)
		return false;
	if (number > UINT16_MAX && number < SAME_FROM)
		return false;
	*inside = (uint16_t)(number >= SAME_FROM ? port : number);
	*outside = (uint16_t)port;
	return true;
}

/* Returns true if the container's port `inside` suits better than the port `best` (0: no port was
 * found yet). wanted: the only port that suits; 0: any port suits, but `otherwise` suits best. */
static bool is_better(uint16_t inside, uint16_t best, uint16_t wanted, uint16_t otherwise)
{
	if (wanted != 0)
		return inside == wanted;
	if (is_taken(inside) || best == otherwise)
		return false;
	return best == 0 || inside == otherwise || inside < best;
}

bool reach_in_environment(const char *block, size_t size, uint16_t inside, uint16_t otherwise,
			  struct reach_mapping *out)
{
	const char *end = block + size;
	uint16_t best = 0;
	if (size == 0 || end[-1] != 0)
		return false;
	for (size_t i = 0; best == 0 && i < sizeof(providers) / sizeof(providers[0]); i++) {
		const char *host = value_of(block, end, providers[i].address);
		const size_t n = strlen(providers[i].port);
		for (const char *at = block; host != NULL && at < end; at += strlen(at) + 1) {
			char address[LINK_ADDRESS_SIZE], named[LINK_ADDRESS_SIZE], port[8];
			uint16_t in, to;
			if (strncmp(at, providers[i].port, n) != 0 ||
			    !read_mapping(at + n, &in, &to) ||
			    !is_better(in, best, inside, otherwise))
				continue;
			const int length = snprintf(address, sizeof(address),
						    strchr(host, ':') != NULL ? "tcp://[%s]:%u"
									      : "tcp://%s:%u",
						    host, to);
			if (length >= (int)sizeof(address) || !address_split(address, named, port))
				continue;
			best = out->inside = in;
			memcpy(out->outside, address, sizeof(address));
		}
	}
	return best != 0;
}

/* Copies this process's environment into one block. Returns the block's size. */
static size_t own_environment(char *block)
{
	size_t size = 0;
	for (char **at = environ; *at != NULL; at++) {
		const size_t n = strlen(*at) + 1;
		if (n > ENVIRONMENT_MOST - size)
			continue;
		memcpy(block + size, *at, n);
		size += n;
	}
	return size;
}

static size_t first_process_environment(char *block)
{
	const int fd = open("/proc/1/environ", O_RDONLY | O_CLOEXEC);
	size_t size = 0;
	ssize_t n = 1;
	while (fd >= 0 && n > 0 && size < ENVIRONMENT_MOST - 1) {
		n = read(fd, block + size, ENVIRONMENT_MOST - 1 - size);
		size += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0)
		close(fd);
	block[size] = 0;
	return size == 0 ? 0 : size + 1;
}

bool reach_mapped(uint16_t inside, uint16_t otherwise, struct reach_mapping *out)
{
	char *block = malloc(ENVIRONMENT_MOST);
	if (block == NULL)
		return false;
	bool found = reach_in_environment(block, own_environment(block), inside, otherwise, out);
	if (!found)
		found = reach_in_environment(block, first_process_environment(block), inside,
					     otherwise, out);
	/* The environment may contain secrets. */
	sodium_memzero(block, ENVIRONMENT_MOST);
	free(block);
	return found;
}

static bool is_routed(const struct ifaddrs *i)
{
	if (i->ifa_addr == NULL || (i->ifa_flags & IFF_UP) == 0 ||
	    (i->ifa_flags & IFF_LOOPBACK) != 0)
		return false;
	if (i->ifa_addr->sa_family == AF_INET)
		return true;
	if (i->ifa_addr->sa_family != AF_INET6)
		return false;
	return !IN6_IS_ADDR_LINKLOCAL(
		&((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr);
}

unsigned reach_own(uint16_t port, char (*out)[LINK_ADDRESS_SIZE], unsigned most)
{
	struct ifaddrs *list = NULL;
	unsigned n = 0;
	if (getifaddrs(&list) < 0)
		return 0;
	for (const struct ifaddrs *i = list; i != NULL && n < most; i = i->ifa_next) {
		char host[128];
		if (!is_routed(i))
			continue;
		const bool v6 = i->ifa_addr->sa_family == AF_INET6;
		const socklen_t size =
			(socklen_t)(v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
		if (getnameinfo(i->ifa_addr, size, host, sizeof(host), NULL, 0, NI_NUMERICHOST) ==
		    0)
			snprintf(out[n++], LINK_ADDRESS_SIZE, v6 ? "tcp://[%s]:%u" : "tcp://%s:%u",
				 host, port);
	}
	freeifaddrs(list);
	return n;
}

static bool is_every_interface(const char *host)
{
	return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "*") == 0 || strcmp(host, "::") == 0;
}

void reach_choose(const char *bound, const char *seen, const char *given, struct reach *out)
{
	char host[LINK_ADDRESS_SIZE], port[8], own[2][LINK_ADDRESS_SIZE];
	struct reach_mapping mapping;
	*out = (struct reach){ .inside = "" };
	snprintf(out->address, sizeof(out->address), "%s", given != NULL ? given : bound);
	if (!address_split(bound, host, port) || !is_every_interface(host))
		return;
	const uint16_t number = (uint16_t)atoi(port);
	const unsigned n = reach_own(number, own, 2);
	for (unsigned i = 0; i < n; i++)
		snprintf(out->inside + strlen(out->inside),
			 sizeof(out->inside) - strlen(out->inside), "%s%s", i == 0 ? "" : " ",
			 own[i]);
	if (given != NULL)
		return;
	if (reach_mapped(number, number, &mapping))
		memcpy(out->address, mapping.outside, sizeof(out->address));
	else if (seen[0] != 0)
		snprintf(out->address, sizeof(out->address),
			 strchr(seen, ':') != NULL ? "tcp://[%s]:%s" : "tcp://%s:%s", seen, port);
	else if (n > 0)
		memcpy(out->address, own[0], sizeof(out->address));
	if (strcmp(out->address, out->inside) == 0)
		out->inside[0] = 0;
}

static bool wait_for(int fd, short events, int64_t until_us)
{
	struct pollfd p = { .fd = fd, .events = events };
	const int64_t left_us = until_us - clock_monotonic_us();
	return left_us > 0 && poll(&p, 1, (int)(left_us / 1000) + 1) > 0;
}

/* Reads one line from the connection. Returns true if the line is a numeric address and no
 * loopback address. */
static bool read_host(int fd, int64_t until_us, char host[LINK_ADDRESS_SIZE])
{
	char text[80], url[LINK_ADDRESS_SIZE];
	size_t size = 0;
	while (size < sizeof(text) - 1 && memchr(text, '\n', size) == NULL) {
		const ssize_t n = wait_for(fd, POLLIN, until_us)
					  ? recv(fd, text + size, sizeof(text) - 1 - size, 0)
					  : -1;
		if (n <= 0)
			return false;
		size += (size_t)n;
	}
	text[size] = 0;
	text[strcspn(text, "\n")] = 0;
	if (text[0] == 0 || text[strspn(text, "0123456789abcdef.:")] != 0)
		return false;
	snprintf(url, sizeof(url), strchr(text, ':') != NULL ? "tcp://[%s]:1" : "tcp://%s:1", text);
	if (address_is_own(url))
		return false;
	snprintf(host, LINK_ADDRESS_SIZE, "%s", text);
	return true;
}

static bool ask_one(const struct addrinfo *to, int64_t until_us, char host[LINK_ADDRESS_SIZE])
{
	static const char question[] = ACCEPT_QUESTION;
	int cause = 0;
	socklen_t size = sizeof(cause);
	const int fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	(void)connect(fd, to->ai_addr, to->ai_addrlen); /* the result is read with SO_ERROR below */
	const bool found = wait_for(fd, POLLOUT, until_us) &&
			   getsockopt(fd, SOL_SOCKET, SO_ERROR, &cause, &size) == 0 && cause == 0 &&
			   send(fd, question, sizeof(question) - 1, MSG_NOSIGNAL) > 0 &&
			   read_host(fd, until_us, host);
	close(fd);
	return found;
}

bool reach_seen(const char *address, int wait_ms, char out[LINK_ADDRESS_SIZE])
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	char host[LINK_ADDRESS_SIZE], port[8];
	struct addrinfo *list = NULL;
	bool found = false;
	if (!address_split(address, host, port) || getaddrinfo(host, port, &hints, &list) != 0)
		return false;
	const int64_t until_us = clock_monotonic_us() + (int64_t)wait_ms * 1000;
	for (const struct addrinfo *at = list; at != NULL && !found; at = at->ai_next)
		found = ask_one(at, until_us, out);
	freeaddrinfo(list);
	return found;
}
