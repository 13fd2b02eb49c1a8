/* search.h - finds an address at which a listener can be reached, or the reason why there is none.
 *
 * A target is tcp://HOST:PORT. Several targets may be given, separated by spaces, in the order in
 * which they are to be tried. nanomsg resolves a name once, to IPv4 or to IPv6 only, and does not
 * report why it cannot connect. A search resolves the name to both families and tries to connect
 * to each address in turn. A search takes at most SEARCH_MOST_MS. A search runs in its own
 * thread, because the system's resolver blocks. */
#ifndef WIRE_SEARCH_H
#define WIRE_SEARCH_H

#include <stdbool.h>

#include "base/error.h"
#include "wire/sessions/link.h"

#define SEARCH_MOST_MS 4000

struct search; /* opaque */

/* Returns true if a search must find the address to connect to, because HOST is a name or there
 * are several targets. */
bool search_is_name(const char *address);
/* Starts a search for the targets. last: a target to be tried last, because the listener there
 * accepts connections but is not the peer; "": none. Returns NULL if no thread can be started, or
 * if `target` contains no address. */
struct search *search_new(const char *target, const char *last);
/* Returns 0 and the first address that accepted a connection, in numbers. Returns -EAGAIN while
 * the search runs. Returns -EHOSTUNREACH if no address accepted a connection; `why` then names
 * the host, and the cause for each address. */
int search_result(struct search *s, char address[LINK_ADDRESS_SIZE], struct error *why);
void search_free(struct search *s); /* abandons a running search; NULL is allowed */

#endif
