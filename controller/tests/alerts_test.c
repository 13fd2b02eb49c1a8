/* alerts_test.c - alerts reach real commands, and a web server that the test runs. */
#include "controller/monitor/alerts.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/process/command.h"
#include "base/tests/test.h"
#include "wire/msg.h"

enum { TEXT = 8192 };

static char folder[] = "/tmp/skippipe-alerts-XXXXXX";

static struct alerts *begin(const char *command, const char *url, int64_t limit_us)
{
	const struct alerts_options o = { command, url, "a run", folder, limit_us };
	struct alerts *a = NULL;
	struct error err = { "" };

	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(alerts_start(&a, &o, &err), 0);
	return a;
}

static void end(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

static struct msg_see_note alert(const char *text, int node)
{
	struct msg_see_note n = {
		.kind = NOTE_ALERT, .iteration = 7, .node = node, .wall_us = 1000000
	};

	snprintf(n.text, sizeof(n.text), "%s", text);
	return n;
}

static struct alerts_count counts_of(struct alerts *a)
{
	struct alerts_count n;

	alerts_count(a, &n);
	return n;
}

/* Waits until n calls of the command have ended. */
static void wait_for_calls(struct alerts *a, uint64_t n)
{
	const int64_t until_us = clock_monotonic_us() + TEST_PATIENCE_US;

	while (counts_of(a).delivered + counts_of(a).failed < n) {
		assert_true(clock_monotonic_us() < until_us);
		usleep(1000);
	}
}

TEST(a_command_finds_the_alert_in_its_environment)
{
	struct alerts *a =
		begin("env | grep ^SKIPPIPE_ALERT_ | sort >\"$SKIPPIPE_ALERT_RUN_DIR/heard\"", NULL,
		      TEST_PATIENCE_US);
	struct msg_see_note n = alert("n03 S1 $(no command) 'quoted'", 3);
	char path[96], expected[512], *text;
	size_t size;

	alerts_raise(a, &n, 1);
	wait_for_calls(a, 1);
	assert_int_equal(counts_of(a).delivered, 1);
	alerts_stop(a, TEST_PATIENCE_US);
	snprintf(path, sizeof(path), "%s/heard", folder);
	snprintf(expected, sizeof(expected),
		 "SKIPPIPE_ALERT_DROPPED=0\nSKIPPIPE_ALERT_ITERATION=7\n"
		 "SKIPPIPE_ALERT_KIND=alert\nSKIPPIPE_ALERT_NODE=n03\nSKIPPIPE_ALERT_RUN=a run\n"
		 "SKIPPIPE_ALERT_RUN_DIR=%s\n"
		 "SKIPPIPE_ALERT_TEXT=n03 S1 $(no command) 'quoted'\n"
		 "SKIPPIPE_ALERT_TIME=1970-01-01T00:00:01.000Z\n",
		 folder);
	assert_int_equal(file_read(path, TEXT, &text, &size, NULL), 0);
	assert_string_equal(text, expected);
	free(text);
	end();
}

TEST(alerts_beyond_the_limit_are_dropped_and_counted)
{
	struct alerts *a = begin("echo $SKIPPIPE_ALERT_DROPPED >>$SKIPPIPE_ALERT_RUN_DIR/heard",
				 NULL, TEST_PATIENCE_US);
	struct msg_see_note n = alert("again", -1);
	char path[96], *text;
	size_t size;

	for (int i = 0; i < 50; i++)
		alerts_raise(a, &n, 1);
	assert_int_equal(counts_of(a).dropped, 30);
	alerts_raise(a, &n, 20000000); /* the rate limit allows one more alert by now */
	alerts_stop(a, TEST_PATIENCE_US);
	snprintf(path, sizeof(path), "%s/heard", folder);
	assert_int_equal(file_read(path, TEXT, &text, &size, NULL), 0);
	assert_int_equal(size, 20 * 2 + 3);
	assert_string_equal(text + 40, "30\n");
	free(text);
	end();
}

TEST(a_failure_is_reported_once_a_minute)
{
	struct alerts *a = begin("exit 3", NULL, TEST_PATIENCE_US);
	struct msg_see_note n = alert("again", -1);
	struct error why;
	uint64_t failed = 0;

	assert_false(alerts_failed(a, 1, &failed, &why));
	alerts_raise(a, &n, 1);
	alerts_raise(a, &n, 1);
	wait_for_calls(a, 2);
	assert_true(alerts_failed(a, 1, &failed, &why));
	assert_int_equal(failed, 2);
	assert_string_equal(why.text, "the command of --on-alert failed with exit status 3");
	alerts_raise(a, &n, 2);
	wait_for_calls(a, 3);
	assert_false(alerts_failed(a, 2, &failed, &why));
	assert_true(alerts_failed(a, 60000002, &failed, &why));
	assert_int_equal(failed, 1);
	alerts_stop(a, TEST_PATIENCE_US);
	end();
}

TEST(a_command_that_hangs_is_killed_and_never_holds_the_end)
{
	struct alerts *a = begin("trap '' TERM; sleep 1000; sleep 1000", NULL, 50000);
	struct msg_see_note n = alert("again", -1);
	struct error why;
	uint64_t failed;

	alerts_raise(a, &n, 1);
	wait_for_calls(a, 1);
	assert_true(alerts_failed(a, 1, &failed, &why));
	assert_non_null(strstr(why.text, "was killed"));
	alerts_stop(a, 0);
	end();
	a = begin("trap '' TERM; sleep 1000; sleep 1000", NULL, TEST_PATIENCE_US);
	alerts_raise(a, &n, 1);
	alerts_stop(a, 1000);
	end();
}

/* Takes one request, answers it, and copies its text to `request`. */
static void serve_one(int listening, const char *answer, char request[TEXT])
{
	int fd = accept(listening, NULL, NULL);
	size_t n = 0;
	ssize_t got = 1;

	while (got > 0 && n + 1 < TEXT && (n == 0 || request[n - 1] != '}')) {
		got = recv(fd, request + n, TEXT - 1 - n, 0);
		n += got > 0 ? (size_t)got : 0;
	}
	request[n] = '\0';
	assert_true(send(fd, answer, strlen(answer), MSG_NOSIGNAL) > 0);
	close(fd);
}

static int listen_here(char url[96])
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 4), 0);
	getsockname(fd, (struct sockaddr *)&at, &size);
	snprintf(url, 96, "http://127.0.0.1:%u/hook?secret=1", ntohs(at.sin_port));
	return fd;
}

TEST(a_url_gets_the_alert_as_json)
{
	char url[96], request[TEXT];
	struct msg_see_note n = alert("n03 \"quoted\" \\ \xc3\xa9", 3);
	int listening = listen_here(url);
	struct alerts *a;
	struct error why = { "" };
	uint64_t failed;

	if (!command_is_installed("curl"))
		skip();
	a = begin(NULL, url, TEST_PATIENCE_US);
	alerts_raise(a, &n, 1);
	serve_one(listening, "HTTP/1.0 204 No Content\r\n\r\n", request);
	assert_int_equal(strncmp(request, "POST /hook?secret=1 HTTP/1.", 27), 0);
	assert_non_null(strstr(request, "ontent-") && strstr(request, "application/json") ? request
											  : NULL);
	assert_non_null(strstr(request, "\"text\":\"n03 \\\"quoted\\\" \\\\ \\u00E9\""));
	assert_non_null(strstr(request, "\"node\":\"n03\",\"iteration\":7,\"run\":\"a run\""));
	wait_for_calls(a, 1);
	assert_int_equal(counts_of(a).delivered, 1);
	alerts_raise(a, &n, 1);
	serve_one(listening, "HTTP/1.0 500 Broken\r\n\r\n", request);
	wait_for_calls(a, 2);
	assert_true(alerts_failed(a, 1, &failed, &why));
	assert_non_null(strstr(why.text, "curl for --alert-url failed with exit status 22"));
	assert_null(strstr(why.text, "secret"));
	alerts_stop(a, TEST_PATIENCE_US);
	close(listening);
	end();
}

TEST(a_url_of_another_kind_is_refused)
{
	struct alerts_options o = { NULL, "ftp://127.0.0.1/", "", "", 1 };
	struct alerts *a = NULL;
	struct error err = { "" };

	assert_int_equal(alerts_start(&a, &o, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--alert-url: expected http://"));
	o.url = "@/nowhere/at/all";
	assert_int_equal(alerts_start(&a, &o, &err), -ENOENT);
}
