/* main.c - the program skippipe-controller: plans a run, commands its agents, records it and serves
 * consoles.
 *
 * It reads the command line, blocks the signals that end the run so that the loop can read them,
 * and runs the loop or a replay. */
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

/* After an ordinary end of the run, waits without limit until the reader of the events has received
 * all of them. */
static int close_events(struct outlet *events, int64_t wait_us)
{
	int rc = outlet_free(events, wait_us);

	if (rc != 0)
		fprintf(stderr, "skippipe controller: stdout: %s\n",
			rc == -ENOBUFS ? "the reader was too slow: events are missing there"
				       : strerror(-rc));
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
	rc = controller_init(c, &err);
	if (rc == 0) {
		loop_run(c, signals);
		rc = c->run.ending.exit_status;
	} else {
		fprintf(c->run.log.to, "skippipe controller: %s\n", err.text);
		rc = 1;
	}
	stopped = c->run.ending.stopping != NULL;
	controller_fini(c);
	free(c);
	outlet_free(log, LOG_WAIT_US);
	return close_events(events, stopped ? LOG_WAIT_US : INT64_MAX) == 0 ? rc : 1;
}
