/* link_transit.c - the frames of a link that threads seal and open. All state that depends on the
 * order of frames stays with the loop's thread: frame counters, the window of seen counters, the
 * states of sessions. */
#include <errno.h>

#include "wire/sessions/session.h"

/* Returns 0 if another frame for the trunk may be given to the threads; otherwise -EBUSY or
 * -EAGAIN (link_send_from). While a trunk to another machine is full, its frames are not sealed,
 * because sealed frames delay urgent frames that come later. Frames that a listener sends, and
 * frames to a peer on this machine, are sealed even if the trunk is full. */
static int check_trunk(struct link *link, unsigned trunk)
{
	const bool near = link->listens || socket_is_near(link->address);
	if (link->transits.sealing[trunk].bytes >= (near ? TRANSIT_MOST : TRANSIT_FAR_MOST))
		return -EBUSY;
	return near || link_is_writable(link, trunk) ? 0 : -EAGAIN;
}

static void release_source(const struct link_source *source)
{
	if (source->release != NULL)
		source->release(source->context);
}

/* Hands a frame to the threads. A small frame is handed over only while earlier frames of the
 * trunk are in transit. The caller's thread seals the small frame at once, and the frame is sent
 * after the earlier frames. */
static int hand_over(struct link *link, uint32_t session, unsigned trunk, uint8_t *content,
	size_t size, const struct link_source *source, int64_t now_us)
{
	struct session *s = session_find(link, session);
	uint8_t *frame = content - FRAME_DATA_HEAD;
	int rc = session_may_send(s) ? check_trunk(link, trunk) : -ENOTCONN;
	if (rc < 0)
		return rc;
	frame_put_data_head(frame, s->remote_id, s->counter);
	const struct transit t = {.session = session, .key = &s->send, .counter = s->counter,
		.frame = frame, .size = size, .source = *source};
	if (!transit_seal(&link->transits.sealing[trunk], link->options.sealers, &t,
		    size < TRANSIT_LEAST))
		return -ENOMEM;
	session_count_sent(link, s, size, now_us);
	return 0;
}

int link_send_from(struct link *link, uint32_t session, unsigned trunk, uint8_t *content,
	size_t size, const struct link_source *source, int64_t now_us)
{
	const bool is_free = link->transits.sealing[trunk].first == NULL;
	const bool by_loop = link->options.sealers == NULL || source->at_once ||
			     (size < TRANSIT_LEAST && is_free);
	if (by_loop) {
		link_fill(content, size, source);
		release_source(source);
		return link_send(link, session, trunk, content, size, now_us);
	}
	const int rc = hand_over(link, session, trunk, content, size, source, now_us);
	if (rc < 0) {
		link_buffer_free(content);
		release_source(source);
	}
	return rc;
}

void link_transmit_sealed(struct link *link)
{
	handshake_send_waiting(link);
	for (unsigned trunk = 0; trunk < LINK_TRUNKS; trunk++) {
		struct transits *list = &link->transits.sealing[trunk];
		struct transit t;
		while (list->first != NULL &&
		       sealers_ended(link->options.sealers, &list->first->job) &&
		       link_is_writable(link, trunk) &&
		       transit_take(list, link->options.sealers, &t)) {
			const struct session *s = session_find(link, t.session);
			(void)link_transmit(link, trunk, &s->route, t.frame,
				t.size + LINK_OVERHEAD);
		}
	}
}

bool link_opens_later(struct link *link, const struct session *s, const struct frame *f,
	uint8_t *bytes, const struct socket_route *route)
{
	const bool is_small = f->body_size < TRANSIT_LEAST;
	if (link->options.sealers == NULL || s->state != SESSION_LIVE ||
	    (is_small && !transit_has(&link->transits.opening, s->id)))
		return false;
	const struct transit t = {.session = s->id, .key = &s->receive, .counter = f->counter,
		.frame = bytes, .size = f->body_size, .route = *route};
	return transit_open(&link->transits.opening, link->options.sealers, &t, is_small);
}

bool link_has_opened(const struct link *link)
{
	const struct transit *first = link->transits.opening.first;
	return first != NULL && sealers_ended(link->options.sealers, &first->job);
}

bool link_full(const struct link *link)
{
	return link->transits.opening.bytes >= TRANSIT_MOST;
}

bool link_in_transit(const struct link *link)
{
	bool any = link->transits.opening.first != NULL;
	for (unsigned trunk = 0; trunk < LINK_TRUNKS; trunk++)
		any = any || link->transits.sealing[trunk].first != NULL;
	return any;
}

void link_drop_transits(struct link *link, uint32_t session)
{
	if (link->options.sealers == NULL)
		return;
	for (unsigned trunk = 0; trunk < LINK_TRUNKS; trunk++)
		transit_drop(&link->transits.sealing[trunk], link->options.sealers, session);
	transit_drop(&link->transits.opening, link->options.sealers, session);
}
