/* log.h - a program's own record of what it did: one line each, time and level first.
 *
 * Programs own a struct log and hand it down; libraries do not log. Never given secrets.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdio.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log {
	FILE *to;              /* borrowed; NULL: silent */
	enum log_level least;  /* what is below is dropped */
	const char *who;       /* e.g. "agent 7"; borrowed */
};

/* One line, with its time and level; below the log's level nothing. */
void log_line(const struct log *log, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
