/* Keeps the messages of a session, and makes the state of any past time from them.
 *
 * Checkpoints of the state are `spacing` bytes of messages apart. When the checkpoints take too
 * much memory, every second one is dropped and `spacing` is doubled.
 */
#include "tui/run/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "tui/run/checkpoint.h"

/* Largest number of checkpoints. A history that is full of messages has this many checkpoints,
 * unless they are large. */
enum { CHECKPOINTS = 128 };

struct entry {
	int64_t at_us;
	size_t offset, size;
};

/* A checkpoint: the state after the first `applied` messages. offset: size of all these messages,
 * in bytes. */
struct mark {
	struct checkpoint state;
	size_t applied, offset;
};

struct history {
	unsigned char *bytes;
	size_t n_bytes, room_bytes, most_bytes;
	struct entry *entries;
	size_t n, room;
	struct mark marks[CHECKPOINTS + 1]; /* in ascending order of time */
	unsigned n_marks;
	size_t spacing; /* least distance of two checkpoints, in bytes of messages */
	size_t due;     /* number of bytes of messages after which the next checkpoint is due */
	size_t mark_bytes;
};

struct history *history_new(size_t most_bytes)
{
	struct history *h = alloc_new(sizeof(*h));

	h->most_bytes = most_bytes;
	h->spacing = most_bytes / CHECKPOINTS;
	return h;
}

static void drop_mark(struct history *h, unsigned i)
{
	h->mark_bytes -= h->marks[i].state.n;
	checkpoint_fini(&h->marks[i].state);
	h->n_marks--;
	memmove(&h->marks[i], &h->marks[i + 1], (h->n_marks - i) * sizeof(h->marks[0]));
}

void history_free(struct history *h)
{
	if (!h)
		return;
	history_clear(h);
	free(h->bytes);
	free(h->entries);
	free(h);
}

void history_clear(struct history *h)
{
	h->n = 0;
	h->n_bytes = 0;
	while (h->n_marks > 0)
		drop_mark(h, h->n_marks - 1);
	h->spacing = h->most_bytes / CHECKPOINTS;
	h->due = 0;
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

/* Returns how many bytes the first `applied` messages have. */
static size_t offset_of(const struct history *h, size_t applied)
{
	return applied < h->n ? h->entries[applied].offset : h->n_bytes;
}

/* Drops every second checkpoint, except the first, until the number and the memory of the
 * remaining checkpoints are within their limits. */
static void thin_out(struct history *h)
{
	while (h->n_marks > 1 && (h->n_marks > CHECKPOINTS || h->mark_bytes > h->most_bytes)) {
		for (unsigned i = 1; i < h->n_marks; i++)
			drop_mark(h, i);
		h->spacing *= 2;
	}
}

void history_keep(struct history *h, size_t applied, const struct state *s)
{
	size_t offset = offset_of(h, applied);
	struct mark m = { .applied = applied, .offset = offset };

	if (offset < h->due)
		return;
	m.state = checkpoint_of(s);
	h->mark_bytes += m.state.n;
	h->marks[h->n_marks++] = m;
	thin_out(h);
	h->due = offset + h->spacing;
}

/* Returns the newest checkpoint that is not later than at_us; NULL: none. */
static const struct mark *mark_before(const struct history *h, int64_t at_us)
{
	for (unsigned i = h->n_marks; i > 0; i--) {
		size_t applied = h->marks[i - 1].applied;

		if (applied == 0 || h->entries[applied - 1].at_us <= at_us)
			return &h->marks[i - 1];
	}
	return NULL;
}

/* Chooses the state from which the state at the time at_us is made. *s stays if none of its
 * messages is later than at_us, and if it has at least as many messages as the newest checkpoint
 * before at_us. Otherwise the state of this checkpoint replaces *s. If there is no checkpoint, an
 * empty state replaces *s. */
static void choose_start(const struct history *h, int64_t at_us, struct state **s, size_t *applied)
{
	bool is_later = *applied > h->n ||
			(*applied > 0 && h->entries[*applied - 1].at_us > at_us);
	const struct mark *m = mark_before(h, at_us);

	if (!is_later && (!m || m->applied <= *applied))
		return;
	state_free(*s);
	*s = m ? checkpoint_state(&m->state) : state_new();
	*applied = m ? m->applied : 0;
}

size_t history_seek(struct history *h, int64_t at_us, struct state **s, size_t *applied,
		    int64_t *status_at_us)
{
	size_t from;

	choose_start(h, at_us, s, applied);
	from = offset_of(h, *applied);
	while (*applied < h->n && h->entries[*applied].at_us <= at_us) {
		history_apply(h, (*applied)++, *s);
		history_keep(h, *applied, *s);
	}
	*status_at_us = at_us;
	for (size_t i = *applied; i > 0; i--) {
		if (type_of(h, i - 1) == MSG_SEE_STATUS) {
			*status_at_us = h->entries[i - 1].at_us;
			break;
		}
	}
	return offset_of(h, *applied) - from;
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

/* Returns the index of the first message after the first snapshot, with which a session begins. */
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
