/* socket.h - one raw nanomsg socket, and all that is odd about nanomsg.
 *
 * Listening is raw REP, dialing raw REQ (the reasons are in link.h). What was found out about
 * them: sending on REP to a connection that is still busy with the last frame drops the frame and
 * reports success; sending on REQ says EAGAIN then, and before there is a connection. A received
 * frame without a valid SP header makes receive say EAGAIN though more may be waiting: poll again.
 *
 * A dialer may have several connections to its address. Frames go by whichever is free, in turn,
 * and so arrive in any order.
 *
 * nanomsg sets the buffers of every connection, and with that the kernel's own choice of them is
 * off: what it can have under way is then bounded by net.core.wmem_max, some 200 KB. So this folder
 * has a setsockopt of its own, which the dynamic linker prefers to the C library's also for nanomsg's
 * calls. It passes everything on but two sizes, which only this module asks for, and which say: leave
 * it to the kernel. A process in which it is not preferred has fixed buffers and nothing worse.
 */
#ifndef WIRE_SOCKET_H
#define WIRE_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/sessions/link.h"

/* Which connection: the listener's number of it, and the dialer's SP word. */
struct socket_route {
	uint8_t bytes[8];
};

struct socket {
	int nn; /* -1: closed */
	bool listens;
	int endpoints[LINK_CONNECTIONS_MOST]; /* (n_endpoints) a dialer's; -1: none */
	unsigned n_endpoints;
	char address[LINK_ADDRESS_SIZE];
	uint16_t port;    /* a listener's; 0: it has none */
	bool heard;       /* a frame came since it was last looked at */
	uint64_t broken;  /* connections, when all was well */
	uint64_t seen;    /* broken ones when last looked at, */
	int64_t since_us; /* and no other has broken, and all were there, since; 0 not so */
};

/* frame_most: longest frame taken; longer ones cut the connection they came by. For the address,
 * the bound one and the errors see post_listen. */
int socket_listen(struct socket *s, const char *address, char *bound, size_t frame_most,
	struct error *err);
/* connections: at most LINK_CONNECTIONS_MOST. bulk: for what can wait, and is much. */
int socket_dial(struct socket *s, const char *address, unsigned connections, bool bulk,
	size_t frame_most, struct error *err);
/* Whether it leads to this machine: a path, or an address of its own loop. */
bool socket_is_near(const char *address);
/* Gives a dialer so many connections, if it has fewer; they come to be by themselves. As many as it gets where
 * there is no memory. */
void socket_widen(struct socket *s, unsigned connections);
void socket_close(struct socket *s);
/* To be called now and then. Where a connection breaks before all that came by it was taken, nanomsg 1.1.5 takes
 * the rest for the beginning of the next one, which it ends for that, and so for ever: where one must have broken
 * twice and all was never well meanwhile, this dials anew. */
void socket_mend(struct socket *s, int64_t now_us);
/* To be called now and then, of a listener: where connections are more than half of what there is room for, those by
 * which nothing came for so long are ended. Returns how many. */
unsigned socket_end_silent(const struct socket *s, int64_t silent_ms);
/* Dials anew at once: nothing gets through. */
void socket_redial(struct socket *s);

int socket_read_fd(const struct socket *s);  /* poll for POLLIN only; never read */
int socket_write_fd(const struct socket *s); /* likewise POLLIN; says nothing for a listener */

/* Connections now, and those that ended. */
void socket_connections(const struct socket *s, uint64_t *now, uint64_t *broken);

/* Frames live in nanomsg's own memory. NULL when out of memory. */
uint8_t *socket_frame(size_t size);
void socket_frame_free(void *frame); /* NULL is allowed */

/* Takes the frame, whatever happens. route is not used by a dialer. 0 or -EAGAIN. */
int socket_send(struct socket *s, const struct socket_route *route, uint8_t *frame);
/* Gives *frame (socket_frame_free). -EAGAIN. */
int socket_receive(struct socket *s, struct socket_route *route, uint8_t **frame, size_t *size);

#endif
