/* Keeps the messages of a session and makes the state of any past time from them. */
#include "tui/run/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"

struct entry {
	int64_t at_us;
	size_t offset, size;
};

struct history {
	unsigned char *bytes;
	size_t n_bytes, room_bytes, most_bytes;
	struct entry *entries;
	size_t n, room;
};

struct history *history_new(size_t most_bytes)
{
	struct history *h = alloc_new(sizeof(*h));

	h->most_bytes = most_bytes;
	return h;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	free(h->bytes);
	free(h->entries);
	free(h);
}

void history_clear(struct history *h)
{
	h->n = 0;
	h->n_bytes = 0;
}

int history_append(struct history *h, int64_t at_us, const void *data, size_t size)
{
	if (h->n_bytes + size > h->most_bytes)
		return -ENOSPC;
	array_reserve(&h->bytes, &h->room_bytes, h->n_bytes + size, 1);
	array_reserve(&h->entries, &h->room, h->n + 1, sizeof(*h->entries));
	if (h->n > 0 && at_us < h->entries[h->n - 1].at_us)
		at_us = h->entries[h->n - 1].at_us;
	memcpy(h->bytes + h->n_bytes, data, size);
	h->entries[h->n++] = (struct entry){ at_us, h->n_bytes, size };
	h->n_bytes += size;
	return 0;
}

size_t history_count(const struct history *h)
{
	return h->n;
}

int64_t history_at(const struct history *h, size_t i)
{
	return h->entries[i].at_us;
}

int64_t history_first_us(const struct history *h)
{
	return h->n ? h->entries[0].at_us : 0;
}

int64_t history_last_us(const struct history *h)
{
	return h->n ? h->entries[h->n - 1].at_us : 0;
}

static enum msg_type type_of(const struct history *h, size_t i)
{
	const unsigned char *p = h->bytes + h->entries[i].offset;

	return h->entries[i].size < 8 ? (enum msg_type)0 : (enum msg_type)(p[4] | p[5] << 8);
}

void history_apply(const struct history *h, size_t i, struct state *s)
{
	struct msg m;

	if (msg_decode(&m, h->bytes + h->entries[i].offset, h->entries[i].size) != 0)
		return;
	state_apply(s, &m);
	msg_clear(&m);
}

void history_seek(const struct history *h, int64_t at_us, struct state **s, size_t *applied,
		 int64_t *status_at_us)
{
	if (*applied > h->n || (*applied > 0 && h->entries[*applied - 1].at_us > at_us)) {
		state_free(*s);
		*s = state_new();
		*applied = 0;
	}
	while (*applied < h->n && h->entries[*applied].at_us <= at_us)
		history_apply(h, (*applied)++, *s);
	*status_at_us = at_us;
	for (size_t i = *applied; i > 0; i--) {
		if (type_of(h, i - 1) == MSG_SEE_STATUS) {
			*status_at_us = h->entries[i - 1].at_us;
			break;
		}
	}
}

static bool is_event(const struct history *h, size_t i)
{
	struct msg m;
	bool event;

	if (type_of(h, i) != MSG_SEE_NOTE ||
	    msg_decode(&m, h->bytes + h->entries[i].offset, h->entries[i].size) != 0)
		return false;
	event = m.u.see_note.kind != NOTE_LOG;
	msg_clear(&m);
	return event;
}

/* Returns the index of the first message after the first snapshot. */
static size_t first_live(const struct history *h)
{
	for (size_t i = 0; i < h->n; i++)
		if (type_of(h, i) == MSG_SEE_SYNCED)
			return i + 1;
	return h->n;
}

int64_t history_nearest_event(const struct history *h, int64_t at_us, int direction)
{
	size_t first = first_live(h);

	if (direction > 0) {
		for (size_t i = first; i < h->n; i++)
			if (h->entries[i].at_us > at_us && is_event(h, i))
				return h->entries[i].at_us;
		return -1;
	}
	for (size_t i = h->n; i > first; i--)
		if (h->entries[i - 1].at_us < at_us && is_event(h, i - 1))
			return h->entries[i - 1].at_us;
	return -1;
}
