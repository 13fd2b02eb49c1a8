/* alerts.c - a queue of alerts, and the thread that calls the operator's command and the URL.
 *
 * The queue is a pipe. A write of at most PIPE_BUF bytes is written as a whole or fails at once,
 * so the loop needs no lock. The thread calls the URL with the program curl, which uses the
 * system's certificates, proxies and settings. The URL may contain a secret. The thread therefore
 * writes it to curl's input, because a process list shows curl's arguments. */
#include "controller/monitor/alerts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/process/command.h"
#include "base/timestamp.h"
#include "controller/run/rate_limit.h"
#include "wire/msg.h"

extern char **environ;

enum {
	AT_ONCE = 20,         /* largest number of alerts that are reported in one burst */
	REPORT_US = 60000000, /* time between two reports of failures */
	URL_MOST = 2048,
	CONFIG_MOST = 8192, /* limit of curl's input in bytes: the URL and the alert, escaped */
	LOOK_NS = 5000000
};
static const double alerts_per_s = 0.1;

/* An alert in the queue. */
struct raised {
	char text[sizeof(((struct msg_see_note *)0)->text)];
	uint8_t kind;
	int32_t node;
	uint64_t iteration;
	int64_t wall_us;
	uint64_t dropped; /* number of alerts dropped between the previous alert and this one */
};
_Static_assert(sizeof(struct raised) <= PIPE_BUF, "a write of an alert is whole");

struct alerts {
	char *command, *url, *run, *run_dir;
	int64_t limit_us;
	int queue[2];
	pthread_t thread;
	atomic_bool stopped, done;
	atomic_ullong delivered, failed;

	/* Only the controller's loop uses these fields. */
	struct rate_limit limit;
	uint64_t dropped, dropped_reported, failed_reported;
	int64_t report_us;

	pthread_mutex_t lock; /* guards `why` */
	struct error why;     /* reason of the newest failure */
};

/* ---- the thread ---- */

static void take_result(struct alerts *a, int rc, const char *what, const struct error *why)
{
	if (rc == 0) {
		a->delivered++;
		return;
	}
	pthread_mutex_lock(&a->lock);
	snprintf(a->why.text, sizeof(a->why.text), "%s %.400s", what, why->text);
	pthread_mutex_unlock(&a->lock);
	/* The reason is set before the count, so that a reader of a new count finds its reason */
	a->failed++;
}

static char *node_text(const struct raised *r, char text[16])
{
	text[0] = '\0';
	if (r->node >= 0)
		snprintf(text, 16, "n%02d", r->node);
	return text;
}

/* Runs the operator's command with the alert in its environment variables. */
static void call_command(struct alerts *a, const struct raised *r)
{
	enum { OWN = 8 };
	char node[16], at[TIMESTAMP_SIZE];
	char *const argv[] = { (char *)"sh", (char *)"-c", a->command, NULL };
	struct command c = {
		.argv = argv, .in = -1, .out = -1, .limit_us = a->limit_us, .stopped = &a->stopped
	};
	struct error why = { "" };
	size_t n = 0;
	char **environment;

	while (environ[n])
		n++;
	environment = alloc_array(n + OWN + 1, sizeof(*environment));
	memcpy(environment, environ, n * sizeof(*environment));
	timestamp_text(r->wall_us, at);
	c.environment = environment;
	environment[n] = alloc_format("SKIPPIPE_ALERT_KIND=%s", note_name(r->kind));
	environment[n + 1] = alloc_format("SKIPPIPE_ALERT_TEXT=%s", r->text);
	environment[n + 2] = alloc_format("SKIPPIPE_ALERT_NODE=%s", node_text(r, node));
	environment[n + 3] =
		alloc_format("SKIPPIPE_ALERT_ITERATION=%llu", (unsigned long long)r->iteration);
	environment[n + 4] = alloc_format("SKIPPIPE_ALERT_RUN=%s", a->run);
	environment[n + 5] = alloc_format("SKIPPIPE_ALERT_RUN_DIR=%s", a->run_dir);
	environment[n + 6] = alloc_format("SKIPPIPE_ALERT_TIME=%s", at);
	environment[n + 7] =
		alloc_format("SKIPPIPE_ALERT_DROPPED=%llu", (unsigned long long)r->dropped);
	take_result(a, command_run(&c, &why), "the command of --on-alert", &why);
	for (size_t i = 0; i < OWN; i++)
		free(environment[n + i]);
	free(environment);
}

/* Returns the alert as JSON, which the caller frees. NULL: a name of the run is not valid UTF-8. */
static char *alert_json(const struct alerts *a, const struct raised *r)
{
	char node[16], at[TIMESTAMP_SIZE];
	json_t *o;
	char *text;

	timestamp_text(r->wall_us, at);
	o = json_pack("{s:s, s:s, s:s, s:I, s:s, s:s, s:I}", "kind", note_name(r->kind), "text",
		      r->text, "node", node_text(r, node), "iteration", (json_int_t)r->iteration,
		      "run", a->run, "time", at, "dropped", (json_int_t)r->dropped);
	text = o ? json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
	json_decref(o);
	return text;
}

/* Writes a setting for curl: NAME = "VALUE", with quotes and backslashes escaped. */
static size_t put_setting(char *to, size_t room, const char *name, const char *value)
{
	size_t n = (size_t)snprintf(to, room, "%s = \"", name);

	for (; *value && n + 4 < room; value++) {
		if (*value == '"' || *value == '\\')
			to[n++] = '\\';
		to[n++] = *value;
	}
	return n + (size_t)snprintf(to + n, room - n, "\"\n");
}

static int post_json(struct alerts *a, const char *json, struct error *why)
{
	char *const argv[] = { (char *)"curl", (char *)"--config", (char *)"-", NULL };
	struct command c = {
		.argv = argv, .out = -1, .limit_us = a->limit_us, .stopped = &a->stopped
	};
	char config[CONFIG_MOST];
	int settings[2], rc;
	size_t n = put_setting(config, sizeof(config), "url", a->url);

	n += put_setting(config + n, sizeof(config) - n, "data-binary", json);
	n += (size_t)snprintf(config + n, sizeof(config) - n,
			      "header = \"content-type: application/json\"\n"
			      "proto = \"=http,https\"\nfail\nsilent\noutput = \"/dev/null\"\n");
	if (n >= sizeof(config) || pipe2(settings, O_CLOEXEC) != 0)
		return error_set(why, -EMFILE, "cannot be called: %s", strerror(errno));
	/* A pipe holds 64 KiB, so this write does not wait for curl. */
	rc = write(settings[1], config, n) == (ssize_t)n ? 0 : -EIO;
	close(settings[1]);
	c.in = settings[0];
	if (rc == 0)
		rc = command_run(&c, why);
	close(settings[0]);
	return rc;
}

static void call_url(struct alerts *a, const struct raised *r)
{
	struct error why = { "cannot be called: the run's name is not UTF-8" };
	char *json = alert_json(a, r);

	take_result(a, json ? post_json(a, json, &why) : -EINVAL, "curl for --alert-url", &why);
	free(json);
}

static void *call_all(void *user)
{
	struct alerts *a = user;
	struct raised r;
	ssize_t n;

	while ((n = read(a->queue[0], &r, sizeof(r))) == sizeof(r) || (n < 0 && errno == EINTR)) {
		if (n < 0)
			continue;
		if (a->command && !a->stopped)
			call_command(a, &r);
		if (a->url && !a->stopped)
			call_url(a, &r);
	}
	a->done = true;
	return NULL;
}

/* ---- called by the loop ---- */

void alerts_raise(struct alerts *a, const struct msg_see_note *line, int64_t now_us)
{
	struct raised r;

	if (!a)
		return;
	memset(&r, 0, sizeof(r));
	memcpy(r.text, line->text, sizeof(r.text));
	r.kind = line->kind;
	r.node = line->node;
	r.iteration = line->iteration;
	r.wall_us = line->wall_us;
	r.dropped = a->dropped - a->dropped_reported;
	if (rate_limit_take(&a->limit, 1, AT_ONCE, alerts_per_s, now_us) &&
	    write(a->queue[1], &r, sizeof(r)) == sizeof(r))
		a->dropped_reported = a->dropped;
	else
		a->dropped++;
}

bool alerts_failed(struct alerts *a, int64_t now_us, uint64_t *n, struct error *why)
{
	uint64_t failed = a->failed;

	if (failed == a->failed_reported || now_us < a->report_us ||
	    pthread_mutex_trylock(&a->lock) != 0)
		return false;
	*why = a->why;
	pthread_mutex_unlock(&a->lock);
	*n = failed - a->failed_reported;
	a->failed_reported = failed;
	a->report_us = now_us + REPORT_US;
	return true;
}

void alerts_count(struct alerts *a, struct alerts_count *out)
{
	*out = (struct alerts_count){ a->delivered, a->failed, a->dropped };
}

/* ---- starting and stopping ---- */

/* Reads the URL from the first line of a file, so that no process list shows the URL. */
static int read_url(struct alerts *a, const char *url, struct error *err)
{
	char *text = NULL;
	size_t size;
	int rc;

	if (url[0] != '@') {
		a->url = alloc_string(url);
		return 0;
	}
	rc = file_read_text(url + 1, URL_MOST, &text, &size, err);
	if (rc != 0)
		return rc;
	text[strcspn(text, "\r\n")] = '\0';
	a->url = text;
	return 0;
}

static int check_url(const struct alerts *a, struct error *err)
{
	if (strncmp(a->url, "http://", 7) != 0 && strncmp(a->url, "https://", 8) != 0)
		return error_set(err, -EINVAL, "expected http://..., https://... or @FILE");
	if (strlen(a->url) > URL_MOST || strpbrk(a->url, "\r\n"))
		return error_set(err, -EINVAL, "the URL is longer than %d bytes or one line",
				 URL_MOST);
	if (!command_is_installed("curl"))
		return error_set(err, -ENOENT, "the program curl is not installed here");
	return 0;
}

static void free_alerts(struct alerts *a)
{
	for (int i = 0; i < 2; i++)
		if (a->queue[i] >= 0)
			close(a->queue[i]);
	pthread_mutex_destroy(&a->lock);
	free(a->command);
	free(a->url);
	free(a->run);
	free(a->run_dir);
	free(a);
}

/* The thread may wait for the queue, but the loop never does. */
static int open_queue(struct alerts *a, struct error *err)
{
	if (pipe2(a->queue, O_CLOEXEC) != 0 ||
	    fcntl(a->queue[1], F_SETFL, O_WRONLY | O_NONBLOCK) != 0)
		return error_set(err, -errno, "pipe: %s", strerror(errno));
	return 0;
}

int alerts_start(struct alerts **out, const struct alerts_options *o, struct error *err)
{
	struct alerts *a = alloc_new(sizeof(*a));
	int rc = 0;

	a->queue[0] = a->queue[1] = -1;
	a->limit_us = o->limit_us;
	a->command = o->command ? alloc_string(o->command) : NULL;
	a->run = alloc_string(o->run);
	a->run_dir = alloc_string(o->run_dir);
	pthread_mutex_init(&a->lock, NULL);
	if (o->url)
		rc = read_url(a, o->url, err);
	if (rc == 0 && a->url)
		rc = check_url(a, err);
	if (rc != 0)
		rc = error_prefix(err, rc, "--alert-url");
	if (rc == 0)
		rc = open_queue(a, err);
	if (rc == 0) {
		rc = -pthread_create(&a->thread, NULL, call_all, a);
		if (rc != 0)
			error_set(err, rc, "a thread for alerts: %s", strerror(-rc));
	}
	if (rc == 0)
		*out = a;
	else
		free_alerts(a);
	return rc;
}

void alerts_stop(struct alerts *a, int64_t wait_us)
{
	static const struct timespec pause = { .tv_nsec = LOOK_NS };
	const int64_t until_us = clock_monotonic_us() + wait_us;

	if (!a)
		return;
	close(a->queue[1]); /* the thread ends once it has read the rest of the queue */
	a->queue[1] = -1;
	while (!a->done && clock_monotonic_us() < until_us)
		nanosleep(&pause, NULL);
	a->stopped = true;
	pthread_join(a->thread, NULL);
	free_alerts(a);
}
