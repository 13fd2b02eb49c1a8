/* channel.h - exactly-once delivery of one class of messages to one peer, in order, as a pure
 * state machine: no sockets, no clock.
 *
 * Sending: messages wait in a ring, cut in chunks of equal size; chunks are numbered 0, 1, 2 ...
 * without end.
 *
 *       una                        next                end
 *        |-- sent: under way,       |-- never sent --|
 *            arrived, or lost --|
 *
 * What carries us may have several connections, so chunks arrive in any order. The receiver puts
 * each where it belongs, up to CHANNEL_AHEAD chunks ahead of the first that is missing, and answers
 * with that one's number and the runs it has beyond (selective acknowledgement, RFC 2018). A
 * chunk is lost when it is overdue: a time that follows from the round trips measured (RFC 6298)
 * and from what is under way. Where the way keeps order, one that left later and has arrived proves
 * it at once (as RACK, RFC 8985). Only what is lost goes again. How much may be under way is for
 * flow.h to say.
 */
#ifndef WIRE_CHANNEL_H
#define WIRE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/delivery/flow.h"

#define CHANNEL_AHEAD  16384 /* chunks; both ends keep to it */
#define CHANNEL_RANGES 32    /* runs of an acknowledgement, at most */

struct channel; /* opaque */

/* A message that the peer has. */
struct channel_finished {
	size_t bytes;
	int64_t queued_us, left_us, acked_us; /* handed over; its first chunk left; acknowledged */
	size_t under_way_bytes; /* what was under way or waiting when it was handed over */
};

/* Memory for half messages, of all channels together. Each peer always may use its share of
 * most_bytes, at least share_bytes, and up to CHANNEL_PEER_MOST of what nobody uses; and one message may be
 * alone, however long. */
struct channel_memory {
	size_t used_bytes, most_bytes;
	size_t share_bytes; /* a share, where there are many */
	uint32_t peers;     /* shares */
};
#define CHANNEL_PEER_MOST ((size_t)32 << 20)

struct channel_options {
	size_t message_most_bytes, retained_most_bytes;
	struct channel_memory *memory; /* borrowed, and what this peer has of it: */
	size_t *peer_bytes;
	size_t *retained_bytes;                 /* borrowed: what this peer's channels retain */
	uint8_t *(*alloc)(size_t size);         /* for what arrives, so that it can be given on */
	void (*release)(void *memory);
	struct flow *flow;                      /* borrowed: what the way to the peer carries */
	bool urgent;                            /* does not wait for the window of what can */
	/* Called for every message that is through, by channel_acked. May be NULL. */
	void (*finished)(void *context, const struct channel_finished *m);
	void *context;
};

int channel_new(struct channel **out, const struct channel_options *options); /* -ENOMEM */
void channel_free(struct channel *c); /* NULL is allowed */
/* From now on no message is longer. */
void channel_limit(struct channel *c, size_t message_most_bytes);

/* How messages are cut. */
struct channel_cut {
	size_t most_bytes;    /* a chunk, at most */
	unsigned connections; /* that share them: 1 keeps their order */
};
/* A session with a peer that remembers nothing: everything is numbered anew. Messages queued stay
 * queued (channel_drop them first when they are not for it). */
void channel_start(struct channel *c, const struct channel_cut *cut);
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
int channel_queue(struct channel *c, const struct channel_part *parts, size_t n, int64_t now_us);
size_t channel_room(const struct channel *c);
bool channel_empty(const struct channel *c); /* everything was acknowledged */
/* The number of connections that would take what is not acknowledged in one flight, also after a pause. */
unsigned channel_flights(const struct channel *c);
/* From now on this number of connections share messages. */
void channel_spread(struct channel *c, unsigned connections);

struct channel_chunk {
	uint64_t number;
	uint64_t total;          /* of the message, bytes */
	uint32_t index, chunks;  /* this one's place in it; how many it has */
	const uint8_t *data;
	size_t size;
};
/* The next chunk to send, if any may leave now. Its data is the channel's, until the next call. */
bool channel_next(struct channel *c, struct channel_chunk *out);
/* The chunk left. */
void channel_sent(struct channel *c, const struct channel_chunk *chunk, int64_t now_us);

/* The peer has all numbers below `ack`, and these runs: from ack + from, so many. */
struct channel_range {
	uint32_t from, length;
};
void channel_acked(struct channel *c, uint64_t ack, const struct channel_range *ranges, unsigned n,
	int64_t now_us);
/* When channel_tick may find something overdue; INT64_MAX never. */
int64_t channel_deadline_us(const struct channel *c);
/* Returns how many times in a row something was overdue and not even an acknowledgement came. */
unsigned channel_tick(struct channel *c, int64_t now_us);

enum channel_taken {
	CHANNEL_PART = 1,  /* taken */
	CHANNEL_WHOLE,     /* the chunk is the next message, whole: it is given by this, once */
	CHANNEL_DUPLICATE, /* had it */
	CHANNEL_TOO_FAR,   /* ahead: not taken */
	CHANNEL_DEFERRED,  /* no memory for it now; the sender will repeat it */
	CHANNEL_BAD        /* contradicts itself, what came before, or the limits */
};
/* A chunk that arrived. */
enum channel_taken channel_take(struct channel *c, const struct channel_chunk *chunk);
/* The next message that is complete, in order: given (options.release). Call it after channel_take
 * until it says no. */
bool channel_give(struct channel *c, uint8_t **message, size_t *size);
uint64_t channel_expected(const struct channel *c); /* to acknowledge with */
bool channel_holes(const struct channel *c);        /* there are runs beyond it */
unsigned channel_ranges(const struct channel *c, struct channel_range out[CHANNEL_RANGES]);

uint64_t channel_resent(const struct channel *c); /* chunks, so far */

#endif
