/* history.h - every message of this session, so that the picture can go back in time: a state
 * is the fold of the messages, so the state of any past moment is the fold of those up to it.
 *
 * Bounded: when it is full nothing more is taken, and the owner clears it and begins anew with
 * a snapshot.
 */
#ifndef TUI_HISTORY_H
#define TUI_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "tui/run/state.h"

struct history; /* opaque */

struct history *history_new(size_t most_bytes);
void history_free(struct history *h); /* NULL is allowed */
void history_clear(struct history *h);

/* Appends a copy of the message. at_us never decreases. -ENOSPC: the history is full. */
int history_append(struct history *h, int64_t at_us, const void *data, size_t size);
/* Messages held. */
size_t history_count(const struct history *h);
/* When the i-th came. */
int64_t history_at(const struct history *h, size_t i);
int64_t history_first_us(const struct history *h); /* 0 when empty */
int64_t history_last_us(const struct history *h);

/* Applies message i to the state; what cannot be decoded is passed over. */
void history_apply(const struct history *h, size_t i, struct state *s);
/* The state at a moment: all messages with at <= at_us. Replaces *s (which may be of any later
 * or earlier moment; *applied says how many messages it holds), building anew only to go back.
 * *status_at_us: when its last status came. */
void history_seek(const struct history *h, int64_t at_us, struct state **s, size_t *applied,
		 int64_t *status_at_us);
/* The moment of the nearest journal entry (logs apart) before or after at_us; -1 none. What
 * came with a snapshot is no event. */
int64_t history_event(const struct history *h, int64_t at_us, int direction);

#endif
