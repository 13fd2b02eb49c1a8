/* search.h - finds an address at which a listener can be reached, or the reason why there is none.
 *
 * A target is tcp://HOST:PORT, or several of them with spaces between them, in the order in which
 * they are tried. nanomsg resolves a name once, in one family, and does not say why it cannot
 * connect. A search resolves the name in both families, and tries to connect to each address in
 * turn. It takes at most SEARCH_MOST_MS, in a thread of its own, because the system's resolver
 * blocks. */
#ifndef WIRE_SEARCH_H
#define WIRE_SEARCH_H

#include <stdbool.h>

#include "base/error.h"
#include "wire/sessions/link.h"

#define SEARCH_MOST_MS 4000

struct search; /* opaque */

/* Returns true if the address is tcp://HOST:PORT and HOST is a name, or if there are several
 * addresses. Only a search then finds the address to connect to. */
bool search_is_name(const char *address);
/* Starts a search for a target. last: one of its addresses, which is tried last because the
 * listener there is not the peer; "": none. Returns NULL if no thread can be started, or if the
 * target is no address. */
struct search *search_new(const char *target, const char *last);
/* Returns 0 and the first address that accepted a connection, as numbers; -EAGAIN while the search
 * runs; -EHOSTUNREACH with the name, each address and its cause. */
int search_result(struct search *s, char address[LINK_ADDRESS_SIZE], struct error *why);
void search_free(struct search *s); /* abandons a running search; NULL is allowed */

#endif
