/* heartbeat_timeout.c - computes the silence that is allowed to an agent (heartbeat_timeout.h).
 *
 * A fixed limit would declare healthy agents dead on a slow link or a busy machine. On a fast link
 * it would find dead agents late. */
#include "controller/members/heartbeat_timeout.h"

#include <stdlib.h>
#include <string.h>

enum {
	/* With each heartbeat, the stored longest lateness shrinks by 1 / FADES_AFTER of its
	 * value */
	FADES_AFTER = 100,
	/* Number of round trips that the allowed silence contains, because a lost heartbeat is
	 * sent again */
	ROUND_TRIPS = 3
};

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

void timeout_round(struct timeout_rounds *r, int64_t us)
{
	r->us[r->n++ % TIMEOUT_ROUNDS] = us < TIMEOUT_ROUND_MOST_US ? us : TIMEOUT_ROUND_MOST_US;
}

int64_t timeout_round_trip(const struct timeout_rounds *r)
{
	uint32_t n = r->n < TIMEOUT_ROUNDS ? r->n : TIMEOUT_ROUNDS;
	int64_t us[TIMEOUT_ROUNDS];

	if (n == 0)
		return 0;
	memcpy(us, r->us, sizeof(us));
	qsort(us, n, sizeof(us[0]), ascending);
	return us[n / 2];
}

int64_t timeout_late(int64_t gap_us, uint64_t beats)
{
	uint64_t missing = beats > 1 ? beats - 1 : 0;

	if (missing > (uint64_t)gap_us / TIMEOUT_BEAT_US)
		return 0;
	return gap_us - (int64_t)missing * TIMEOUT_BEAT_US;
}

int64_t timeout_learn(int64_t longest_us, int64_t late_us, int64_t limit_us)
{
	if (late_us > longest_us && late_us < TIMEOUT_PATIENCE * limit_us)
		return late_us;
	return longest_us - longest_us / FADES_AFTER;
}

int64_t timeout_usual(int64_t *late_us, size_t n)
{
	if (n == 0)
		return 0;
	qsort(late_us, n, sizeof(*late_us), ascending);
	return late_us[(n - 1) * 3 / 4];
}

static int64_t twice_longest(int64_t longest_us, int64_t usual_us)
{
	return 2 * (longest_us > usual_us ? longest_us : usual_us);
}

int64_t timeout_hung_up(int64_t longest_us, int64_t usual_us, int64_t limit_us,
			int64_t round_trip_us)
{
	int64_t allowed = twice_longest(longest_us, usual_us),
		most = timeout_allowed(longest_us, usual_us, limit_us, round_trip_us);

	if (allowed < 2 * TIMEOUT_BEAT_US)
		allowed = 2 * TIMEOUT_BEAT_US;
	allowed += round_trip_us;
	return allowed < most ? allowed : most;
}

int64_t timeout_allowed(int64_t longest_us, int64_t usual_us, int64_t limit_us,
			int64_t round_trip_us)
{
	int64_t allowed = twice_longest(longest_us, usual_us);

	if (allowed < limit_us)
		allowed = limit_us;
	if (allowed > TIMEOUT_PATIENCE * limit_us)
		allowed = TIMEOUT_PATIENCE * limit_us;
	return allowed + ROUND_TRIPS * round_trip_us;
}
