/* history.h - every message of this session, so that the screen can show the past.
 *
 * A state is made by applying messages one after another. The history keeps checkpoints, which
 * are copies of states, among the messages. The state of a past time is made from the newest
 * checkpoint before that time and the messages after the checkpoint.
 *
 * The memory is limited. A full history accepts no message; its owner must clear it and begin
 * again with a snapshot.
 */
#ifndef TUI_HISTORY_H
#define TUI_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "tui/run/state.h"

struct history; /* opaque */

/* Makes an empty history. most_bytes: limit for all messages, and a separate,
 * equal limit for all checkpoints. */
struct history *history_new(size_t most_bytes);
void history_free(struct history *h); /* h may be NULL */
void history_clear(struct history *h);

/* Appends a copy of a message that arrived at at_us, which must not decrease. -ENOSPC: the history
 * is full. */
int history_append(struct history *h, int64_t at_us, const void *data, size_t size);
/* Returns the number of messages. */
size_t history_count(const struct history *h);
/* Returns the arrival time of message i. */
int64_t history_at(const struct history *h, size_t i);
/* Returns the arrival time of the first message; 0: the history is empty. */
int64_t history_first_us(const struct history *h);
int64_t history_last_us(const struct history *h);

/* Applies message i to the state. Skips a message that cannot be decoded. */
void history_apply(const struct history *h, size_t i, struct state *s);
/* Keeps a checkpoint of *s, the state after the first `applied` messages, unless the previous
 * checkpoint is near. The first checkpoint is never dropped. */
void history_keep(struct history *h, size_t applied, const struct state *s);
/* Changes *s to the state at the time at_us, which results from all messages that arrived until
 * then.
 *
 * s:              the state at any time; is changed or replaced applied:        number of
 * messages that are in *s; is updated status_at_us:   is set to the arrival time of the newest
 * status message in the state
 *
 * Returns how many bytes of messages were applied. For a step back these are at most the bytes
 * between two checkpoints.
 */
size_t history_seek(struct history *h, int64_t at_us, struct state **s, size_t *applied,
		    int64_t *status_at_us);
/* Returns the arrival time of the nearest journal entry before at_us (direction < 0) or after it;
 * -1: there is none. Entries of the kind log, and all entries of the first snapshot, do not
 * count. */
int64_t history_nearest_event(const struct history *h, int64_t at_us, int direction);

#endif
