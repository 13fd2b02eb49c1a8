/* address.h - addresses as text: tcp://HOST:PORT. HOST is a name, an IPv4 address, or an IPv6
 * address in brackets.
 *
 * A link-local IPv6 address (fe80::/10) is unique on one network only. Such an address needs a
 * zone, which is the name of the interface that leads to this network: tcp://[fe80::1%eth0]:7700.
 * Each machine has its own names of interfaces, so a zone means nothing on another machine. A
 * process announces its address without the zone, and the process that dials it adds a zone of
 * its own machine. */
#ifndef WIRE_ADDRESS_H
#define WIRE_ADDRESS_H

#include <stdbool.h>

#include "base/error.h"
#include "wire/sessions/link.h"

/* Splits tcp://HOST:PORT into host and port, and removes the brackets of the host. Returns false
 * if the address has another form, or if the port is not a number up to 65535. */
bool address_split(const char *address, char host[LINK_ADDRESS_SIZE], char port[8]);
/* Returns true if each machine that uses the address would reach itself. This is true for a
 * loopback address, the address of all interfaces, and localhost. Other names are not resolved,
 * and give false. */
bool address_is_own(const char *address);
/* Returns true if an interface of this machine has the address. Names are not resolved, and give
 * false. */
bool address_is_here(const char *address);
/* Writes the zone of the address to `zone`; "": the address has no zone. */
void address_zone(char zone[LINK_ADDRESS_SIZE], const char *address);
/* Copies the address without its zone, because other machines cannot use the zone. */
void address_announced(char out[LINK_ADDRESS_SIZE], const char *address);
/* Turns an announced address into an address that this machine can dial. A link-local address
 * gets `zone`. If `zone` is "", the address gets the name of the only interface that has a
 * link-local address. Any other address is copied unchanged.
 *
 * -EINVAL: no interface or more than one interface has a link-local address. The error lists the
 * interfaces that have such an address. In this case `out` is an unchanged copy of the
 * address. */
int address_with_zone(char out[LINK_ADDRESS_SIZE], const char *address, const char *zone,
	struct error *err);
/* Turns a link-local address into a form that nanomsg, which has no zones, accepts. This function
 * writes the interface's number into bits of the address that are otherwise zero. This program
 * replaces the C library's bind and connect (socket.c). They remove the number from these bits
 * and give it to the kernel as the zone. Any other address is copied unchanged. -ENODEV: this
 * machine has no such interface; -EINVAL: the zone is missing. */
int address_for_nanomsg(char out[LINK_ADDRESS_SIZE], const char *address, struct error *err);

#endif
