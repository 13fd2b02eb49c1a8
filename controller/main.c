/* main.c - the program skippipe-controller: plans a run, commands its agents, records it and serves
 * consoles.
 *
 * It reads the command line, blocks the signals that end the run so that the loop can read them,
 * and runs the loop or a replay. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/output.h"
#include "base/signals.h"
#include "controller/controller.h"
#include "controller/loop.h"
#include "controller/replay/replay_serve.h"
#include "controller/setup.h"
#include "wire/sessions/link.h"

int main(int argc, char **argv)
{
	struct controller *c = controller_new();
	struct error err = { "" };
	sigset_t set;
	int signals, rc;

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
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file that may not grow (ulimit -f) is a failed write */
	signals_ending(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	c->run.log = (struct log){ stderr, c->run.options.level, "controller" };
	if (c->run.options.mode.replay) {
		rc = replay_serve(&c->run.options, &c->run.log, signals, &err);
		if (rc != 0)
			fprintf(stderr, "skippipe controller: %s\n", err.text);
		return rc != 0;
	}
	rc = controller_init(c, &err);
	if (rc == 0) {
		loop_run(c, signals);
		rc = c->run.ending.exit_status;
	} else {
		fprintf(stderr, "skippipe controller: %s\n", err.text);
		rc = 1;
	}
	controller_fini(c);
	free(c);
	return rc;
}
