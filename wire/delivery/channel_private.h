/* channel_private.h - the private parts of a channel, for channel.c (sending) and channel_receive.c
 * (receiving).
 */
#ifndef WIRE_CHANNEL_PRIVATE_H
#define WIRE_CHANNEL_PRIVATE_H

#include "wire/delivery/channel.h"

#define CHANNEL_SHARED_MOST ((size_t)65536) /* longest chunk when several connections are used */

/* The bytes of a message. Threads may still read the bytes after the peer has acknowledged the
 * message, so the last user frees them. */
struct channel_letter {
	uint8_t *data;            /* the first size - loan.size bytes of the message, owned */
	struct channel_loan loan; /* the other bytes of the message, borrowed; size 0: none */
	unsigned users;
};

/* A message that waits to be sent or acknowledged. */
struct outgoing {
	struct channel_letter *letter; /* shared with threads that still send the message */
	size_t size, chunk_bytes;
	uint64_t first;  /* number of the message's first chunk */
	uint32_t chunks; /* number of chunks, at least 1 */
	int64_t queued_us, left_us;
	/* Number of bytes that the peer's channels retained when the message was queued. */
	size_t before;
};

enum chunk_state { CHUNK_UNDER_WAY = 1, CHUNK_ARRIVED, CHUNK_LOST };

/* A chunk that was sent.
 *
 *     state      event                                       next state
 *     UNDER_WAY  acknowledged                                ARRIVED
 *     UNDER_WAY  overdue, overtaken, or the session ended    LOST
 *     LOST       sent again                                  UNDER_WAY
 *     LOST       acknowledged after all                      ARRIVED
 */
struct sent_chunk {
	struct flow_mark mark;
	size_t size;
	uint64_t order; /* number of this transmission, counted over all chunks of the channel */
	enum chunk_state state;
	bool again; /* the chunk was sent more than once */
};

/* A received message that lacks chunks, or that waits for an earlier message. */
struct incoming {
	uint64_t first; /* number of the message's first chunk */
	uint32_t chunks, got;
	size_t size;
	uint8_t *data;       /* NULL: the message is kept in pieces */
	/* One piece for each chunk, in order; a piece without an owner has not arrived. */
	struct piece *pieces;
};

struct channel {
	struct channel_options options;
	/* The rules by which messages are cut into chunks; if cut.most_bytes is 0, the channel
	 * was never started. */
	struct channel_cut cut;
	bool open; /* the channel was started and is not paused */
	/* Sending: a ring of messages, the oldest at `head`. */
	struct outgoing *ring;
	size_t ring_size, head, count, queued_bytes;
	/* Position of the message that contains chunk `next`, counted from the ring's head. */
	size_t cursor;
	uint64_t una, next, end;
	/* Records of the chunks una .. next - 1, in a ring whose size is a power of two. */
	struct sent_chunk *records;
	size_t records_size, n_lost, under_way;
	uint64_t lost_from;     /* no lost chunk has a number below lost_from */
	uint64_t order;         /* `order` of the chunk that was sent last */
	uint64_t newest;        /* greatest `order` of a chunk that was acknowledged */
	struct flow_round_trip round;
	/* Number of times that the measured timeout is doubled. A timeout adds 1. A measured
	 * round trip sets the number to 0. An acknowledgement that gives no round trip reduces
	 * the number to 1. */
	unsigned overdue;
	/* Number of timeouts in a row without any acknowledgement between them. */
	unsigned unanswered;
	int64_t deadline_us;
	uint64_t resent;
	/* Receiving: */
	uint64_t expected;         /* number of the first missing chunk */
	/* Highest chunk number received, plus 1; used only if it is above `expected`. */
	uint64_t beyond;
	/* One bit for each chunk number modulo CHANNEL_AHEAD. The bit is set if the chunk was
	 * received. NULL: no bit was needed yet. */
	uint64_t *seen;
	struct incoming *incoming; /* the n_incoming incomplete messages, ascending by number */
	size_t n_incoming, room_incoming;
};

/* Returns the size of every chunk except the message's last chunk. Both ends compute the size in
 * this way. */
static inline size_t channel_chunk_bytes(size_t size, uint32_t chunks)
{
	return (size + chunks - 1) / chunks;
}

/* Drops incomplete messages and expects chunk number 0. */
void channel_receiver_reset(struct channel *c);
void channel_receiver_free(struct channel *c);

#endif
