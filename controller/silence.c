#include "controller/silence.h"

#include <stdlib.h>

#define FADES_AFTER 100 /* words */

int64_t silence_learn(int64_t longest_us, int64_t gap_us, int64_t limit_us)
{
	if (gap_us > longest_us && gap_us < SILENCE_PATIENCE * limit_us)
		return gap_us;
	return longest_us - longest_us / FADES_AFTER;
}

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int64_t silence_usual(int64_t *gaps_us, size_t n)
{
	if (n == 0)
		return 0;
	qsort(gaps_us, n, sizeof(*gaps_us), ascending);
	return gaps_us[(n - 1) * 3 / 4];
}

static int64_t twice_longest(int64_t longest_us, int64_t usual_us)
{
	return 2 * (longest_us > usual_us ? longest_us : usual_us);
}

int64_t silence_hung_up(int64_t longest_us, int64_t usual_us, int64_t limit_us)
{
	int64_t allowed = twice_longest(longest_us, usual_us),
		most = silence_allowed(longest_us, usual_us, limit_us);

	if (allowed < 2 * SILENCE_BEAT_US)
		allowed = 2 * SILENCE_BEAT_US;
	return allowed < most ? allowed : most;
}

int64_t silence_allowed(int64_t longest_us, int64_t usual_us, int64_t limit_us)
{
	int64_t allowed = twice_longest(longest_us, usual_us);

	if (allowed < limit_us)
		return limit_us;
	return allowed < SILENCE_PATIENCE * limit_us ? allowed : SILENCE_PATIENCE * limit_us;
}
