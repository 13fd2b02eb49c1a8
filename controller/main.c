/* main.c - the program skippipe-controller: plans a run, commands its agents, records it and serves
 * consoles.
 *
 * It reads the command line and runs the loop or a replay. The signals that end the run are
 * blocked, because the loop reads them. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process/outlet.h"
#include "base/process/output.h"
#include "base/process/signals.h"
#include "controller/controller.h"
#include "controller/loop.h"
#include "controller/monitor/status.h"
#include "controller/replay/replay_serve.h"
#include "controller/setup.h"
#include "wire/sessions/link.h"

enum { LOG_WAIT_US = 1000000 };

/* Waits at most wait_us until the events are written, and closes their stream. */
static int close_events(struct outlet *events, int64_t wait_us)
{
	int rc = outlet_free(events, wait_us);

	if (rc != 0)
		fprintf(stderr, "skippipe controller: stdout: %s\n",
			rc == -ENOBUFS ? "the reader was too slow: events are missing there"
				       : strerror(-rc));
	return rc;
}

/* Makes the controller that continues the run of `was`, and frees `was`. The new controller uses
 * the port, log and events of `was`. Returns NULL, with the reason in err, if the new controller
 * cannot be made. */
static struct controller *follow(struct controller *was, struct error *err)
{
	static char listen[LINK_ADDRESS_SIZE];
	struct controller *c = controller_new();
	int rc;

	snprintf(listen, sizeof(listen), "%s", was->run.started.listening);
	rc = options_again(&c->run.options, &was->run.options, listen, err);
	c->run.log = was->run.log;
	c->run.record.jsonl = was->run.record.jsonl;
	controller_fini(was);
	free(was);
	if (rc == 0)
		return c;
	free(c);
	return NULL;
}

/* Runs a controller, and the controllers that continue its run (joining/recut.h), until the run
 * ends. Frees them all. Sets *stopped if a signal has ended the run. */
static int run_to_end(struct controller *c, int signals, bool *stopped)
{
	struct error err = { "" };
	FILE *to = c->run.log.to;
	int rc;

	do {
		rc = controller_init(c, &err);
		if (rc != 0)
			break;
		loop_run(c, signals);
	} while (c->run.ending.restarts && (c = follow(c, &err)) != NULL);
	if (!c || rc != 0)
		fprintf(to, "skippipe controller: %s\n", err.text);
	rc = !c || rc != 0 ? 1 : c->run.ending.exit_status;
	*stopped = c && c->run.ending.stopping != NULL;
	if (c)
		controller_fini(c);
	free(c);
	return rc;
}

int main(int argc, char **argv)
{
	struct controller *c;
	struct error err = { "" };
	struct outlet *log, *events;
	bool stopped;
	int signals, rc;

	if (argc > 1 && strcmp(argv[1], "status") == 0) {
		output_check_at_exit("skippipe status");
		return status_main(argc - 1, argv + 1);
	}
	c = controller_new();
	output_check_at_exit("skippipe controller");
	rc = options_parse(&c->run.options, argc, argv, &err);
	if (rc > 0)
		return 0;
	if (rc < 0) {
		fprintf(stderr, "skippipe controller: %s\n", err.text);
		return 2;
	}
	link_tune_malloc();
	link_raise_files(8192);
	signals = signals_open(0);
	if (signals < 0) {
		fprintf(stderr, "skippipe controller: signalfd: %s\n", strerror(-signals));
		return 1;
	}
	log = outlet_new(stderr);
	c->run.log = (struct log){ outlet_stream(log), c->run.options.level, "controller" };
	if (c->run.options.mode.replay) {
		rc = replay_serve(&c->run.options, &c->run.log, signals, &err);
		if (rc != 0)
			fprintf(c->run.log.to, "skippipe controller: %s\n", err.text);
		outlet_free(log, LOG_WAIT_US);
		return rc != 0;
	}
	events = outlet_new(stdout);
	c->run.record.jsonl = c->run.options.mode.jsonl ? outlet_stream(events) : NULL;
	rc = run_to_end(c, signals, &stopped);
	outlet_free(log, LOG_WAIT_US);
	return close_events(events, stopped ? LOG_WAIT_US : INT64_MAX) == 0 ? rc : 1;
}
