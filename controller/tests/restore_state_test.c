/* restore_state_test.c - to which state of a restore each event leads. */

#include <string.h>

#include "base/tests/test.h"
#include "controller/weights/restore_state.h"

/* A row for each event. Its columns are the states before the event, and its letters the states
 * after the event. The letter of a state is at the state's index in `letters`; '.': a pair that
 * must not occur. The table was written independently of the table in restore_state.c. */
static const char letters[] = "-CFA";
static const char *const expected[RESTORING_EVENTS] = {
	/* columns: the states before the event, -CFA */
	[RESTORING_READ] = "C...",   [RESTORING_BUILD] = "F...",   [RESTORING_COMBINE] = "A...",
	[RESTORING_REJECT] = ".--.", [RESTORING_GIVE_UP] = "----", [RESTORING_FINISH] = ".---",
};

TEST(each_event_leads_to_one_state)
{
	assert_int_equal(strlen(letters), RESTORING_STATES);
	for (int e = 0; e < RESTORING_EVENTS; e++) {
		assert_int_equal(strlen(expected[e]), RESTORING_STATES);
		for (int s = 0; s < RESTORING_STATES; s++) {
			char to = expected[e][s];
			enum restoring_state restoring = (enum restoring_state)s;
			bool done = restoring_apply(&restoring, (enum restoring_event)e);

			if (done != (to != '.') ||
			    letters[restoring] != (to == '.' ? letters[s] : to))
				fail_msg("state %c, event %d: %c, not %c", letters[s], e,
					 letters[restoring], to);
		}
	}
}

TEST(the_run_goes_back_in_two_states)
{
	for (int s = 0; s < RESTORING_STATES; s++)
		assert_int_equal(restoring_goes_back((enum restoring_state)s),
				 letters[s] == 'C' || letters[s] == 'F');
}
