/* history.h - every message of this session, so that the screen can show the past. A state is
 * made by applying messages one after another. Checkpoints, copies of earlier states, are kept
 * between the messages, so that the state of a past time is made from the nearest checkpoint before
 * it and the messages after that checkpoint.
 *
 * The history is bounded. When it is full it takes no further message; its owner clears it and
 * starts again with a snapshot.
 */
#ifndef TUI_HISTORY_H
#define TUI_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "tui/run/state.h"

struct history; /* opaque */

/* most_bytes: limit of the bytes of all messages, and of all checkpoints. */
struct history *history_new(size_t most_bytes);
void history_free(struct history *h); /* h may be NULL */
void history_clear(struct history *h);

/* Appends a copy of the message. at_us never decreases. -ENOSPC: the history is full. */
int history_append(struct history *h, int64_t at_us, const void *data, size_t size);
/* Returns the number of messages. */
size_t history_count(const struct history *h);
/* Returns the arrival time of message i. */
int64_t history_at(const struct history *h, size_t i);
/* Returns the time of the first message; 0 when the history is empty. */
int64_t history_first_us(const struct history *h);
int64_t history_last_us(const struct history *h);

/* Applies message i to the state. A message that cannot be decoded is skipped. */
void history_apply(const struct history *h, size_t i, struct state *s);
/* Keeps a copy of the state after the first `applied` messages, unless the previous checkpoint is
 * near. The first checkpoint is never dropped while the history lasts. */
void history_keep(struct history *h, size_t applied, const struct state *s);
/* Changes *s to the state at the time at_us, after all messages that arrived until then. *s may be
 * the state at any other time; *applied is the number of messages in it. *status_at_us: arrival
 * time of its newest status. Returns the bytes of the messages that it applied: at most the
 * distance of two checkpoints for a step back. */
size_t history_seek(struct history *h, int64_t at_us, struct state **s, size_t *applied,
		    int64_t *status_at_us);
/* Returns the time of the nearest journal entry before or after at_us; -1: none. Log entries and
 * entries of the first snapshot do not count. */
int64_t history_nearest_event(const struct history *h, int64_t at_us, int direction);

#endif
