/* alerts.h - reports alerts of the journal to an operator's command (--on-alert) and to a URL
 * (--alert-url).
 *
 * A thread makes the calls one after another, each within a time limit, so that the loop never
 * waits. Alerts wait in a bounded queue. A burst of up to 20 alerts is reported. After that, one
 * alert is reported every 10 s. All others are dropped, and the next report contains their
 * number. */
#ifndef CONTROLLER_MONITOR_ALERTS_H
#define CONTROLLER_MONITOR_ALERTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct alerts; /* opaque */
struct msg_see_note;

/* Numbers of calls. Each alert causes one call of the command and one of the URL. */
struct alerts_count {
	uint64_t delivered, failed;
	uint64_t dropped; /* alerts that exceeded the rate limit or found no room in the queue */
};

struct alerts_options {
	const char *command; /* shell command; NULL: none */
	/* Address that starts with http:// or https://; or @FILE, whose first line is the address;
	 * NULL: none */
	const char *url;
	const char *run, *run_dir;
	int64_t limit_us; /* time limit of each call */
};

/* Starts the thread. The texts are copied. -EINVAL: the URL is not valid; -ENOENT: the options give
 * a URL, but the program curl is not installed. */
int alerts_start(struct alerts **out, const struct alerts_options *o, struct error *err);
/* Passes an alert to the thread, or counts it as dropped. Never waits. a may be NULL. */
void alerts_raise(struct alerts *a, const struct msg_see_note *line, int64_t now_us);
/* Returns true at most once a minute, if calls have failed since the last report. Sets *n to the
 * number of failures, and *why to the reason of the newest failure. */
bool alerts_failed(struct alerts *a, int64_t now_us, uint64_t *n, struct error *why);
void alerts_count(struct alerts *a, struct alerts_count *out);
/* Waits up to wait_us until all alerts are reported, ends a command that still runs, and frees a,
 * which may be NULL. */
void alerts_stop(struct alerts *a, int64_t wait_us);

#endif
