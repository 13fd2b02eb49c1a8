/* channel.h - delivers one class of messages to one peer, exactly once and in order. It is a pure
 * state machine without sockets or clock.
 *
 * The sender keeps messages in a ring and cuts them into chunks of equal size. Chunks are numbered
 * 0, 1, 2 ... without end:
 *
 *       una                        next                end
 *        |-- sent: under way,       |-- never sent --|
 *            arrived, or lost --|
 *
 * The link may use several connections, so chunks arrive in any order. The receiver accepts
 * chunks up to CHANNEL_AHEAD beyond the first missing chunk. An acknowledgement has the number of
 * the first missing chunk, and the runs of later chunks that have arrived (selective
 * acknowledgement, RFC 2018).
 *
 * The sender declares a chunk lost when the chunk's acknowledgement is overdue. The time limit
 * follows from measured round trips (RFC 6298) and from the bytes under way. A single connection
 * keeps the order of chunks. Therefore a chunk on a single connection also counts as lost when a
 * chunk that was sent later has arrived (as in RACK, RFC 8985). Only lost chunks are sent again.
 * flow.h limits the bytes under way.
 */
#ifndef WIRE_CHANNEL_H
#define WIRE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/delivery/flow.h"
#include "wire/pieces.h"

/* Number of chunks that both ends accept beyond the first missing chunk. */
#define CHANNEL_AHEAD 16384
/* Size of a flight: the bytes that a connection may send at once after a pause. A flight has ten
 * segments of 1,448 bytes (RFC 6928), less the overhead of the layers below. A message up to this
 * length is one chunk. */
#define CHANNEL_FLIGHT_BYTES ((size_t)14000)
#define CHANNEL_RANGES 32 /* limit of runs in one acknowledgement */

struct channel; /* opaque */

/* A message that was acknowledged in full. */
struct channel_finished {
	size_t bytes;
	int64_t queued_us; /* time at which channel_queue took the message */
	int64_t left_us;   /* time at which the first chunk was sent */
	int64_t acked_us;
	/* Bytes of earlier messages that were unacknowledged when this message was queued. */
	size_t under_way_bytes;
};

/* Limits the memory for incomplete messages of all channels together.
 *
 * The share of a peer is most_bytes divided by the number of peers, but at least share_bytes. A
 * peer can always use its share. Beyond its share, a peer may use free memory until its messages
 * take up CHANNEL_PEER_MOST bytes. A message of any length is accepted while no peer has an
 * incomplete message. */
struct channel_memory {
	size_t used_bytes, most_bytes;
	size_t share_bytes; /* least share of a peer, bytes */
	uint32_t peers;
};
#define CHANNEL_PEER_MOST ((size_t)32 << 20)

struct channel_options {
	size_t message_most_bytes, retained_most_bytes;
	struct channel_memory *memory; /* borrowed */
	/* borrowed: number of bytes of the shared memory that this peer's messages use */
	size_t *peer_bytes;
	/* Borrowed: unacknowledged bytes of all channels of this peer. */
	size_t *retained_bytes;
	uint8_t *(*alloc)(size_t size); /* allocates a message that arrives; NULL: no memory */
	void (*release)(void *memory);  /* frees memory from alloc */
	/* A message of several chunks is not joined if its chunks have at least this size on
	 * average. The channel then keeps the buffers in which the chunks arrived. 0: every message
	 * is joined. */
	size_t piece_least_bytes;
	void (*drop)(void *owner);      /* frees the buffer of a chunk */
	struct flow *flow;              /* borrowed: measurements of the link to the peer */
	/* Chunks of this channel do not wait for the window of struct flow. */
	bool urgent;
	/* channel_acked calls this function for every message that was acknowledged in full. May
	 * be NULL. */
	void (*finished)(void *context, const struct channel_finished *m);
	void *context;
};

struct channel *channel_new(const struct channel_options *options); /* channel_free */
void channel_free(struct channel *c); /* NULL is allowed */
/* Changes message_most_bytes, one of the options that the channel was made with. */
void channel_limit(struct channel *c, size_t message_most_bytes);

/* The rules by which messages are cut into chunks. */
struct channel_cut {
	size_t most_bytes;    /* longest chunk */
	/* Number of connections that carry the chunks; a single connection keeps the order of
	 * chunks. */
	unsigned connections;
};
/* Starts a session with a new process of the peer: chunk numbers restart at 0. Queued messages stay
 * queued, unless the caller drops them first (channel_drop). */
void channel_start(struct channel *c, const struct channel_cut *cut);
/* Continues in a new session with the same process of the peer: sends all unacknowledged chunks
 * again. */
void channel_resume(struct channel *c);
/* Suspends the channel while the peer has no session: no chunk is sent or becomes overdue. */
void channel_pause(struct channel *c);
/* Drops all queued messages and all received messages that are incomplete. Returns the number of
 * dropped messages that were queued. */
uint64_t channel_drop(struct channel *c);

struct channel_part {
	const void *data;
	size_t size;
};
/* Queues a copy of the joined parts. -EMSGSIZE: the message exceeds message_most_bytes; -EAGAIN:
 * the queue would exceed retained_most_bytes; -ENOMEM. */
int channel_queue(struct channel *c, const struct channel_part *parts, size_t n, int64_t now_us);
/* Bytes at the end of a message that the channel borrows until it calls release(context). */
struct channel_loan {
	const uint8_t *data;
	size_t size;
	void (*release)(void *context);
	void *context;
};
/* Queues a copy of the joined parts, followed by the loan. The errors are those of channel_queue.
 * After an error nothing is borrowed. */
int channel_lend(struct channel *c, const struct channel_part *parts, size_t n,
	const struct channel_loan *loan, int64_t now_us);
/* Returns the size of the largest message that channel_queue would accept now. */
size_t channel_room(const struct channel *c);
/* Returns true if every message was acknowledged. */
bool channel_empty(const struct channel *c);
/* Returns true if a chunk was sent and is not yet acknowledged. */
bool channel_awaits_ack(const struct channel *c);
/* Returns the size of the oldest unacknowledged message; 0: all messages are acknowledged. */
size_t channel_oldest_bytes(const struct channel *c);
/* Returns the number of connections that suffice to send all unacknowledged bytes at once after a
 * pause, if each connection sends one flight. */
unsigned channel_flights(const struct channel *c);
/* Cuts later messages into chunks for this many connections. */
void channel_spread(struct channel *c, unsigned connections);

struct channel_letter; /* the bytes of a message, opaque */
struct channel_chunk {
	uint64_t number;
	uint64_t total;          /* bytes of the whole message */
	/* Index of the chunk in its message, and number of chunks of the message. */
	uint32_t index, chunks;
	const uint8_t *data;
	size_t size;
	/* When sending: the last lent_bytes bytes of the chunk. They are borrowed from the caller
	 * of channel_lend, and lie elsewhere than `data`. */
	const uint8_t *lent;
	size_t lent_bytes;
	struct channel_letter *letter; /* when sending: the message that contains the chunk */
	void *owner;                   /* when receiving: the buffer in which the chunk arrived */
};
/* Gives the next chunk to send. The chunk's data is borrowed until the next call with the
 * channel. A caller that needs the data longer calls channel_hold with the letter, and later
 * channel_drop_letter. Returns false if no chunk may be sent now. */
bool channel_next(struct channel *c, struct channel_chunk *out);
/* Keeps the bytes of a message until channel_drop_letter, even if the channel drops the message. */
void channel_hold(struct channel_letter *letter);
void channel_drop_letter(void *letter);
/* Records that the chunk was sent. */
void channel_sent(struct channel *c, const struct channel_chunk *chunk, int64_t now_us);

/* A run of received chunks in an acknowledgement. The first chunk of the run has the number ack +
 * from. */
struct channel_range {
	uint32_t from, length;
};
/* Handles an acknowledgement. It says that the peer has all chunks below `ack` and the chunks in
 * the n ranges. */
void channel_acked(struct channel *c, uint64_t ack, const struct channel_range *ranges, unsigned n,
	int64_t now_us);
/* Returns the earliest time at which channel_tick may find an overdue chunk; INT64_MAX: never. */
int64_t channel_deadline_us(const struct channel *c);
/* Declares overdue chunks lost. Returns how often in a row chunks have become overdue without an
 * acknowledgement in between. */
unsigned channel_tick(struct channel *c, int64_t now_us);

enum channel_taken {
	CHANNEL_PART = 1,  /* the chunk was stored; its message is not complete */
	CHANNEL_KEPT,      /* the chunk was stored, and the channel owns its buffer */
	/* The chunk is the whole next message. The caller delivers the chunk's data. */
	CHANNEL_WHOLE,
	CHANNEL_DUPLICATE, /* the chunk arrived earlier */
	/* The chunk's number is CHANNEL_AHEAD or more beyond the first missing chunk, so the
	 * chunk was not stored. */
	CHANNEL_TOO_FAR,
	/* There is no memory now. The chunk was not stored, and the sender will resend it. */
	CHANNEL_DEFERRED,
	CHANNEL_BAD /* the chunk contradicts itself or earlier chunks, or exceeds a limit */
};
/* Handles a chunk that arrived. */
enum channel_taken channel_take(struct channel *c, const struct channel_chunk *chunk);
/* A complete message, in one block or in pieces. options.release frees a block. The caller frees
 * the buffers of pieces with options.drop, and then the list of pieces. */
struct channel_message {
	uint8_t *data; /* NULL: the message is in pieces */
	size_t size;
	struct pieces pieces;
};
/* Gives the next complete message, in order. Returns false if there is none. After channel_take,
 * call channel_give until it returns false. */
bool channel_give(struct channel *c, struct channel_message *out);
/* Returns the number of the first missing chunk, for an acknowledgement. */
uint64_t channel_expected(const struct channel *c);
/* Returns true if chunks beyond the first missing chunk have arrived. */
bool channel_holes(const struct channel *c);
/* Gives the first runs of received chunks beyond the first missing chunk. Returns the number of
 * runs. */
unsigned channel_ranges(const struct channel *c, struct channel_range out[CHANNEL_RANGES]);

/* Returns the number of chunks that were sent again so far. */
uint64_t channel_resent(const struct channel *c);

#endif
