/* reach.h - finds out at which addresses other machines can reach a port of this one.
 *
 * Providers of rented containers map a container's ports to other ports of an address that many
 * containers share, and tell the container in variables of its environment:
 *
 *     VAST_TCP_PORT_7701=40123   with PUBLIC_IPADDR      (docs.vast.ai, Networking & Ports)
 *     RUNPOD_TCP_PORT_7701=10030 with RUNPOD_PUBLIC_IP   (docs.runpod.io, Expose ports)
 *
 * Both providers use a number of 70000 or more for a port that is the same inside and outside: the
 * value is this port. A shell over ssh often lacks the variables, so those of process 1 are read
 * too.
 */
#ifndef WIRE_REACH_H
#define WIRE_REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/sessions/link.h"

struct reach_mapping {
	uint16_t inside;                 /* port of this container at which to listen */
	char outside[LINK_ADDRESS_SIZE]; /* tcp://ADDRESS:PORT at which others reach that port */
};

/* Finds a mapping in an environment: `size` bytes of variables that end with NUL. inside: the port
 * at which the process listens. 0: any mapped port will do, preferably `otherwise`, but no port
 * that the provider itself uses. Returns false if no mapping is found. */
bool reach_in_environment(const char *block, size_t size, uint16_t inside, uint16_t otherwise,
			  struct reach_mapping *out);
/* Finds a mapping in the environment of this process, or of process 1. */
bool reach_mapped(uint16_t inside, uint16_t otherwise, struct reach_mapping *out);

/* The addresses at which other machines dial this process. */
struct reach {
	char address[LINK_ADDRESS_SIZE]; /* address for all machines */
	/* Addresses for machines behind the same outside address, with spaces between them;
	 * "": none. */
	char inside[2 * LINK_ADDRESS_SIZE];
};

/* Chooses these addresses for a process that listens at `bound`: the address that the operator has
 * given (NULL: none); or `bound`, unless it stands for all interfaces; or a provider's mapping, or
 * the address `seen` (a host as the controller sees it; "": not known) with the same port, or this
 * machine's own. */
void reach_choose(const char *bound, const char *seen, const char *given, struct reach *out);

/* Asks the listener at `address` from where this process's connections come
 * (wire/sessions/accept.h). Waits for at most `wait_ms`, and for the name service. The answer is
 * not authenticated. Returns false if there is no answer. */
bool reach_seen(const char *address, int wait_ms, char host[LINK_ADDRESS_SIZE]);

/* Gives the routed addresses of this machine's interfaces with this port, at most `most`. Returns
 * their number. */
unsigned reach_own(uint16_t port, char (*out)[LINK_ADDRESS_SIZE], unsigned most);

#endif
