/* phase_moves_state_test.c - to which state of the moves between phases each event leads. */

#include <string.h>

#include "base/tests/test.h"
#include "controller/planning/phase_moves_state.h"

/* A row for each event. Its columns are the states before the event, and its letters the states
 * after the event. The letter of a state is at the state's index in `letters`; '.': a pair that
 * must not occur. The table was written independently of the table in phase_moves_state.c. */
static const char letters[] = "-URFIP";
static const char *const expected[PHASE_MOVES_EVENTS] = {
	/* columns: the states before the event, -URFIP */
	[PHASE_MOVES_START] = "U.....",   [PHASE_MOVES_LOAD] = ".I....",
	[PHASE_MOVES_REQUEST] = ".R....", [PHASE_MOVES_PLAN] = "..I...",
	[PHASE_MOVES_NO_PLAN] = "..F...", [PHASE_MOVES_PREPARE] = "....P.",
	[PHASE_MOVES_DROP] = ".....I",    [PHASE_MOVES_EXCHANGE] = ".....I",
};

TEST(each_event_leads_to_one_state)
{
	assert_int_equal(strlen(letters), PHASE_MOVES_STATES);
	for (int e = 0; e < PHASE_MOVES_EVENTS; e++) {
		assert_int_equal(strlen(expected[e]), PHASE_MOVES_STATES);
		for (int s = 0; s < PHASE_MOVES_STATES; s++) {
			char to = expected[e][s];
			enum phase_moves_state moves = (enum phase_moves_state)s;
			bool done = phase_moves_apply(&moves, (enum phase_moves_event)e);

			if (done != (to != '.') || letters[moves] != (to == '.' ? letters[s] : to))
				fail_msg("state %c, event %d: %c, not %c", letters[s], e,
					 letters[moves], to);
		}
	}
}

TEST(the_stages_of_the_phases_are_known_in_two_states)
{
	for (int s = 0; s < PHASE_MOVES_STATES; s++)
		assert_int_equal(phase_moves_are_planned((enum phase_moves_state)s),
				 letters[s] == 'I' || letters[s] == 'P');
}
