/* transit.c - hands frames to the threads that seal and open them, and takes them back in the same
 * order. The order must stay, because a channel takes an overtaken chunk for lost. */
#include "wire/sessions/transit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/sessions/frame.h"

/* Number of bytes counted for each frame in addition to its content. This limits the number of
 * small frames in transit. */
#define TRANSIT_BYTES 4096

void link_fill(uint8_t *content, size_t size, const struct link_source *source)
{
	uint8_t *to = content + size;
	for (int i = LINK_PIECES - 1; i >= 0; i--) {
		const struct link_piece *piece = &source->pieces[i];
		to -= piece->size;
		if (piece->size > 0)
			memcpy(to, piece->data, piece->size);
	}
}

/* Seals a frame. libcrypto encrypts the source directly into the frame, which saves a copy. If
 * libcrypto cannot be used, the source is copied first. */
static void seal_frame(struct sealer_job *job, struct aes_gcm *aes)
{
	struct transit *t = (struct transit *)job;
	uint8_t *content = t->frame + FRAME_DATA_HEAD;
	struct aes_gcm_piece pieces[1 + LINK_PIECES] = {{content, t->size}};
	for (int i = 0; i < LINK_PIECES; i++) {
		const struct link_piece *piece = &t->source.pieces[i];
		pieces[0].size -= piece->size;
		pieces[1 + i] = (struct aes_gcm_piece){piece->data, piece->size};
	}
	if (seal_close_by(aes, t->key, t->counter, t->frame, FRAME_DATA_HEAD, pieces,
		    1 + LINK_PIECES, content) == 0)
		return;
	link_fill(content, t->size, &t->source);
	seal_close(t->key, t->counter, t->frame, FRAME_DATA_HEAD, content, t->size);
}

static void open_frame(struct sealer_job *job, struct aes_gcm *aes)
{
	struct transit *t = (struct transit *)job;
	uint8_t *content = t->frame + FRAME_DATA_HEAD;
	t->rc = seal_open_by(aes, t->key, t->counter, t->frame, FRAME_DATA_HEAD, content, t->size);
	if (t->rc != 0 && t->rc != -EBADMSG)
		t->rc = seal_open(t->key, t->counter, t->frame, FRAME_DATA_HEAD, content, t->size);
}

static bool add_transit(struct transits *list, struct sealers *s, const struct transit *of,
	void (*run)(struct sealer_job *, struct aes_gcm *), bool by_loop)
{
	struct transit *t = malloc(sizeof(*t));
	if (t == NULL)
		return false;
	*t = *of;
	t->job = (struct sealer_job){.run = run, .state = SEALER_ENDED};
	t->next = NULL;
	if (list->first == NULL)
		list->end = &list->first;
	*list->end = t;
	list->end = &t->next;
	list->bytes += t->size + TRANSIT_BYTES;
	if (by_loop)
		run(&t->job, NULL);
	else
		sealers_add(s, &t->job);
	return true;
}

bool transit_seal(struct transits *list, struct sealers *s, const struct transit *t, bool by_loop)
{
	return add_transit(list, s, t, seal_frame, by_loop);
}

bool transit_open(struct transits *list, struct sealers *s, const struct transit *t, bool by_loop)
{
	return add_transit(list, s, t, open_frame, by_loop);
}

static void remove_at(struct transits *list, struct transit **at)
{
	struct transit *t = *at;
	*at = t->next;
	if (*at == NULL)
		list->end = at;
	list->bytes -= t->size + TRANSIT_BYTES;
	if (t->source.release != NULL)
		t->source.release(t->source.context);
	free(t);
}

bool transit_take(struct transits *list, struct sealers *s, struct transit *out)
{
	if (list->first == NULL || !sealers_ended(s, &list->first->job))
		return false;
	*out = *list->first;
	remove_at(list, &list->first);
	return true;
}

bool transit_has(const struct transits *list, uint32_t session)
{
	for (const struct transit *t = list->first; t != NULL; t = t->next) {
		if (t->session == session)
			return true;
	}
	return false;
}

void transit_drop(struct transits *list, struct sealers *s, uint32_t session)
{
	for (struct transit **at = &list->first; *at != NULL;) {
		if (session != 0 && (*at)->session != session) {
			at = &(*at)->next;
			continue;
		}
		sealers_cancel(s, &(*at)->job);
		socket_frame_free((*at)->frame);
		remove_at(list, at);
	}
}
