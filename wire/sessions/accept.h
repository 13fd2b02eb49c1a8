/* accept.h - limits the connections that strangers can hold open.
 *
 * nanomsg accepts every connection. Each connection occupies a file descriptor, and a process
 * without free descriptors cannot write a plan, open the store or dial a peer. Therefore this
 * folder defines its own accept4. The dynamic linker prefers it to the C library's, also for
 * nanomsg's calls (socket.h does the same with setsockopt). This accept4 forwards every call, and
 * closes at once a connection that would take one of the descriptors in reserve. If the linker
 * prefers the C library's function, the process merely has no reserve.
 *
 * A connection closed in this way may belong to an honest peer, which dials again by itself. To
 * keep a place for that peer, the listener ends silent connections when there are many.
 *
 * A process behind a router cannot know its outside address. Therefore a connection whose first
 * bytes are ACCEPT_QUESTION is answered with the address from which it comes, as text with a
 * newline, and closed. nanomsg never sees it. Such a question costs a listener less than any other
 * stranger does. The answer reveals only what the router of the asking machine knows.
 */
#ifndef WIRE_ACCEPT_H
#define WIRE_ACCEPT_H

#include <stdint.h>

#define ACCEPT_QUESTION "skippipe: from where?\n"

/* Returns the number of descriptors that connections may take: the process's limit minus the
 * reserve. */
uint64_t accept_most(void);
/* Returns the lowest limit of open files that leaves this many descriptors to connections. */
uint64_t accept_limit_for(uint64_t descriptors);

/* Ends the connections accepted at this TCP port that received nothing for silent_ms. Their peers
 * may dial again. This costs some system calls for each open file. Returns the number of ended
 * connections. */
unsigned accept_end_silent(uint16_t port, int64_t silent_ms);

#endif
