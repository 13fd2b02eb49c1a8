/* address.h - addresses as text: tcp://HOST:PORT. HOST is a name, an IPv4 address, or an IPv6
 * address in brackets.
 *
 * A link-local IPv6 address (fe80::/10) is unique on one network only. It needs a zone, the name of
 * the interface that leads to this network: tcp://[fe80::1%eth0]:7700. Each machine has its own
 * names of interfaces, so a zone means nothing on another machine. A process announces its address
 * without the zone, and the process that dials it adds a zone of its own machine. */
#ifndef WIRE_ADDRESS_H
#define WIRE_ADDRESS_H

#include <stdbool.h>

#include "base/error.h"
#include "wire/sessions/link.h"

/* Splits tcp://HOST:PORT. Gives the host without its brackets. Returns false for anything else,
 * also if the port is no number up to 65535. */
bool address_split(const char *address, char host[LINK_ADDRESS_SIZE], char port[8]);
/* Returns true if the address means whichever machine reads it: a loopback address, the address of
 * all interfaces, or localhost. Names are not looked up. */
bool address_is_own(const char *address);
/* Returns true if an interface of this machine has the address. The address must be in numbers. */
bool address_is_here(const char *address);
/* Gives the zone of the address; "": it has none. */
void address_zone(char zone[LINK_ADDRESS_SIZE], const char *address);
/* Gives the address for other machines: without its zone. */
void address_announced(char out[LINK_ADDRESS_SIZE], const char *address);
/* Gives an announced address for this machine. A link-local address gets the given zone, or if the
 * zone is "", that of the only interface with such addresses. Other addresses are copied.
 * -EINVAL: several interfaces have such addresses; the error names them, and the address is
 * copied. */
int address_with_zone(char out[LINK_ADDRESS_SIZE], const char *address, const char *zone,
	struct error *err);
/* Gives the address for nanomsg, which has no zones: the number of the interface moves into the
 * address, in bits that are zero in every link-local address. The socket's own bind and connect
 * move it back (socket.c). -ENODEV: there is no such interface; -EINVAL: the zone is missing. */
int address_for_nanomsg(char out[LINK_ADDRESS_SIZE], const char *address, struct error *err);

#endif
