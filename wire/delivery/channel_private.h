/* channel_private.h - the inside of a channel, for channel.c (what is sent) and channel_receive.c
 * (what arrives).
 */
#ifndef WIRE_CHANNEL_PRIVATE_H
#define WIRE_CHANNEL_PRIVATE_H

#include "wire/delivery/channel.h"

#define CHANNEL_SHARED_MOST ((size_t)65536) /* a chunk of what several connections share */

/* A message that is to be sent, or not yet acknowledged. */
struct outgoing {
	uint8_t *data;
	size_t size, chunk_bytes;
	uint64_t first;  /* number of its first chunk */
	uint32_t chunks; /* at least 1 */
	int64_t queued_us, left_us;
	size_t before;   /* bytes that were retained when it came */
};

enum record_state { RECORD_UNDER_WAY = 1, RECORD_ARRIVED, RECORD_LOST };

/* A chunk that was sent. */
struct record {
	struct flow_mark mark;
	size_t size;
	uint64_t order; /* of leaving, among all of the channel */
	enum record_state state;
	bool again;     /* left more than once */
};

/* A message that has not arrived whole, or not those before it. */
struct incoming {
	uint64_t first;
	uint32_t chunks, got;
	size_t size;
	uint8_t *data;
};

struct channel {
	struct channel_options options;
	struct channel_cut cut; /* most_bytes 0: never started */
	bool open;         /* started, not paused */
	/* sending: ring of messages, oldest at `head` */
	struct outgoing *ring;
	size_t ring_size, head, count, queued_bytes;
	size_t cursor;     /* of the message that `next` is in, counted from head */
	uint64_t una, next, end;
	struct record *records; /* of una .. next - 1, a ring of a power of two */
	size_t records_size, n_lost, under_way;
	uint64_t lost_from;     /* no lost one is below it, while there are some */
	uint64_t order, newest; /* given last; the greatest that has arrived */
	struct flow_round_trip round;
	unsigned overdue;       /* times in a row, */
	unsigned unheard;       /* and without a word */
	int64_t deadline_us;
	uint64_t resent;
	/* receiving */
	uint64_t expected, beyond; /* one above the highest that has come; 0 or at most expected: no holes */
	uint64_t *seen;            /* a bit each, number % CHANNEL_AHEAD; NULL: never needed */
	struct incoming *incoming; /* by number */
	size_t n_incoming, room_incoming;
};

/* The bytes of all chunks but the last: both ends compute it. */
static inline size_t channel_chunk_bytes(size_t size, uint32_t chunks)
{
	return (size + chunks - 1) / chunks;
}

/* Forgets what arrived, and begins with number 0. */
void channel_receiver_reset(struct channel *c);
void channel_receiver_free(struct channel *c);

#endif
