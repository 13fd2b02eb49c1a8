/* stream.c - sends messages to consoles, numbered for each of them.
 *
 * A console detects a lost message by its number. The controller never waits for a console: if
 * there is no room, it drops the message and sends a new snapshot later (consoles.c). */
#include "controller/run/stream.h"

#include <errno.h>

#include "controller/operator/console_messages.h"
#include "controller/run/run.h"

struct console *console_of_peer(struct run *run, post_peer_id peer)
{
	for (uint32_t i = 0; i < run->stream.n_consoles; i++)
		if (run->stream.consoles[i].peer == peer)
			return &run->stream.consoles[i];
	return NULL;
}

void console_send(struct run *run, struct console *to, struct msg *m)
{
	int rc;

	m->sequence = ++to->sequence;
	rc = send_message_to(run->post, to->peer, m, run->now_us);
	if (rc == -EINVAL) {
		log_line(&run->log, LOG_ERROR, "cannot encode %s", msg_name(m->type));
	} else if (rc != 0) {
		to->dropped++;
		to->lagging = true;
	}
}

void consoles_tell(struct run *run, struct msg *m)
{
	for (uint32_t i = 0; i < run->stream.n_consoles; i++)
		if (run->stream.consoles[i].live && !run->stream.consoles[i].lagging)
			console_send(run, &run->stream.consoles[i], m);
}
