/* Writes log lines. Each line is flushed at once, so that the log of a killed program is
 * complete. */
#include "base/log.h"

#include <stdarg.h>
#include <time.h>

#include "base/clock.h"

void log_line(const struct log *log, enum log_level level, const char *format, ...)
{
	static const char *const names[] = { "debug", "info", "warn", "error" };
	int64_t now = clock_wall_us();
	time_t s = (time_t)(now / 1000000);
	struct tm tm;
	char text[1024];
	va_list ap;

	if (!log || !log->to || level < log->least)
		return;
	gmtime_r(&s, &tm);
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	fprintf(log->to, "%02d:%02d:%02d.%03d %-5s %s: %s\n", tm.tm_hour, tm.tm_min, tm.tm_sec,
		(int)(now / 1000 % 1000), names[level], log->who ? log->who : "-", text);
	fflush(log->to);
}
