/* tell.c - encodes and sends messages to the controller, and requests the end of the agent. */
#include "agent/tell.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "base/alloc.h"

enum {
	LEAVE_US = 1000000, /* time for the last message to be acknowledged, or */
	LEAVE_TIMES = 3,    /* so many timeouts of the link, if that is longer */
	LINGER_US = 30000   /* time for acknowledgements of received messages to leave */
};

void tell_controller(struct agent *a, struct msg *m, enum post_flags flags, int64_t now_us)
{
	size_t size = msg_size(m);
	struct post_part parts[2];
	void *bytes;
	int rc = -EINVAL;

	m->sequence = ++a->tally.sequence;
	bytes = alloc_new(size);
	if (size && msg_encode(m, bytes, size) == (long)size) {
		parts[0] = (struct post_part) { bytes, size };
		parts[1] = (struct post_part) { m->body, m->body_size };
		rc = post_send(a->control, a->controller, parts, m->body_size ? 2 : 1, flags,
			       now_us);
	}
	free(bytes);
	if (rc < 0 && !(flags & POST_LOSSY)) {
		a->tally.dropped++;
		log_line(a->options.log, LOG_ERROR, "%s for the controller dropped: %s",
			 msg_name(m->type), strerror(-rc));
	}
}

void tell_last(struct agent *a, int status, int64_t now_us)
{
	struct post_peer_info info = { .rto_us = 0 };

	if (a->end.leaving)
		return;
	post_peer(a->control, a->controller, &info);
	a->end.leaving = true;
	a->end.status = status;
	a->end.leave_from_us = now_us + LINGER_US;
	a->end.leave_by_us =
		now_us +
		(LEAVE_US > LEAVE_TIMES * info.rto_us ? LEAVE_US : LEAVE_TIMES * info.rto_us);
}

void tell_trouble(struct agent *a, bool fatal, const char *format, ...)
{
	struct msg m = { .type = MSG_TROUBLE };
	va_list ap;

	va_start(ap, format);
	vsnprintf(m.u.trouble.text, sizeof(m.u.trouble.text), format, ap);
	va_end(ap);
	m.u.trouble.fatal = fatal;
	m.u.trouble.refused_node = -1;
	log_line(a->options.log, fatal ? LOG_ERROR : LOG_WARN, "%s", m.u.trouble.text);
	tell_controller(a, &m, POST_RELIABLE, a->now_us);
	if (fatal)
		tell_last(a, 1, a->now_us);
}
