/* address.c - reads addresses, and adds and removes the zones of link-local addresses
 * (address.h). */
#include "wire/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHOICES_SIZE 100 /* bytes for the interface names in an error message */

static bool is_port(const char *text)
{
	const size_t digits = strspn(text, "0123456789");
	return digits >= 1 && digits <= 5 && text[digits] == 0 && atoi(text) <= 65535;
}

bool address_split(const char *address, char host[LINK_ADDRESS_SIZE], char port[8])
{
	const char *from = address + 6, *colon = strrchr(address, ':');
	if (strncmp(address, "tcp://", 6) != 0 || colon == NULL || colon < from ||
	    !is_port(colon + 1) || strlen(address) >= LINK_ADDRESS_SIZE)
		return false;
	size_t size = (size_t)(colon - from);
	if (size >= 2 && from[0] == '[' && from[size - 1] == ']') {
		from++;
		size -= 2;
	}
	memcpy(host, from, size);
	host[size] = 0;
	strcpy(port, colon + 1);
	return true;
}

static bool is_own_v4(uint32_t host_order)
{
	return host_order >> 24 == IN_LOOPBACKNET || host_order == INADDR_ANY;
}

static bool is_own_number(const struct sockaddr *at)
{
	if (at->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)at;
		return is_own_v4(ntohl(v4->sin_addr.s_addr));
	}
	const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)at)->sin6_addr;
	if (IN6_IS_ADDR_V4MAPPED(v6)) {
		uint32_t v4;
		memcpy(&v4, v6->s6_addr + 12, sizeof(v4));
		return is_own_v4(ntohl(v4));
	}
	return IN6_IS_ADDR_LOOPBACK(v6) || IN6_IS_ADDR_UNSPECIFIED(v6);
}

bool address_is_own(const char *address)
{
	static const char local[] = ".localhost";
	const struct addrinfo numbers = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
	char host[LINK_ADDRESS_SIZE], port[8];
	struct addrinfo *found = NULL;
	if (!address_split(address, host, port))
		return false;
	const size_t size = strlen(host), tail = sizeof(local) - 1;
	if (strcmp(host, "*") == 0 || strcasecmp(host, local + 1) == 0 ||
	    (size > tail && strcasecmp(host + size - tail, local) == 0))
		return true;
	if (getaddrinfo(host, NULL, &numbers, &found) != 0)
		return false;
	const bool own = is_own_number(found->ai_addr);
	freeaddrinfo(found);
	return own;
}

bool address_is_here(const char *address)
{
	const struct addrinfo numbers = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM};
	char host[LINK_ADDRESS_SIZE], port[8];
	struct addrinfo *found = NULL;
	if (!address_split(address, host, port) || getaddrinfo(host, NULL, &numbers, &found) != 0)
		return false;
	/* Tries to bind a socket to the address. The kernel allows this only if an interface of
	 * this machine has the address. */
	const int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const bool here = fd >= 0 && bind(fd, found->ai_addr, found->ai_addrlen) == 0;
	if (fd >= 0)
		close(fd);
	freeaddrinfo(found);
	return here;
}

void address_zone(char zone[LINK_ADDRESS_SIZE], const char *address)
{
	char host[LINK_ADDRESS_SIZE], port[8];
	const char *percent = address_split(address, host, port) ? strchr(host, '%') : NULL;
	strcpy(zone, percent == NULL ? "" : percent + 1);
}

void address_announced(char out[LINK_ADDRESS_SIZE], const char *address)
{
	const char *percent = strchr(address, '%'), *bracket = strrchr(address, ']');
	const bool zoned = strncmp(address, "tcp://[", 7) == 0 && percent != NULL &&
		bracket != NULL && percent < bracket;
	if (zoned)
		snprintf(out, LINK_ADDRESS_SIZE, "%.*s%s", (int)(percent - address), address,
			bracket);
	else
		snprintf(out, LINK_ADDRESS_SIZE, "%s", address);
}

/* Reads a link-local address into *number, without its zone. Returns false if the address is of
 * another kind. */
static bool read_link_local(const char *address, struct in6_addr *number, char port[8])
{
	char host[LINK_ADDRESS_SIZE];
	if (!address_split(address, host, port))
		return false;
	host[strcspn(host, "%")] = 0;
	return inet_pton(AF_INET6, host, number) == 1 && IN6_IS_ADDR_LINKLOCAL(number);
}

static bool has_link_local(const struct ifaddrs *i)
{
	const struct sockaddr_in6 *at = (const struct sockaddr_in6 *)(const void *)i->ifa_addr;
	return at != NULL && at->sin6_family == AF_INET6 && (i->ifa_flags & IFF_LOOPBACK) == 0 &&
		(i->ifa_flags & IFF_UP) != 0 && IN6_IS_ADDR_LINKLOCAL(&at->sin6_addr);
}

/* Finds the interfaces that are up and have a link-local address. If there is exactly one such
 * interface, writes its name to `only` and returns true. Always writes the names of all such
 * interfaces to `choices`, for an error message. */
static bool find_interface(char only[LINK_ADDRESS_SIZE], char choices[CHOICES_SIZE])
{
	struct ifaddrs *list = NULL;
	unsigned n = 0;
	size_t used = 0;
	choices[0] = only[0] = 0;
	if (getifaddrs(&list) < 0)
		return false;
	for (const struct ifaddrs *i = list; i != NULL; i = i->ifa_next) {
		if (!has_link_local(i) || strcmp(i->ifa_name, only) == 0)
			continue;
		snprintf(only, LINK_ADDRESS_SIZE, "%s", i->ifa_name);
		if (used < CHOICES_SIZE)
			used += (size_t)snprintf(choices + used, CHOICES_SIZE - used, "%s%s",
				n > 0 ? ", " : "", i->ifa_name);
		n++;
	}
	freeifaddrs(list);
	return n == 1;
}

int address_with_zone(char out[LINK_ADDRESS_SIZE], const char *address, const char *zone,
	struct error *err)
{
	struct in6_addr number;
	char port[8], given[LINK_ADDRESS_SIZE], only[LINK_ADDRESS_SIZE], choices[CHOICES_SIZE];
	char host[INET6_ADDRSTRLEN];
	snprintf(out, LINK_ADDRESS_SIZE, "%s", address);
	address_zone(given, address);
	if (given[0] != 0 || !read_link_local(address, &number, port))
		return 0;
	if (zone[0] == 0 && !find_interface(only, choices))
		return error_set(err, -EINVAL,
			"%.80s is link-local, and the interface that leads to it is not known "
			"(candidates: %s): give --join or --listen with a zone, as in "
			"tcp://[fe80::1%%eth0]:7700, or --advertise a routed address there",
			address, choices[0] != 0 ? choices : "none");
	inet_ntop(AF_INET6, &number, host, sizeof(host));
	if (snprintf(out, LINK_ADDRESS_SIZE, "tcp://[%s%%%s]:%s", host,
		    zone[0] != 0 ? zone : only, port) >= LINK_ADDRESS_SIZE)
		return error_set(err, -EINVAL, "%.80s: the address is too long", address);
	return 0;
}

/* Returns the number of the interface that the zone names; 0: this machine has no such interface. A
 * zone is the interface's name or its number in decimal digits. */
static unsigned interface_number(const char *zone)
{
	char *end, name[IF_NAMESIZE];
	const unsigned named = if_nametoindex(zone);
	if (named != 0)
		return named;
	const unsigned long number = strtoul(zone, &end, 10);
	return zone[0] >= '0' && zone[0] <= '9' && *end == 0 && number <= INT32_MAX &&
		if_indextoname((unsigned)number, name) != NULL ? (unsigned)number : 0;
}

int address_for_nanomsg(char out[LINK_ADDRESS_SIZE], const char *address, struct error *err)
{
	struct in6_addr number;
	char port[8], zone[LINK_ADDRESS_SIZE], host[INET6_ADDRSTRLEN];
	snprintf(out, LINK_ADDRESS_SIZE, "%s", address);
	if (!read_link_local(address, &number, port))
		return 0;
	address_zone(zone, address);
	if (zone[0] == 0)
		return error_set(err, -EINVAL,
			"%.80s is link-local and needs the name of its interface, as in "
			"tcp://[fe80::1%%eth0]:7700", address);
	const uint32_t index = htonl(interface_number(zone));
	if (index == 0)
		return error_set(err, -ENODEV, "%.80s: this machine has no interface %s", address,
			zone);
	memcpy(number.s6_addr + 2, &index, sizeof(index));
	inet_ntop(AF_INET6, &number, host, sizeof(host));
	snprintf(out, LINK_ADDRESS_SIZE, "tcp://[%s]:%s", host, port);
	return 0;
}
