/* tell.c - encodes and sends messages to the controller, and requests that the agent ends. */
#include "agent/shared/tell.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum {
	LOG_EVERY_US = 1000000,
	/* Time limit for the controller's acknowledgement of the last message. */
	LEAVE_US = 1000000,
	/* If LEAVE_TIMES times the link's timeout is longer than LEAVE_US, the time limit is this
	 * product. */
	LEAVE_TIMES = 3,
	/* The process waits for this time before it ends, so that acknowledgements of received
	 * messages can leave. */
	LINGER_US = 30000
};

void tell_controller(struct tell *t, struct msg *m, enum post_flags flags, int64_t now_us)
{
	size_t size = msg_size(m);
	struct post_part parts[2];
	void *bytes;
	int rc = -EINVAL;

	m->sequence = ++t->tally.sequence;
	bytes = alloc_new(size);
	if (size && msg_encode(m, bytes, size) == (long)size) {
		parts[0] = (struct post_part) { bytes, size };
		parts[1] = (struct post_part) { m->body, m->body_size };
		rc = post_send(t->post, t->controller, parts, m->body_size ? 2 : 1, flags, now_us);
	}
	free(bytes);
	if (rc < 0 && !(flags & POST_LOSSY)) {
		t->tally.dropped++;
		log_line(t->log, LOG_ERROR, "%s for the controller dropped: %s", msg_name(m->type),
			 strerror(-rc));
	}
}

bool tell_drain(struct tell *t, uint32_t notice_s, int64_t now_us)
{
	struct post_peer_info info = { .up = false };

	if (t->end.drain_by_us || notice_s == 0 ||
	    post_peer(t->post, t->controller, &info) != 0 || !info.up)
		return false;
	t->end.drain_by_us = now_us + (int64_t)notice_s * 1000000;
	log_line(t->log, LOG_INFO,
		 "draining: the agent leaves when its stage does not need it, in %u s at the "
		 "latest; another signal ends it at once",
		 notice_s);
	return true;
}

void tell_last(struct tell *t, int status, int64_t now_us)
{
	struct post_peer_info info = { .rto_us = 0 };

	if (t->end.leaving)
		return;
	post_peer(t->post, t->controller, &info);
	t->end.leaving = true;
	t->end.status = status;
	t->end.leave_from_us = now_us + LINGER_US;
	t->end.leave_by_us =
		now_us +
		(LEAVE_US > LEAVE_TIMES * info.rto_us ? LEAVE_US : LEAVE_TIMES * info.rto_us);
}

void tell_trouble(struct tell *t, bool fatal, const char *format, ...)
{
	struct msg m = { .type = MSG_TROUBLE };
	va_list ap;

	va_start(ap, format);
	vsnprintf(m.u.trouble.text, sizeof(m.u.trouble.text), format, ap);
	va_end(ap);
	m.u.trouble.fatal = fatal;
	m.u.trouble.refused_node = -1;
	log_line(t->log, fatal ? LOG_ERROR : LOG_WARN, "%s", m.u.trouble.text);
	tell_controller(t, &m, POST_RELIABLE, t->now_us);
	if (fatal)
		tell_last(t, 1, t->now_us);
}

void tell_log(struct tell *t, enum log_level level, const char *format, ...)
{
	struct log_lines *kept = &t->lines;
	struct msg_log line = { .level = (uint8_t)level, .dropped = kept->dropped };
	char text[1024];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	log_line(t->log, level, "%s", text);
	snprintf(line.text, sizeof(line.text), "%.*s", (int)sizeof(line.text) - 1, text);
	if (kept->n == sizeof(kept->list) / sizeof(kept->list[0])) {
		kept->dropped++;
		return;
	}
	kept->list[kept->n++] = line;
	kept->dropped = 0;
}

void tell_turn(struct tell *t, int64_t now_us)
{
	struct log_lines *kept = &t->lines;
	struct msg m = { .type = MSG_LOG, .u.log = kept->list[0] };

	if (kept->n == 0 || now_us < kept->next_us)
		return;
	kept->next_us = now_us + LOG_EVERY_US;
	memmove(kept->list, kept->list + 1, --kept->n * sizeof(kept->list[0]));
	tell_controller(t, &m, POST_RELIABLE, now_us);
}

/* Returns true if the value is plausible for a clock. Sums of two such values cannot overflow. */
static bool is_clock(int64_t us)
{
	return us >= -INT64_MAX / 8 && us <= INT64_MAX / 8;
}

void tell_set_clock(struct tell *t, const struct msg_ping *ping)
{
	t->clock = (struct controller_clock){ ping->offset_us,
					      ping->is_measured && is_clock(ping->offset_us) };
}

int64_t tell_to_controller_us(const struct tell *t, int64_t own_us)
{
	return t->clock.is_measured ? own_us + t->clock.offset_us : 0;
}

int64_t tell_from_controller_us(const struct tell *t, int64_t controller_us)
{
	return t->clock.is_measured && controller_us != 0 && is_clock(controller_us)
		       ? controller_us - t->clock.offset_us
		       : 0;
}
