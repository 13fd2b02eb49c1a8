/* Tests the lines of text for the steps of a start, and for an iteration on a real network. */

#include <math.h>
#include <string.h>

#include "base/tests/test.h"
#include "tui/text_mode.h"
#include "tui/tests/golden.h"
#include "tui/tests/start.h"

/* The progress of a step is printed every five seconds of the controller's clock. Every step but
 * the first begins with a journal entry. */
TEST(a_start)
{
	struct state *s = start_state(6, 3, false, GATHER_COMING, 1, 6, 0);
	struct text_mode p = { .at_us = 0 };
	char line[256];
	struct msg m;

	start_status(s, GATHER_COMING, 2, 6, 0, "2 have come", &m);
	assert_true(text_mode_line(&p, s, &m, line, sizeof(line)));
	assert_string_equal(line, "2 have come");
	start_status(s, GATHER_COMING, 3, 6, 0, "3 have come", &m);
	assert_false(text_mode_line(&p, s, &m, line, sizeof(line)));
	start_status(s, GATHER_LINKS, 1, 6, 5, "round 1", &m);
	assert_false(text_mode_line(&p, s, &m, line, sizeof(line)));
	p.at_us -= 5000000;
	start_status(s, GATHER_LINKS, 2, 6, 4, "round 2", &m);
	assert_true(text_mode_line(&p, s, &m, line, sizeof(line)));
	assert_string_equal(line, "round 2");
	assert_false(text_mode_line(&p, s, &m, line, sizeof(line)));
	s->status.phase = PHASE_COMPUTING;
	s->status.steps = 0;
	p.at_us -= 5000000;
	assert_false(text_mode_line(&p, s, &m, line, sizeof(line)));
	state_free(s);
}

TEST(an_iteration)
{
	struct text_mode p = { .at_us = 0 };
	struct msg m = { .type = MSG_SEE_ITERATION };
	struct state *s = golden_default(NULL);
	char line[256];

	m.u.see_iteration = (struct msg_see_iteration){ .iteration = 9,
							.iteration_s = 0.614f,
							.predicted_s = 0.58f,
							.sync_s = 0.2f,
							.predicted_sync_s = 0.25f,
							.real_s = 0.9f };
	assert_true(text_mode_line(&p, s, &m, line, sizeof(line)));
	assert_non_null(strstr(line, "0.61 s (predicted 0.58 s), 0 coll"));
	start_measured(s);
	assert_true(text_mode_line(&p, s, &m, line, sizeof(line)));
	assert_non_null(strstr(line, "0.61 s (predicted 0.58 s), sums 0.20 s (predicted 0.25 s), "
				     "all in 0.90 s, 0 coll"));
	m = (struct msg){ .type = MSG_SEE_RUN, .u.see_run = s->run };
	assert_true(text_mode_line(&p, s, &m, line, sizeof(line)));
	assert_null(strstr(line, "emulated"));
	m.u.see_run.emulated = 1;
	assert_true(text_mode_line(&p, s, &m, line, sizeof(line)));
	assert_non_null(strstr(line, "emulated"));
	state_free(s);
}

TEST(a_rehearsal_has_no_loss)
{
	struct text_mode p = { .at_us = 0 };
	struct msg m = { .type = MSG_SEE_ITERATION };
	struct state *s = golden_default(NULL);
	char line[256];

	m.u.see_iteration = (struct msg_see_iteration){ .iteration = 9, .loss = NAN };
	assert_true(text_mode_line(&p, s, &m, line, sizeof(line)));
	assert_non_null(strstr(line, "iteration 9: loss -, "));
	m = (struct msg){ .type = MSG_SEE_RUN, .u.see_run = s->run };
	m.u.see_run.rehearsal = 1000;
	assert_true(text_mode_line(&p, s, &m, line, sizeof(line)));
	assert_int_equal(strncmp(line, "REHEARSAL", 9), 0);
	state_free(s);
}

/* A journal entry and a commit contain their own time. Any other line gets the time of the newest
 * status, converted to wall time by means of the newest journal entry. */
TEST(lines_have_the_time_of_their_event)
{
	struct msg note = { .type = MSG_SEE_NOTE }, iteration = { .type = MSG_SEE_ITERATION },
		   node = { .type = MSG_SEE_NODE };
	struct state *s = state_new();

	note.u.see_note = (struct msg_see_note){
		.id = 1, .at_us = 5000000, .wall_us = 900000000, .kind = NOTE_EVENT
	};
	iteration.u.see_iteration.wall_us = 77;
	assert_int_equal(text_mode_wall_us(s, &node, 3), 3);
	state_apply(s, &note);
	assert_int_equal(text_mode_wall_us(s, &node, 3), 3);
	s->status.now_us = 7000000;
	assert_int_equal(text_mode_wall_us(s, &node, 3), 902000000);
	assert_int_equal(text_mode_wall_us(s, &note, 3), 900000000);
	assert_int_equal(text_mode_wall_us(s, &iteration, 3), 77);
	state_free(s);
}
