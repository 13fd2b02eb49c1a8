/* controller_process.c - runs the phases of the controller's loop one by one, without poll and
 * without signals. The phases are static functions of loop.c, so this file includes loop.c. */
#include "controller/loop.c"

#include <errno.h>
#include <stdlib.h>

#include "controller/operator/acts.h"
#include "controller/operator/stage_preview.h"
#include "controller/run/outcome.h"
#include "controller/setup.h"
#include "tests/sim/controller_process.h"

enum { IDLE_US = 20000 };

int controller_process_start(struct controller **out, int argc, char **argv, struct error *err)
{
	struct controller *c = controller_new();
	int rc = options_parse(&c->run.options, argc, argv, err);

	if (rc == 0) {
		c->run.log =
			(struct log){ getenv("SIM_LOG") ? stdout : NULL, LOG_DEBUG, "controller" };
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
	*status = c->run.ending.exit_status;
	return is_over(&c->members);
}

void controller_process_turn(struct controller *c)
{
	c->run.now_us = clock_monotonic_us();
	receive_messages(c);
	if (c->run.phase != PHASE_FINISHED)
		take_turn(c);
	consoles_turn(&c->operators);
}

bool controller_process_obeys(struct controller *c, enum command_verb verb, int node,
			      int64_t value)
{
	const struct msg_command m = { .verb = (uint8_t)verb, .node = node, .value = value };
	struct outcome o = { .status = 0 };

	c->run.now_us = clock_monotonic_us();
	switch (verb) {
	case COMMAND_FAIL:
		act_fail(&c->operators, STORE_SCRIPT, &m, &o);
		break;
	case COMMAND_RECOVER:
		act_recover(&c->operators, STORE_SCRIPT, &m, &o);
		break;
	case COMMAND_SKIP:
		act_skip(&c->operators, STORE_SCRIPT, &m, &o);
		break;
	case COMMAND_WIRE:
	case COMMAND_SUM_WIRE:
		act_wire(&c->operators, STORE_SCRIPT, &m, &o);
		break;
	default:
		act_pause(&c->operators, STORE_SCRIPT, &m, &o);
	}
	return o.status == 0;
}

bool controller_process_cuts(struct controller *c, const char *layers)
{
	struct msg_command m = { .verb = COMMAND_CUT };
	struct outcome o = { .status = 0 };

	c->run.now_us = clock_monotonic_us();
	snprintf(m.text, sizeof(m.text), "%s", layers);
	act_cut(&c->operators, STORE_SCRIPT, &m, &o);
	return o.status == 0;
}

int64_t controller_process_deadline_us(const struct controller *c)
{
	int64_t at_us = post_deadline_us(c->run.post);

	return at_us < c->run.now_us + IDLE_US ? at_us : c->run.now_us + IDLE_US;
}

void controller_process_end(struct controller *c)
{
	if (c)
		controller_fini(c);
	free(c);
}
