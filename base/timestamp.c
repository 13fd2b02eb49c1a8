/* Formats times of day. Only this file determines how a time is written. */
#include "base/timestamp.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Gives the calendar time in *tm, and returns the milliseconds. */
static int split(int64_t wall_us, struct tm *tm)
{
	/* Last microsecond of the year 9999. */
	const int64_t last_us = INT64_C(253402300800) * 1000000 - 1;
	time_t s;

	wall_us = wall_us < 0 ? 0 : wall_us > last_us ? last_us : wall_us;
	s = (time_t)(wall_us / 1000000);
	gmtime_r(&s, tm);
	return (int)(wall_us / 1000 % 1000);
}

void timestamp_text(int64_t wall_us, char text[TIMESTAMP_SIZE])
{
	struct tm tm;
	int ms = split(wall_us, &tm);
	size_t n = strftime(text, TIMESTAMP_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);

	snprintf(text + n, TIMESTAMP_SIZE - n, ".%03dZ", ms);
}

void timestamp_name(int64_t wall_us, char text[TIMESTAMP_NAME_SIZE])
{
	struct tm tm;

	split(wall_us, &tm);
	strftime(text, TIMESTAMP_NAME_SIZE, "%Y%m%dT%H%M%SZ", &tm);
}

bool timestamp_begins(const char *text)
{
	static const char pattern[] = "0000-00-00T00:00:00.000Z";

	for (size_t i = 0; pattern[i]; i++)
		if (pattern[i] == '0' ? !isdigit((unsigned char)text[i]) : text[i] != pattern[i])
			return false;
	return true;
}
