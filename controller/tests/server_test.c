/* server_test.c - real clients of the HTTP server: clients that scrape, clients that are silent,
 * and clients that send nonsense. The test calls the server as the controller's loop does. */
#include "controller/monitor/server.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/tests/test.h"
#include "controller/monitor/fetch.h"
#include "controller/monitor/report.h"
#include "controller/tests/views.h"

enum { MOST = 1 << 20, ANSWER = 4096, SILENT = 16 };

/* The system's resolver, except that the name "two" has two addresses. The first one belongs to no
 * machine (RFC 5737). */
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		struct addrinfo **out)
{
	int (*resolve)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
	struct addrinfo *first = NULL;
	bool is_two = host && strcmp(host, "two") == 0;
	int rc;

	*(void **)&resolve = dlsym(RTLD_NEXT, "getaddrinfo");
	rc = is_two ? resolve("192.0.2.1", port, hints, &first) : 0;
	if (rc == 0)
		rc = resolve(is_two ? "127.0.0.1" : host, port, hints, out);
	if (rc != 0 || !is_two)
		return rc;
	first->ai_next = *out;
	*out = first;
	return 0;
}

TEST(a_name_may_have_an_address_of_another_machine)
{
	struct server *s = NULL;
	struct error err = { "" };

	assert_int_equal(server_open(&s, "two:0", &err), 0);
	assert_int_equal(strncmp(server_address(s), "127.0.0.1:", 10), 0);
	server_close(s);
	assert_int_equal(server_open(&s, "192.0.2.1:0", &err), -EADDRNOTAVAIL);
	assert_non_null(strstr(err.text, "192.0.2.1:0: "));
}

static struct server *begin(bool has_view)
{
	struct server *s = NULL;
	struct error err = { "" };

	assert_int_equal(server_open(&s, "0", &err), 0);
	if (has_view) {
		views_fill(server_next_view(s));
		while (!server_publish(s))
			usleep(1000);
	}
	return s;
}

/* Connects to the server and sends it the text. */
static int connect_raw(const struct server *s, const char *text, size_t size)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons(
					  (uint16_t)atoi(strrchr(server_address(s), ':') + 1)) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	while (size > 0) {
		ssize_t n = send(fd, text, size, MSG_NOSIGNAL);

		if (n <= 0)
			break; /* the server has closed the connection */
		text += n;
		size -= (size_t)n;
	}
	return fd;
}

/* Reads the beginning of an answer; "" if the server closes the connection without an answer. */
static void read_raw(int fd, char answer[ANSWER])
{
	ssize_t n = recv(fd, answer, ANSWER - 1, 0);

	answer[n > 0 ? n : 0] = '\0';
	close(fd);
}

static void ask_raw(const struct server *s, const char *request, char answer[ANSWER])
{
	read_raw(connect_raw(s, request, strlen(request)), answer);
}

static int fetch(const struct server *s, const char *path, char **page)
{
	struct error err = { "" };
	size_t size;

	*page = NULL;
	return fetch_page(server_address(s), path, MOST, TEST_PATIENCE_US, page, &size, &err);
}

TEST(pages_are_served_once_there_is_a_view)
{
	struct server *s = begin(false);
	json_t *status = NULL;
	char *page;

	assert_int_equal(strncmp(server_address(s), "127.0.0.1:", 10), 0);
	assert_int_equal(fetch(s, "/metrics", &page), -EBADMSG);
	views_fill(server_next_view(s));
	while (!server_publish(s))
		usleep(1000);
	assert_int_equal(fetch(s, "/metrics", &page), 0);
	assert_non_null(strstr(page, "\nskippipe_iteration 41\n"));
	free(page);
	views_fill(server_next_view(s));
	server_next_view(s)->status.committed = 42;
	while (!server_publish(s))
		usleep(1000);
	assert_int_equal(fetch(s, "/metrics", &page), 0);
	assert_non_null(strstr(page, "\nskippipe_iteration 42\n"));
	free(page);
	assert_int_equal(fetch(s, "/status", &page), 0);
	assert_int_equal(report_read(&status, page, strlen(page), NULL), 0);
	assert_int_equal(report_health(status), VIEW_DEGRADED);
	json_decref(status);
	free(page);
	server_close(s);
}

TEST(a_client_chooses_the_format)
{
	struct server *s = begin(true);
	char answer[ANSWER];

	ask_raw(s,
		"HEAD /metrics HTTP/1.1\r\nHost: x\r\nAccept: "
		"application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n\r\n",
		answer);
	assert_non_null(strstr(answer, " 200 "));
	assert_non_null(strstr(answer, "application/openmetrics-text; version=1.0.0"));
	ask_raw(s, "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n", answer);
	assert_non_null(strstr(answer, "text/plain; version=0.0.4"));
	ask_raw(s, /* the weight 0 refuses a format (RFC 9110, 12.4.2) */
		"HEAD /metrics HTTP/1.1\r\nHost: x\r\nAccept: */*, "
		"application/openmetrics-text; version=1.0.0; q=0\r\n\r\n",
		answer);
	assert_non_null(strstr(answer, "text/plain; version=0.0.4"));
	ask_raw(s,
		"HEAD /metrics HTTP/1.1\r\nHost: x\r\nAccept: text/plain;q=0, "
		"application/openmetrics-text;q=0.1\r\n\r\n",
		answer);
	assert_non_null(strstr(answer, "application/openmetrics-text; version=1.0.0"));
	server_close(s);
}

TEST(health_fails_once_the_loop_stands_still)
{
	struct server *s = begin(true);
	char answer[ANSWER];
	static const char request[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";

	server_turn(s, clock_monotonic_us());
	ask_raw(s, request, answer);
	assert_non_null(strstr(answer, " 200 "));
	server_turn(s, clock_monotonic_us() - 60000000);
	ask_raw(s, request, answer);
	assert_non_null(strstr(answer, " 503 "));
	/* When the loop hangs, the server must not serve its last view as the present state. */
	ask_raw(s, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", answer);
	assert_non_null(strstr(answer, " 503 "));
	ask_raw(s, "GET /status HTTP/1.1\r\nHost: x\r\n\r\n", answer);
	assert_non_null(strstr(answer, " 503 "));
	server_close(s);
}

TEST(other_requests_are_refused)
{
	struct server *s = begin(true);
	char answer[ANSWER], *page, *huge = malloc(MOST);

	ask_raw(s, "GET /etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", answer);
	assert_non_null(strstr(answer, " 404 "));
	ask_raw(s, "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nabc",
		answer);
	assert_non_null(strstr(answer, " 405 "));
	ask_raw(s, "\x16\x03\x01 no HTTP\r\n\r\n", answer);
	assert_null(strstr(answer, " 200 "));
	memset(huge, 'x', MOST);
	memcpy(huge, "GET /metrics HTTP/1.1\r\nX: ", 26);
	read_raw(connect_raw(s, huge, MOST), answer);
	assert_null(strstr(answer, " 200 "));
	free(huge);
	assert_int_equal(fetch(s, "/metrics", &page), 0);
	free(page);
	server_close(s);
}

TEST(silent_clients_hold_their_places_for_a_limited_time_and_never_the_loop)
{
	struct server *s = begin(true);
	int silent[SILENT];
	char byte, *page;

	for (int i = 0; i < SILENT; i++)
		silent[i] = connect_raw(s, "GET /metrics HT", 15);
	views_fill(server_next_view(s));
	while (!server_publish(s))
		usleep(1000);
	/* The server may accept a connection only after this turn, so the test takes several
	 * turns. */
	for (int i = 0; i < SILENT; i++) {
		ssize_t n;

		do
			server_turn(s, clock_monotonic_us() + 60000000);
		while ((n = recv(silent[i], &byte, 1, MSG_DONTWAIT)) < 0 && errno == EAGAIN &&
		       usleep(1000) == 0);
		close(silent[i]);
	}
	while (fetch(s, "/metrics", &page) != 0)
		usleep(1000);
	free(page);
	server_close(s);
}

TEST(an_address_that_cannot_be_used_is_an_error)
{
	struct server *s = begin(false), *second = NULL;
	struct error err = { "" };

	assert_int_equal(server_open(&second, server_address(s), &err), -EADDRINUSE);
	assert_int_equal(server_open(&second, "here", &err), -EINVAL);
	assert_non_null(strstr(err.text, "HOST:PORT"));
	assert_int_equal(server_open(&second, "70000", &err), -EINVAL);
	server_close(s);
}
