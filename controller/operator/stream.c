/* stream.c - messages to consoles, numbered for each of them: who loses one gets a fresh snapshot (consoles.c). */
#include "controller/operator/stream.h"

#include <errno.h>

#include "controller/controller.h"
#include "controller/operator/console_messages.h"

struct console *console_of_peer(struct controller *c, post_peer_id peer)
{
	for (uint32_t i = 0; i < c->stream.n_consoles; i++)
		if (c->stream.consoles[i].peer == peer)
			return &c->stream.consoles[i];
	return NULL;
}

void console_send(struct controller *c, struct console *to, struct msg *m)
{
	int rc;

	m->sequence = ++to->sequence;
	rc = send_message_to(c->post, to->peer, m, c->now_us);
	if (rc == -EINVAL || rc == -ENOMEM) {
		log_line(&c->log, LOG_ERROR, "cannot encode %s", msg_name(m->type));
	} else if (rc != 0) {
		to->dropped++;
		to->lagging = true;
	}
}

void consoles_tell(struct controller *c, struct msg *m)
{
	for (uint32_t i = 0; i < c->stream.n_consoles; i++)
		if (c->stream.consoles[i].live && !c->stream.consoles[i].lagging)
			console_send(c, &c->stream.consoles[i], m);
}
