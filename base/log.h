/* log.h - a program's log: one line for each event, with time (base/timestamp.h) and level.
 *
 * Programs own a struct log and pass it down; libraries do not log. Secrets are never logged.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdio.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log {
	FILE *to;              /* the stream of the lines, borrowed; NULL: nothing is written */
	enum log_level least;  /* lines below this level are dropped */
	const char *who;       /* name of the program in each line, such as "agent 7"; borrowed */
};

/* Writes one line with time and level, unless the level is below the log's. log may be NULL. */
void log_line(const struct log *log, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Returns the message of a log's line, without time, level and name. Returns any other line
 * unchanged. */
const char *log_message(const char *line);

#endif
