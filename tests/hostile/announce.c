/* announce.c - sends one chunk of a message and never the other chunks. A post does not offer
 * this, so this file uses the internals of wire/delivery. */
#include <string.h>

#include "tests/hostile/hostile.h"
#include "wire/delivery/post_frame.h"
#include "wire/delivery/post_private.h"

bool announce_one(struct post *p, uint32_t id, uint64_t number, uint64_t total, uint32_t chunks,
		  int64_t now_us)
{
	struct peer *peer = post_peer_find(p, id);
	const size_t size = (size_t)((total + chunks - 1) / chunks);
	struct post_frame f = { .kind = POST_FRAME_CHUNK,
				.class = POST_CLASS_WEIGHTS,
				.chunk = { .number = number,
					   .total = total,
					   .chunks = chunks,
					   .size = size } };
	uint8_t *content;

	if (!peer || peer->session == 0)
		return false;
	content = link_buffer(POST_FRAME_HEAD + size);
	if (!content)
		return false;
	post_frame_put_head(content, &f);
	memset(content + POST_FRAME_HEAD, 1, size);
	return link_send(peer->line->link, peer->session, POST_TRUNK_CONTROL, content,
			 POST_FRAME_HEAD + size, now_us) == 0;
}
