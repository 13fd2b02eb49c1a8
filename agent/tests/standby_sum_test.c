/* Tests which state of a standby copy's sum follows after each event. */

#include <string.h>

#include "agent/weights/standby_sum.h"
#include "base/tests/test.h"

/* A row of the table stands for an event, and a column for the state before the event. The entry
 * is the state after the event, as a letter of `letters`. '=' means that the state does not
 * change. '.' means that the event must not occur in this state. The table was written
 * independently of the table in standby_sum.c. The digit and the small letters are states in
 * which the worker stores pieces. */
static const char letters[] = "-ADNMRQS0adr";
static const char *const expected[STANDBY_EVENTS] = {
	/* from the state:   -ADNMRQS0adr */
	[STANDBY_REDUCE] = "A...........",   [STANDBY_COMMIT] = ".D...Q......",
	[STANDBY_NORM] = ".NM.........",     [STANDBY_NORMED] = "...RQ.......",
	[STANDBY_STORE] = "0ad..r......",    [STANDBY_STEP] = "......S.....",
	[STANDBY_FOLLOWED] = ".......--ADR", [STANDBY_ABANDON] = "==A=N=R=====",
	[STANDBY_FORGET] = "=--..--.....",
};

TEST(each_event_leads_to_one_state)
{
	assert_int_equal(strlen(letters), STANDBY_SUM_STATES);
	for (int e = 0; e < STANDBY_EVENTS; e++) {
		assert_int_equal(strlen(expected[e]), STANDBY_SUM_STATES);
		for (int s = 0; s < STANDBY_SUM_STATES; s++) {
			char to = expected[e][s];
			enum standby_sum sum = (enum standby_sum)s;
			bool done = standby_sum_apply(&sum, (enum standby_event)e);

			if (done != (to != '.') ||
			    letters[sum] != (to == '.' || to == '=' ? letters[s] : to))
				fail_msg("state %c, event %d: %c, not %c", letters[s], e,
					 letters[sum], to);
		}
	}
}

/* Returns the letters of the states for which the predicate is true. */
static const char *states_that(bool (*is_true)(enum standby_sum))
{
	static char out[STANDBY_SUM_STATES + 1];
	int n = 0;

	for (int s = 0; s < STANDBY_SUM_STATES; s++)
		if (is_true((enum standby_sum)s))
			out[n++] = letters[s];
	out[n] = 0;
	return out;
}

TEST(each_predicate_is_true_in_its_states)
{
	assert_string_equal(states_that(standby_sum_is_due), "DMQSd");
	assert_string_equal(states_that(standby_sum_is_followed), "S0adr");
	assert_string_equal(states_that(standby_sum_is_in_use), "NMS0adr");
}
