/* reach.h - finds out at which addresses other machines can reach a port of this machine.
 *
 * Many rented containers share one address. The provider maps each container's ports to other
 * ports of this address, and names the mapping in variables of the container's environment:
 *
 *     VAST_TCP_PORT_7701=40123   with PUBLIC_IPADDR      (docs.vast.ai, Networking & Ports)
 *     RUNPOD_TCP_PORT_7701=10030 with RUNPOD_PUBLIC_IP   (docs.runpod.io, Expose ports)
 *
 * In both providers' variables, a number of 70000 or more means that the port is the same inside
 * and outside: the value is this port. A shell over ssh often lacks the variables, so this module
 * also reads the environment of process 1.
 */
#ifndef WIRE_REACH_H
#define WIRE_REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/sessions/link.h"

struct reach_mapping {
	uint16_t inside;                 /* port of this container at which to listen */
	/* tcp://ADDRESS:PORT at which other machines reach the port `inside`. */
	char outside[LINK_ADDRESS_SIZE];
};

/* Finds a port mapping in an environment: `size` bytes of variables that each end with NUL. Returns
 * false if there is none.
 *
 * inside: the port at which the process listens. 0: any mapped port suits, except the ports that
 * the provider itself uses. The port `otherwise` then suits best. */
bool reach_in_environment(const char *block, size_t size, uint16_t inside, uint16_t otherwise,
			  struct reach_mapping *out);
/* Finds a mapping in the environment of this process, or of process 1. */
bool reach_mapped(uint16_t inside, uint16_t otherwise, struct reach_mapping *out);

/* The addresses at which other machines dial this process. */
struct reach {
	char address[LINK_ADDRESS_SIZE]; /* address for all machines */
	/* Addresses for machines with the same public address, separated by spaces; "": none. */
	char inside[2 * LINK_ADDRESS_SIZE];
};

/* Chooses the addresses of a process that listens at `bound`. The address for all machines is the
 * first known address in this list:
 *
 * `given`, from the operator (NULL: none); `bound`, unless it stands for all interfaces; the
 * address of a provider's mapping; `seen` with the port of `bound`; an address of this machine.
 * seen: the host as the controller sees it; "": unknown. */
void reach_choose(const char *bound, const char *seen, const char *given, struct reach *out);

/* Asks the listener at `address` which address this process's connections come from
 * (wire/sessions/accept.h). Waits for the name service, and then for at most `wait_ms`
 * milliseconds. Returns false if there is no answer. Anybody on the network can forge the
 * answer. */
bool reach_seen(const char *address, int wait_ms, char host[LINK_ADDRESS_SIZE]);

/* Gives the routed addresses of this machine's interfaces, each with this port. Gives at most
 * `most` addresses and returns their number. */
unsigned reach_own(uint16_t port, char (*out)[LINK_ADDRESS_SIZE], unsigned most);

#endif
