/* outside.c - checks the addresses that an agent of this machine would announce. Only another
 * machine can test whether these addresses can be reached. In a run, the controller lets the
 * agents test one another's addresses, and `skippipe doctor RUN` reports the result. */
#include "doctor/outside.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/address.h"

/* Tries for a moment to listen at an address of this family. */
static int try_listen(int family, const void *at, socklen_t size)
{
	const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, off = 0;
	int rc = 0;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, at, size) < 0 || listen(fd, 1) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

/* Tries for a moment to listen at the port on all interfaces, as an agent does: at [::], or at
 * 0.0.0.0 if the kernel has no IPv6. */
static int try_port(uint16_t port)
{
	const struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int rc = try_listen(AF_INET6, &v6, sizeof(v6));

	return rc == -EAFNOSUPPORT ? try_listen(AF_INET, &v4, sizeof(v4)) : rc;
}

void outside_look(struct outside *o)
{
	*o = (struct outside){ .port = OUTSIDE_PORT };
	o->mapped = reach_mapped(0, OUTSIDE_PORT, &o->mapping);
	if (o->mapped)
		o->port = o->mapping.inside;
	o->n_own = reach_own(o->port, o->own, OUTSIDE_OWN);
	o->bind_error = try_port(o->port);
}

/* Returns true if machines on the internet cannot dial the address, because it is a private
 * address (RFC 1918), a carrier's shared address (RFC 6598), or a loopback, link-local or unique
 * local address. */
static bool is_private(const char *address)
{
	char host[LINK_ADDRESS_SIZE], port[8];
	struct in6_addr v6;
	struct in_addr v4;

	if (!address_split(address, host, port))
		return true;
	if (inet_pton(AF_INET, host, &v4) == 1) {
		const uint32_t a = ntohl(v4.s_addr);

		return a >> 24 == 10 || a >> 20 == 0xac1 || a >> 16 == 0xc0a8 || a >> 24 == 127 ||
		       a >> 16 == 0xa9fe || a >> 22 == 0x191;
	}
	return inet_pton(AF_INET6, host, &v6) != 1 || (v6.s6_addr[0] & 0xfe) == 0xfc ||
	       IN6_IS_ADDR_LINKLOCAL(&v6) || IN6_IS_ADDR_LOOPBACK(&v6);
}

static void check_port(struct findings *f, const struct outside *o)
{
	if (o->bind_error == 0)
		return;
	finding_add(f, "address", FINDING_WARNING, "no agent can listen at port %u now: %s",
		    o->port, strerror(-o->bind_error));
	finding_remedy(f, "%s",
		       o->bind_error == -EADDRINUSE
			       ? "if another program than an agent has the port, give the agent "
				 "--listen tcp://[::]:PORT with a free one"
			       : "give the agent --listen tcp://[::]:PORT with a port that this "
				 "user may use");
}

void outside_check(struct findings *f, const struct outside *o)
{
	const char *open = NULL;

	check_port(f, o);
	for (unsigned i = 0; i < o->n_own && !open; i++)
		open = is_private(o->own[i]) ? NULL : o->own[i];
	if (o->mapped) {
		finding_add(f, "address", FINDING_OK, "a provider maps port %u to %.100s", o->port,
			    o->mapping.outside);
	} else if (open) {
		finding_add(f, "address", FINDING_OK, "%.100s", open);
	} else if (o->n_own == 0) {
		finding_add(f, "address", FINDING_ERROR, "no interface has an address");
		finding_remedy(f, "connect the machine or container to a network");
	} else {
		finding_add(f, "address", FINDING_WARNING,
			    "this machine has only private addresses (%.100s), and no provider "
			    "maps port %u",
			    o->own[0], o->port);
		finding_remedy(f,
			       "if other agents are not in this network: let the provider or "
			       "router forward a port to %u here, and give the agent --advertise "
			       "tcp://OUTSIDE:PORT",
			       o->port);
	}
}
