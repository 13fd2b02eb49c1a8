/* device_time.c - names of a device's states, and their shares of a period. */
#include "wire/device_time.h"

#include <string.h>

#define LONGEST_US (UINT64_C(10000) * 86400 * 1000000)

const char *device_state_name(enum device_state state)
{
	static const char *const names[DEVICE_STATES] = { "busy", "host", "network", "others" };

	return names[state];
}

uint64_t device_time_total_us(const struct device_time *t)
{
	uint64_t sum = 0;

	for (int i = 0; i < DEVICE_STATES; i++)
		sum += t->us[i];
	return sum;
}

bool device_time_is_sane(const struct device_time *t)
{
	for (int i = 0; i < DEVICE_STATES; i++)
		if (t->us[i] > LONGEST_US)
			return false;
	return true;
}

void device_time_limit(struct device_time *t, uint64_t longest_us)
{
	uint64_t total = device_time_total_us(t);

	for (int i = 0; total > longest_us && i < DEVICE_STATES; i++)
		t->us[i] = (uint64_t)((double)t->us[i] / (double)total * (double)longest_us);
}

/* Rounds the shares down. Then gives the missing percent to the shares that lost most by
 * rounding. */
bool device_time_percent(const struct device_time *t, unsigned percent[DEVICE_STATES])
{
	uint64_t total = device_time_total_us(t), lost[DEVICE_STATES];
	unsigned left = 100;

	memset(percent, 0, DEVICE_STATES * sizeof(*percent));
	if (total == 0)
		return false;
	for (int i = 0; i < DEVICE_STATES; i++) {
		percent[i] = (unsigned)(t->us[i] * 100 / total);
		lost[i] = t->us[i] * 100 % total;
		left -= percent[i];
	}
	for (; left > 0; left--) {
		int most = 0;

		for (int i = 1; i < DEVICE_STATES; i++)
			if (lost[i] > lost[most])
				most = i;
		percent[most]++;
		lost[most] = 0;
	}
	return true;
}
