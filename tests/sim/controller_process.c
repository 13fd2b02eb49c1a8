/* The loop's parts are main.c's own; here is no poll and no signal. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define main controller_main
#include "controller/main.c"
#undef main
#pragma GCC diagnostic pop

#include <stdlib.h>

#include "tests/sim/controller_process.h"

enum { IDLE_US = 20000 };

int controller_process_start(struct controller **out, int argc, char **argv, struct error *err)
{
	struct controller *c = calloc(1, sizeof(*c));
	int rc = c ? options_parse(&c->options, argc, argv, err) : -ENOMEM;

	if (rc == 0) {
		c->log = (struct log){ getenv("SIM_LOG") ? stdout : NULL, LOG_DEBUG, "controller" };
		rc = controller_init(c, err);
	}
	if (rc != 0) {
		controller_process_end(c);
		return rc;
	}
	*out = c;
	return 0;
}

bool controller_process_over(const struct controller *c, int *status)
{
	*status = c->exit_status;
	return c->phase == PHASE_FINISHED && (post_idle(c->post, 0) ||
					      c->now_us - c->finished_us >= FLUSH_US + FLUSH_TRIPS * quiet_farthest_us(c));
}

void controller_process_turn(struct controller *c)
{
	c->now_us = clock_monotonic_us();
	receive(c);
	if (c->phase != PHASE_FINISHED) {
		replan_turn(c);
		ahead_turn(c);
		members_check(c);
		measuring_joiners(c);
		copies_turn(c);
		command_turn(c);
		disk_turn(c);
		iteration_turn(c);
	}
	consoles_turn(c);
}

int64_t controller_process_deadline_us(const struct controller *c)
{
	int64_t at_us = post_deadline_us(c->post);

	return at_us < c->now_us + IDLE_US ? at_us : c->now_us + IDLE_US;
}

void controller_process_end(struct controller *c)
{
	if (c)
		controller_fini(c);
	free(c);
}
