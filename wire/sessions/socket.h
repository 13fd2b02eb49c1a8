/* socket.h - one raw nanomsg socket. This module hides the peculiarities of nanomsg:
 *
 * A listener is a raw REP socket, a dialer a raw REQ socket (link.h gives the reasons). If a
 * connection is still busy with the previous frame, a send on REP drops the new frame and reports
 * success. A send on REQ fails with EAGAIN in this case, and also while nothing is connected. If a
 * received frame lacks a valid SP header, receive returns EAGAIN although more frames may be
 * waiting, so the caller must poll again.
 *
 * A dialer may have several connections to its address. Each frame uses any free connection, so
 * frames arrive in any order.
 *
 * nanomsg sets the buffer sizes of every connection. This turns off the kernel's automatic sizes,
 * and a connection can then have at most net.core.wmem_max (some 200 KB) under way. Therefore
 * this folder defines its own setsockopt. The dynamic linker prefers this function to the C
 * library's, also for calls from nanomsg. This setsockopt does not forward calls with two sizes
 * that only this module passes, so the kernel chooses the size. It forwards all other calls to
 * the kernel. If the linker prefers the C library's function, buffers have fixed sizes, but
 * everything else works.
 *
 * nanomsg first tries every send and receive in the caller's thread. nanomsg's own thread gets
 * only the bytes that the kernel refuses. An event loop would therefore copy whole frames of a
 * MiB. To prevent this, this folder defines its own sendmsg and recvmsg. While socket_send or
 * socket_receive calls nanomsg, these functions refuse large copies with EAGAIN, and nanomsg's
 * thread then makes the copies. If the linker prefers the C library's functions, the caller's
 * thread makes the copies, but everything else works.
 *
 * nanomsg does not read the zone of a link-local IPv6 address (wire/address.h). This module
 * therefore gives nanomsg an address that contains the interface's number. The bind and connect of
 * this module turn such an address into the form that the kernel expects.
 */
#ifndef WIRE_SOCKET_H
#define WIRE_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/sessions/link.h"

/* Identifies a connection: the listener's number for it, and the dialer's SP word. */
struct socket_route {
	uint8_t bytes[8];
};

struct socket {
	int nn; /* nanomsg's socket; -1: closed */
	bool listens;
	/* The n_endpoints endpoints of a dialer in nanomsg, one for each connection; -1:
	 * missing. */
	int endpoints[LINK_CONNECTIONS_MOST];
	unsigned n_endpoints;
	char address[LINK_ADDRESS_SIZE];
	uint16_t port; /* port that a listener is bound to; 0: none */
	/* The fields below are used by socket_repair. */
	bool received; /* a frame has arrived since the last call of socket_repair */
	/* Number of broken connections for which socket_repair need not do anything. */
	uint64_t broken_accepted;
	/* Number of broken connections at the last call of socket_repair. */
	uint64_t broken_seen;
	/* time from which all connections have been open; 0: some connections are not open */
	int64_t stable_since_us;
	/* Length of the next pause before redialing; 0: the connections work. */
	int64_t pause_us;
	int64_t paused_until_us; /* end of a pause without connections; 0: no pause */
};

/* Opens a listener. frame_most: size of the longest accepted frame, bytes. A longer frame ends
 * its connection. post_listen explains `address`, `bound` and the errors. */
int socket_listen(struct socket *s, const char *address, char *bound, size_t frame_most,
	struct error *err);
/* Opens a dialer. connections: number of connections, at most LINK_CONNECTIONS_MOST. bulk: true
 * to tune the connections for large messages that can wait. */
int socket_dial(struct socket *s, const char *address, unsigned connections, bool bulk,
	size_t frame_most, struct error *err);
/* Returns true if the address is on this machine: an ipc path, or a loopback address. */
bool socket_is_near(const char *address);
/* Adds connections to a dialer until their number is `connections`, or until nanomsg lacks
 * memory. New connections connect in the background. */
void socket_widen(struct socket *s, unsigned connections);
void socket_close(struct socket *s);
/* Redials a dialer whose connections keep breaking. Call socket_repair a few times a second.
 *
 * If a connection breaks while received bytes are unread, nanomsg 1.1.5 takes these bytes for the
 * start of the next connection. nanomsg then closes that connection as invalid, and repeats this
 * forever. Therefore this function counts how many connections have broken since the connections
 * last worked. If this number exceeds the number of connections, this function redials all
 * connections. If the new connections break too, this function redials after pauses that double
 * from 0.2 to 4 s. */
void socket_repair(struct socket *s, int64_t now_us);
/* Ends the connections of a listener that have received nothing for silent_ms milliseconds. Does
 * nothing while connections take at most half of the descriptors that they may take. Call this
 * function every few seconds. Returns the number of ended connections. */
unsigned socket_end_silent(const struct socket *s, int64_t silent_ms);
/* Closes and reopens all connections of a dialer. */
void socket_redial(struct socket *s);
/* Redials at another address, which is numeric. A dialer whose target is a name connects only
 * after this call. */
void socket_redirect(struct socket *s, const char *address);

/* Returns a descriptor to poll for POLLIN only; never read from it. */
int socket_read_fd(const struct socket *s);
/* Returns a descriptor to poll for POLLIN only; -1 for a listener. */
int socket_write_fd(const struct socket *s);

/* Gives the number of connections that are open now, and the number of connections that have
 * ended so far. */
void socket_connections(const struct socket *s, uint64_t *now, uint64_t *broken);

/* Allocates a frame in nanomsg's memory. NULL: out of memory. */
uint8_t *socket_frame(size_t size);
void socket_frame_free(void *frame); /* NULL is allowed */

/* Sends the frame and always frees it. route: the connection to use; a dialer ignores it. Returns
 * 0, or -EAGAIN if the socket has no room. */
int socket_send(struct socket *s, const struct socket_route *route, uint8_t *frame);
/* Receives the next frame. The caller frees *frame with socket_frame_free. -EAGAIN: no frame is
 * waiting. */
int socket_receive(struct socket *s, struct socket_route *route, uint8_t **frame, size_t *size);

#endif
