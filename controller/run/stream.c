/* stream.c - sends messages to consoles, with a sequence number for each console.
 *
 * A gap in these numbers shows a console that it has lost a message. The controller never waits for
 * a console. If the console's queue has no room, the controller drops the message and sends a new
 * snapshot later (consoles.c). */
#include "controller/run/stream.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "controller/run/run.h"

int send_message_to(struct post *post, post_peer_id to, const struct msg *m, int64_t now_us)
{
	unsigned char small[2048];
	size_t size = msg_size(m);
	unsigned char *data = size > sizeof(small) ? alloc_resize(NULL, size, 1) : small;
	struct post_part part = { data, size };
	int rc = -EINVAL;

	if (size > 0 && msg_encode(m, data, size) >= 0)
		rc = post_send(post, to, &part, 1, POST_RELIABLE, now_us);
	if (data != small)
		free(data);
	return rc;
}

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
