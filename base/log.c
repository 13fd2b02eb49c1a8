/* Writes log lines. Each line is flushed at once, so that the log of a killed program is
 * complete. */
#include "base/log.h"

#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "base/timestamp.h"

void log_line(const struct log *log, enum log_level level, const char *format, ...)
{
	static const char *const names[] = { "debug", "info", "warn", "error" };
	char text[1024], now[TIMESTAMP_SIZE];
	va_list ap;

	if (!log || !log->to || level < log->least)
		return;
	timestamp_text(clock_wall_us(), now);
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	fprintf(log->to, "%s %-5s %s: %s\n", now, names[level], log->who ? log->who : "-", text);
	fflush(log->to);
}

const char *log_message(const char *line)
{
	const char *colon = timestamp_begins(line) ? strstr(line + TIMESTAMP_SIZE, ": ") : NULL;

	return colon ? colon + 2 : line;
}
