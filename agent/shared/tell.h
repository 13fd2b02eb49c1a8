/* tell.h - sends messages and reports of trouble to the controller.
 *
 * This is the lowest module that sends: every other module may call it, and it calls none of them.
 * tell_last requests the end of the agent; the loop carries it out once the controller has received
 * all messages.
 */
#ifndef AGENT_TELL_H
#define AGENT_TELL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "wire/msg.h"
#include "wire/post.h"

struct agent;

/* Warnings and errors that have not been sent to the controller yet. */
struct log_lines {
	struct msg_log list[8]; /* (n) the oldest first */
	uint32_t n, dropped;    /* dropped: further lines, which the list had no room for */
	int64_t next_us;        /* when the next one may be sent */
};

/* Numbers, encodes and sends *m with its body. A RELIABLE message that cannot be sent is counted as
 * dropped and logged. */
void tell_controller(struct agent *a, struct msg *m, enum post_flags flags, int64_t now_us);
/* Sends and logs a TROUBLE message with this text. fatal: the agent then ends with status 1. */
void tell_trouble(struct agent *a, bool fatal, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Logs a warning or an error, and keeps it for the controller. */
void tell_log(struct agent *a, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Sends the oldest line kept by tell_log: one a second, once a controller has admitted the agent.
 */
void tell_turn(struct agent *a, int64_t now_us);
/* Requests the end of the agent with this exit status, once all messages are acknowledged or
 * overdue (a second, or three timeouts of the link). A second call changes nothing. */
void tell_last(struct agent *a, int status, int64_t now_us);

#endif
