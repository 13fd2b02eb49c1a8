/* Sends commands to the controller and shows messages. A command that changes the run needs the
 * operator's lease. If this console does not have the lease, it requests the lease first, and
 * sends the command when the controller grants the lease. */
#include "tui/input/ui.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TOAST_US = 6000000, LEASE_S = 600 };

void ui_say(struct ui *u, enum style style, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(u->message.text, sizeof(u->message.text), format, args);
	va_end(args);
	u->message.style = style;
	u->message.until_us = u->clock.local_us + TOAST_US;
}

bool ui_has_lease(const struct ui *u, const struct state *s)
{
	return *s->status.lease && *u->authority.name &&
	       strcmp(s->status.lease, u->authority.name) == 0;
}

const char *ui_watch_reason(const struct ui *u)
{
	return u->authority.readonly  ? "this console only watches (--readonly)"
	       : u->authority.admitted_to_watch ? "this console was admitted to watch only"
			    : NULL;
}

static uint64_t queue_command(struct ui *u, struct msg_command c)
{
	if (u->outbox.n == UI_OUTBOX) {
		ui_say(u, STYLE_WARNING, "not sent: too many commands are unanswered");
		return 0;
	}
	c.id = ++u->outbox.last_id;
	u->outbox.commands[u->outbox.n++] = c;
	return c.id;
}

/* Requests the lease, and keeps the command `then` until the lease is granted. The request is
 * sent even if another console seems to have the lease: this console may have got the lease
 * before it was restarted, under the same name. A refusal says who has the lease and for how
 * long. */
static void ask_lease(struct ui *u, struct msg_command then)
{
	struct msg_command arm = {
		.verb = COMMAND_ARM, .node = -1, .peer = -1, .value = LEASE_S
	};

	u->authority.waiting = then;
	u->authority.has_waiting = true;
	u->authority.lease_request = queue_command(u, arm);
	ui_say(u, STYLE_WARNING, "requesting the operator's lease for 10 minutes, to %s",
	       verb_name(then.verb));
}

/* Without a connection, or while the screen shows the past, no command is sent, except a what-if of
 * the past. A console that only watches sends requests for previews and plans. In a replay, it
 * sends all other commands too. All commands that change a live run need the lease. */
uint64_t ui_send(struct ui *u, const struct state *s, struct msg_command c)
{
	const char *never = s->run.replay || c.verb == COMMAND_COMPARE ? NULL : ui_watch_reason(u);

	if (u->connection.state != UI_LIVE) {
		if (!*c.text)
			ui_say(u, STYLE_WARNING, "not sent: %s",
			       u->connection.state == UI_RECORDED ? "this is a recorded run"
			       : never ? never /* reconnecting would not help */
				       : "the controller cannot be reached");
		return 0;
	}
	if (u->clock.behind_us > 0 && strncmp(c.text, "branch", 6) != 0) {
		if (!*c.text)
			ui_say(u, STYLE_WARNING,
			       "not sent: the screen shows the past; L returns to now");
		return 0;
	}
	if (strncmp(c.text, "preview", strlen("preview")) == 0)
		return queue_command(u, c);
	if (never) {
		ui_say(u, STYLE_WARNING, "not sent: %s", never);
		return 0;
	}
	if (c.verb == COMMAND_ARM) {
		u->authority.lease_request = c.value > 0 ? queue_command(u, c) : 0;
		return u->authority.lease_request ? u->authority.lease_request
		       : c.value > 0              ? 0
						  : queue_command(u, c);
	}
	if (c.verb == COMMAND_COMPARE || c.verb == COMMAND_SEEK)
		return queue_command(u, c);
	if (c.verb != COMMAND_ACK && c.verb != COMMAND_STAGES && c.verb != COMMAND_HOURS &&
	    !s->run.replay && (!ui_has_lease(u, s) || s->status.lease_us < 5000000)) {
		ask_lease(u, c);
		return 0;
	}
	ui_say(u, STYLE_TEXT, "%s sent", verb_name(c.verb));
	return queue_command(u, c);
}

void ui_take_reply(struct ui *u, const struct msg_see_reply *r)
{
	bool arming = u->authority.lease_request && r->command == u->authority.lease_request,
	     had = arming && u->authority.has_waiting;

	for (uint32_t k = 0; k < u->compare.n; k++)
		if (u->compare.candidates[k].id == r->command && r->command)
			return; /* the answer is a plan for the Compare view, which draws it */
	if (arming) {
		u->authority.lease_request = 0;
		u->authority.has_waiting = false;
	}
	if (r->status != 0) {
		ui_say(u, STYLE_ALERT, "refused: %s",
		       *r->text ? r->text : strerror(-r->status));
	} else if (had) {
		ui_say(u, STYLE_WARNING,
		       "this console has the operator's lease (:arm off returns it); %s sent",
		       verb_name(u->authority.waiting.verb));
		queue_command(u, u->authority.waiting);
	} else if (*r->text) {
		ui_say(u, STYLE_GOOD, "%s", r->text);
	}
}
