/* server.h - serves finished pages over HTTP, in a thread of libmicrohttpd.
 *
 *     /metrics   Prometheus's text, or OpenMetrics if the client asks for it
 *     /status    the run as JSON (report.h)
 *     /healthz   200 while the loop turns, 503 if it has not turned for 10 s
 *
 * The loop never waits for a client. It publishes a view, and the thread makes a page of this view
 * when a client first asks for that page. The number, size and duration of connections are limited.
 * However many requests clients make, the thread makes at most one page of each kind for each
 * view. */
#ifndef CONTROLLER_MONITOR_SERVER_H
#define CONTROLLER_MONITOR_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/sessions/link.h"

struct server; /* opaque */
struct view;

enum { SERVER_ADDRESS = 128 };

/* Splits an address: HOST:PORT, or PORT alone, which means a port of the loopback address. Returns
 * false for anything else. */
bool server_split(const char *address, char host[LINK_ADDRESS_SIZE], char port[8]);
/* Opens the socket and starts the thread. address: as in server_split. Port 0: the system chooses a
 * port. If the socket cannot be opened, the error gives the cause. */
int server_open(struct server **out, const char *address, struct error *err);
/* s may be NULL. */
void server_close(struct server *s);
/* Returns the numeric address, such as "127.0.0.1:9464"; borrowed until server_close. */
const char *server_address(const struct server *s);
/* Returns the view that the loop fills for the next server_publish. The thread does not read this
 * view before then. */
struct view *server_next_view(struct server *s);
/* Publishes the filled view. After this, the loop fills the other view. Returns false if the
 * thread is making a page at this moment; the caller then tries again in its next turn. */
bool server_publish(struct server *s);
/* Called in each turn of the loop, so that /healthz can report that the loop runs. Closes
 * connections that are older than 15 s. Never waits. */
void server_turn(struct server *s, int64_t now_us);

#endif
