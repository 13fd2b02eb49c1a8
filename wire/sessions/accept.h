/* accept.h - limits the connections that strangers can hold open.
 *
 * nanomsg accepts every connection. Each connection occupies a file descriptor, and a process
 * without free descriptors cannot write a plan, open the store or dial a peer. Therefore this
 * folder defines its own accept4. The dynamic linker prefers this function to the C library's,
 * also for calls from nanomsg (socket.h does the same with setsockopt). This accept4 forwards
 * every call to the kernel. If the new connection has one of the descriptors in reserve, accept4
 * closes it at once. If the linker prefers the C library's function, the process has no reserve,
 * but everything else works.
 *
 * A connection that is closed in this way may belong to an honest peer. Such a peer dials again
 * by itself. When there are many connections, the listener ends the silent connections, so that
 * the honest peer finds a free descriptor.
 *
 * A process behind a router cannot know its outside address. Therefore a process may ask a
 * listener by sending ACCEPT_QUESTION as the first bytes of a connection. The listener answers
 * with the address from which the connection comes, and closes the connection. The answer is text
 * with a newline. nanomsg never sees this connection. A question costs a listener less than any
 * other connection of a stranger. The answer reveals only what the router of the asking machine
 * knows.
 */
#ifndef WIRE_ACCEPT_H
#define WIRE_ACCEPT_H

#include <stdint.h>

#define ACCEPT_QUESTION "skippipe: from where?\n"

/* Returns the number of descriptors that connections may take: the limit of open files minus the
 * reserve. */
uint64_t accept_most(void);
/* Returns the lowest limit of open files with which accept_most is at least `descriptors`. */
uint64_t accept_limit_for(uint64_t descriptors);

/* Looks at the connections that were accepted at this TCP port, and ends those that have received
 * nothing for silent_ms milliseconds. The peers may dial again. The call costs some system calls
 * for each open file. Returns the number of ended connections. */
unsigned accept_end_silent(uint16_t port, int64_t silent_ms);

#endif
