/* heartbeat_timeout_test.c - how long a node may be silent before it counts as dead. The limit
 * follows from its round trips and the lateness of its earlier heartbeats. */

#include "base/tests/test.h"
#include "controller/members/heartbeat_timeout.h"

#define LIMIT 450000
#define FAR   260000 /* round trip between Belgium and Australia */

TEST(punctual_agents_get_the_limit)
{
	int64_t longest = 0;

	for (int i = 0; i < 100; i++)
		longest = timeout_learn(longest, 100000 + i % 7 * 1000, LIMIT);
	assert_true(longest > 95000 && longest < 107000);
	assert_int_equal(timeout_allowed(longest, longest, LIMIT, 0), LIMIT);
}

/* The allowed silence includes three round trips. The silence begins when the last heartbeat
 * arrives, at most one round trip after the death. A death is therefore found within half a
 * second and four round trips. */
TEST(three_round_trips_are_added)
{
	assert_int_equal(timeout_allowed(100000, 100000, LIMIT, FAR), LIMIT + 3 * FAR);
	assert_int_equal(timeout_allowed(500000, 100000, LIMIT, FAR), 1000000 + 3 * FAR);
}

TEST(late_heartbeats_raise_the_limit_for_a_while)
{
	int64_t longest = timeout_learn(100000, 400000, LIMIT);
	int words = 0;

	assert_int_equal(longest, 400000);
	assert_int_equal(timeout_allowed(longest, 100000, LIMIT, 0), 800000);
	for (; timeout_allowed(longest, 100000, LIMIT, 0) > LIMIT; words++)
		longest = timeout_learn(longest, 100000, LIMIT);
	assert_in_range(words, 40, 80); /* about six seconds, at ten heartbeats a second */
}

TEST(a_hang_does_not_raise_the_limit)
{
	assert_true(timeout_learn(100000, 5000000, LIMIT) < 100000);
	assert_int_equal(timeout_allowed(1700000, 0, LIMIT, 0), TIMEOUT_PATIENCE * LIMIT);
}

/* Numbers are missing between two received heartbeats. The missing heartbeats were sent, and were
 * lost or will arrive later. Only the rest of the gap shows that the machine is late. */
TEST(missing_heartbeats_do_not_raise_the_limit)
{
	assert_int_equal(timeout_late(300000, 3), 100000);
	assert_int_equal(timeout_late(300000, 1), 300000);
	assert_int_equal(timeout_late(150000, 3), 0);
	assert_int_equal(timeout_late(0, UINT64_MAX), 0);
	assert_int_equal(timeout_late(300000, 0), 300000);
}

TEST(a_delay_of_a_quarter_is_allowed_to_all)
{
	int64_t five[] = { 900000, 100000, 500000, 100000, 600000 };
	int64_t nine[] = { 900000, 100000, 800000, 100000, 110000, 100000, 100000, 100000, 100000 };

	assert_int_equal(timeout_usual(five, 5), 600000);
	/* fewer than a quarter of these nine agents are late, so the others get no more time */
	assert_int_equal(timeout_usual(nine, 9), 110000);
	assert_int_equal(timeout_usual(five, 0), 0);
	assert_int_equal(timeout_allowed(100000, 500000, LIMIT, 0), 1000000);
}

/* After a connection has ended, the allowed silence is shorter. Late heartbeats make it longer, up
 * to the largest silence that is allowed while all connections last. */
TEST(a_hang_up_lowers_the_limit)
{
	assert_int_equal(timeout_hung_up(90000, 0, LIMIT, 0), 2 * TIMEOUT_BEAT_US);
	assert_int_equal(timeout_hung_up(90000, 0, LIMIT, FAR), 2 * TIMEOUT_BEAT_US + FAR);
	assert_int_equal(timeout_hung_up(110000, 130000, LIMIT, 0), 260000);
	assert_int_equal(timeout_hung_up(300000, 100000, LIMIT, 0), 600000);
	assert_int_equal(timeout_hung_up(3000000, 0, LIMIT, 0), TIMEOUT_PATIENCE * LIMIT);
	assert_int_equal(timeout_hung_up(0, 0, 150000, 0), 150000);
}

TEST(lost_heartbeats_do_not_change_the_round_trip)
{
	struct timeout_rounds r = { .n = 0 };

	assert_int_equal(timeout_round_trip(&r), 0);
	timeout_round(&r, FAR);
	assert_int_equal(timeout_round_trip(&r), FAR);
	for (int i = 0; i < 100; i++)
		timeout_round(&r, i % 3 ? FAR + i : 900000);
	assert_in_range(timeout_round_trip(&r), FAR, FAR + 100);
	for (int i = 0; i < TIMEOUT_ROUNDS; i++) /* the median follows a lasting change */
		timeout_round(&r, 2 * FAR);
	assert_int_equal(timeout_round_trip(&r), 2 * FAR);
	for (int i = 0; i < TIMEOUT_ROUNDS; i++)
		timeout_round(&r, INT64_MAX);
	assert_int_equal(timeout_round_trip(&r), TIMEOUT_ROUND_MOST_US);
}
