/* channel.h - exactly-once delivery to one peer, as a pure state machine: no sockets, no clock.
 *
 * Sending: messages wait in a ring, cut in chunks; chunks are numbered 0, 1, 2 ... without end.
 *
 *       una              next            sent_most         end
 *        |-- in flight ---|-- to be resent --|-- never sent --|
 *
 * The receiver takes chunks in order only and answers with the number it expects next. On a gap
 * (told once), a timeout or a new session the sender goes back to `una`. Bytes in flight stay below
 * a window that grows with what is acknowledged and shrinks with what is lost, as TCP's does.
 * Losses are rare, since what carries us is a stream; going back is simple, and the receiver needs
 * no memory beyond the one message being put together.
 */
#ifndef WIRE_CHANNEL_H
#define WIRE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct channel; /* opaque */

struct channel_options {
	size_t message_most_bytes, retained_most_bytes;
	size_t window_bytes, window_most_bytes; /* at first, and at most */
	size_t *assembling_bytes;               /* borrowed: shared by all channels */
	size_t assembling_most_bytes;
	uint8_t *(*alloc)(size_t size);         /* for what arrives, so that it can be given on */
	void (*release)(void *memory);
};

int channel_new(struct channel **out, const struct channel_options *options); /* -ENOMEM */
void channel_free(struct channel *c); /* NULL is allowed */

/* A session with a peer that remembers nothing: everything is numbered anew, in chunks of
 * chunk_bytes. Messages queued stay queued (channel_drop them first when they are not for it). */
void channel_start(struct channel *c, size_t chunk_bytes);
/* A fresh session with the same peer: what is unacknowledged goes again, now. */
void channel_resume(struct channel *c);
/* No session: nothing is sent, no time runs. */
void channel_pause(struct channel *c);
/* Forgets everything, sent and half received. Returns how many messages were dropped. */
uint64_t channel_drop(struct channel *c);

struct channel_part {
	const void *data;
	size_t size;
};
/* Copies. -EMSGSIZE, -EAGAIN (bound reached), -ENOMEM. */
int channel_queue(struct channel *c, const struct channel_part *parts, size_t n);
size_t channel_room(const struct channel *c);
size_t channel_retained(const struct channel *c);
bool channel_empty(const struct channel *c); /* everything was acknowledged */

/* The next chunk to send. Its data is the channel's, until the next call. */
struct channel_chunk {
	uint64_t number;
	uint64_t total, offset; /* of the message, bytes; of the chunk in it */
	const uint8_t *data;
	size_t size;
};
bool channel_next(struct channel *c, struct channel_chunk *out);
/* It left. */
void channel_sent(struct channel *c, const struct channel_chunk *chunk, int64_t now_us);
/* The peer expects number `ack` next; gap: and something after it has arrived. */
void channel_acked(struct channel *c, uint64_t ack, bool gap, int64_t now_us);
/* When channel_tick may find a timeout; INT64_MAX none. */
int64_t channel_deadline_us(const struct channel *c);
void channel_tick(struct channel *c, int64_t now_us);

enum channel_taken {
	CHANNEL_PART = 1,  /* taken; the message is not complete */
	CHANNEL_WHOLE,     /* the chunk is a whole message */
	CHANNEL_COMPLETE,  /* with it a message is complete: *message is given (options.release) */
	CHANNEL_DUPLICATE, /* had it */
	CHANNEL_GAP,       /* not the one expected */
	CHANNEL_DEFERRED,  /* no memory for it now; the sender will repeat it */
	CHANNEL_BAD        /* contradicts itself or the limits */
};
/* A chunk that arrived. */
enum channel_taken channel_take(struct channel *c, const struct channel_chunk *chunk,
	uint8_t **message);
uint64_t channel_expected(const struct channel *c); /* to acknowledge with */

uint64_t channel_resent(const struct channel *c);       /* chunks, so far */
int64_t channel_round_trip_us(const struct channel *c); /* smoothed; 0 unknown */

#endif
