/* server.c - the pages, the limits of their clients, and the thread's callbacks.
 *
 * Two views take turns: the loop fills one view while the thread reads the other view. A lock
 * guards the exchange of the views, the pages made of the published view, and the list of
 * connections. The thread holds the lock while it makes a page (10 ms for 1,000 nodes). The loop
 * never waits for the lock.
 *
 * A connection carries one request and lives for at most 15 s. libmicrohttpd itself limits only
 * the time in which no byte arrives, so a client that sends a byte from time to time could hold
 * its connection for hours. */
#include "controller/monitor/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "controller/monitor/metrics.h"
#include "controller/monitor/report.h"
#include "controller/monitor/view.h"
#include "wire/address.h"

enum {
	CONNECTIONS = 32,
	CONNECTIONS_OF_HOST = 16,
	/* Bytes of memory for one connection's request line and headers */
	CONNECTION_BYTES = 16384,
	/* A connection that has received no byte for this many seconds is closed */
	SILENT_S = 5,
	LIFE_US = 15000000,
	LATE_US = 10000000, /* /healthz fails if the loop's last turn was this long ago */
	HEALTH_TEXT = 96
};

enum page { PAGE_METRICS, PAGE_OPEN_METRICS, PAGE_STATUS, PAGES };

struct connection {
	int fd; /* descriptor of the connection; -1: unused entry */
	int64_t since_us;
};

struct server {
	struct MHD_Daemon *daemon;
	char address[SERVER_ADDRESS];
	atomic_llong turned_us; /* time of the loop's newest turn */

	struct view views[2];
	pthread_mutex_t lock; /* guards all fields below */
	/* index of the view that clients see; the loop fills the other view */
	int published;
	bool has_view;
	/* Pages made of the published view; NULL: no client has asked for that page yet */
	struct MHD_Response *pages[PAGES];
	struct connection connections[CONNECTIONS];
};

/* ---- pages ---- */

static const char *const content_types[] = {
	[PAGE_METRICS] = "text/plain; version=0.0.4; charset=utf-8",
	[PAGE_OPEN_METRICS] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
	[PAGE_STATUS] = "application/json",
};

/* Makes a response of a text, and takes ownership of the text. */
static struct MHD_Response *make_response(char *text, size_t size, const char *type)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);

	if (!r) {
		free(text);
		return NULL;
	}
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
	return r;
}

static struct MHD_Response *make_page(const struct view *v, enum page page)
{
	size_t size = 0;
	char *text = page == PAGE_STATUS ? report_text(v, &size)
					 : metrics_text(v, page == PAGE_OPEN_METRICS, &size);

	return make_response(text, size, content_types[page]);
}

static void drop_pages(struct server *s)
{
	for (int i = 0; i < PAGES; i++) {
		if (s->pages[i])
			MHD_destroy_response(s->pages[i]);
		s->pages[i] = NULL;
	}
}

static enum MHD_Result answer_text(struct MHD_Connection *c, unsigned status, const char *text)
{
	struct MHD_Response *r =
		make_response(alloc_string(text), strlen(text), "text/plain; charset=utf-8");
	enum MHD_Result result;

	if (!r)
		return MHD_NO;
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return result;
}

static enum MHD_Result answer_page(struct server *s, struct MHD_Connection *c, enum page page)
{
	enum MHD_Result result = MHD_NO;
	bool has_view;

	pthread_mutex_lock(&s->lock);
	has_view = s->has_view;
	if (!s->pages[page] && has_view)
		s->pages[page] = make_page(&s->views[s->published], page);
	if (s->pages[page])
		result = MHD_queue_response(c, MHD_HTTP_OK, s->pages[page]);
	pthread_mutex_unlock(&s->lock);
	return has_view ? result : answer_text(c, MHD_HTTP_SERVICE_UNAVAILABLE, "the run starts\n");
}

static enum MHD_Result answer_health(struct server *s, struct MHD_Connection *c)
{
	int64_t late_us = clock_monotonic_us() - s->turned_us;
	char text[HEALTH_TEXT];

	if (late_us < LATE_US)
		return answer_text(c, MHD_HTTP_OK, "ok\n");
	snprintf(text, sizeof(text), "the controller's loop has not turned for %lld s\n",
		 (long long)(late_us / 1000000));
	return answer_text(c, MHD_HTTP_SERVICE_UNAVAILABLE, text);
}

/* Returns false if the client refuses the format in this entry of an Accept header, such as
 * "text/plain;q=0.5". The weight q=0 refuses a format. */
static bool is_accepted(const char *entry)
{
	for (const char *at = strchr(entry, ';'); at; at = strchr(at, ';')) {
		at += 1 + strspn(at + 1, " \t");
		if (strncasecmp(at, "q=", 2) == 0)
			return strtod(at + 2, NULL) > 0;
	}
	return true;
}

/* Returns true if the Accept header asks for OpenMetrics. accept: may be NULL. */
static bool wants_open_metrics(const char *accept)
{
	static const char format[] = "application/openmetrics-text";
	char entry[128];
	size_t n;

	for (; accept && *accept; accept += n + (accept[n] == ',')) {
		accept += strspn(accept, " \t");
		n = strcspn(accept, ",");
		snprintf(entry, sizeof(entry), "%.*s", (int)n, accept);
		if (strncasecmp(entry, format, sizeof(format) - 1) == 0)
			return is_accepted(entry);
	}
	return false;
}

/* Handles a request once its headers have arrived. A body is never read. */
static enum MHD_Result answer(void *user, struct MHD_Connection *c, const char *path,
			      const char *method, const char *version, const char *body,
			      size_t *body_size, void **request)
{
	struct server *s = user;
	/* If the loop hangs, its last view is not served, because a client would mistake the old
	 * view for the present state. */
	const bool is_late = clock_monotonic_us() - s->turned_us >= LATE_US;
	const char *accept;

	(void)version;
	(void)body;
	(void)body_size;
	(void)request;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return answer_text(c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
	if (strcmp(path, "/healthz") == 0 ||
	    (is_late && (strcmp(path, "/metrics") == 0 || strcmp(path, "/status") == 0)))
		return answer_health(s, c);
	accept = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	if (strcmp(path, "/metrics") == 0)
		return answer_page(s, c,
				   wants_open_metrics(accept) ? PAGE_OPEN_METRICS : PAGE_METRICS);
	if (strcmp(path, "/status") == 0)
		return answer_page(s, c, PAGE_STATUS);
	return answer_text(c, MHD_HTTP_NOT_FOUND, "there are /metrics, /status and /healthz\n");
}

/* ---- connections ---- */

static int fd_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);

	return info ? info->connect_fd : -1;
}

/* The descriptor of a listed connection is open, because libmicrohttpd closes it only after this
 * call. */
static void list_connection(void *user, struct MHD_Connection *c, void **of_connection,
			    enum MHD_ConnectionNotificationCode code)
{
	struct server *s = user;
	const int fd = fd_of(c);
	const int from = code == MHD_CONNECTION_NOTIFY_STARTED ? -1 : fd;

	(void)of_connection;
	pthread_mutex_lock(&s->lock);
	for (int i = 0; fd >= 0 && i < CONNECTIONS; i++) {
		if (s->connections[i].fd != from)
			continue;
		s->connections[i] =
			(struct connection){ from == -1 ? fd : -1, clock_monotonic_us() };
		break;
	}
	pthread_mutex_unlock(&s->lock);
}

void server_turn(struct server *s, int64_t now_us)
{
	s->turned_us = now_us;
	if (pthread_mutex_trylock(&s->lock) != 0)
		return;
	for (int i = 0; i < CONNECTIONS; i++)
		if (s->connections[i].fd >= 0 && now_us - s->connections[i].since_us > LIFE_US)
			shutdown(s->connections[i].fd, SHUT_RDWR);
	pthread_mutex_unlock(&s->lock);
}

/* ---- the views ---- */

struct view *server_next_view(struct server *s)
{
	/* No lock is needed to read `published`, because only the loop changes it */
	return &s->views[1 - s->published];
}

bool server_publish(struct server *s)
{
	if (pthread_mutex_trylock(&s->lock) != 0)
		return false;
	s->published = 1 - s->published;
	s->has_view = true;
	drop_pages(s);
	pthread_mutex_unlock(&s->lock);
	return true;
}

/* ---- opening ---- */

bool server_split(const char *address, char host[LINK_ADDRESS_SIZE], char port[8])
{
	char full[LINK_ADDRESS_SIZE];
	bool is_port = address[strspn(address, "0123456789")] == '\0';

	return snprintf(full, sizeof(full), "tcp://%s%s", is_port ? "127.0.0.1:" : "", address) <
		       LINK_ADDRESS_SIZE &&
	       address_split(full, host, port);
}

static int listen_on(const struct addrinfo *at)
{
	static const int yes = 1;
	int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
			at->ai_protocol);
	int rc;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, CONNECTIONS) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static void write_address(struct server *s, int fd)
{
	struct sockaddr_storage a = { .ss_family = AF_UNSPEC };
	socklen_t size = sizeof(a);
	char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";

	getsockname(fd, (struct sockaddr *)&a, &size);
	getnameinfo((struct sockaddr *)&a, size, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(s->address, sizeof(s->address),
		 strchr(host, ':') ? "[%.100s]:%.8s" : "%.100s:%.8s", host, port);
}

static int open_socket(struct server *s, const char *address, struct error *err)
{
	const struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
					.ai_socktype = SOCK_STREAM };
	char host[LINK_ADDRESS_SIZE], port[8];
	struct addrinfo *found = NULL;
	int fd, rc;

	if (!server_split(address, host, port))
		return error_set(err, -EINVAL, "expected PORT or HOST:PORT, got \"%s\"", address);
	rc = getaddrinfo(host, port, &hints, &found);
	if (rc != 0)
		return error_set(err, -EINVAL, "%s: %s", address, gai_strerror(rc));
	/* A host name may have several addresses, and this machine may lack some of them, for
	 * example the public address. */
	fd = -EADDRNOTAVAIL;
	for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next)
		fd = listen_on(at);
	freeaddrinfo(found);
	if (fd < 0)
		return error_set(err, fd, "%s: %s", address, strerror(-fd));
	write_address(s, fd);
	return fd;
}

int server_open(struct server **out, const char *address, struct error *err)
{
	struct server *s = alloc_new(sizeof(*s));
	int fd = open_socket(s, address, err);

	if (fd < 0) {
		free(s);
		return fd;
	}
	pthread_mutex_init(&s->lock, NULL);
	for (int i = 0; i < CONNECTIONS; i++)
		s->connections[i].fd = -1;
	s->turned_us = clock_monotonic_us();
	s->daemon = MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL, 0, NULL, NULL, answer, s,
		MHD_OPTION_LISTEN_SOCKET, (MHD_socket)fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)CONNECTIONS, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
		(unsigned)CONNECTIONS_OF_HOST, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENT_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
		MHD_OPTION_NOTIFY_CONNECTION, list_connection, s, MHD_OPTION_END);
	if (!s->daemon) {
		close(fd);
		pthread_mutex_destroy(&s->lock);
		free(s);
		return error_set(err, -ENOMEM, "%s: the server cannot be started", address);
	}
	*out = s;
	return 0;
}

void server_close(struct server *s)
{
	if (!s)
		return;
	MHD_stop_daemon(s->daemon);
	drop_pages(s);
	view_fini(&s->views[0]);
	view_fini(&s->views[1]);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

const char *server_address(const struct server *s)
{
	return s->address;
}
