/* accept.h - how many connections strangers may take up.
 *
 * nanomsg accepts whoever connects. Each connection is a file, and a process without files can write no
 * plan, open no store and dial nobody. So this folder has an accept4 of its own, which the dynamic linker
 * prefers to the C library's also for nanomsg's calls (as with setsockopt, socket.h): it passes everything on, but a
 * connection that would take one of the files kept in reserve is closed at once. A process in which it is
 * not preferred has no reserve and nothing worse.
 *
 * What is closed so may be an honest peer's, which comes again by itself. So that there is a place for
 * it then, connections that say nothing are ended where there are many.
 */
#ifndef WIRE_ACCEPT_H
#define WIRE_ACCEPT_H

#include <stdint.h>

/* Files of this process that connections may take up: its limit less the reserve. */
uint64_t accept_most(void);

/* Ends those accepted at this TCP port by which nothing came for so long; all of which may well come again.
 * Costs some system calls a file. Returns how many. */
unsigned accept_end_silent(uint16_t port, int64_t silent_ms);

#endif
