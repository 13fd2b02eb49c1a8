/* channel_receive.c - the receiving half of a channel: joins chunks into messages and delivers
 * each message once. This half compares every chunk with the earlier chunks, and limits the
 * memory of incomplete messages, because a faulty peer may send anything. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "wire/delivery/channel_private.h"

#define INCOMING_MOST 1024 /* limit of incomplete messages of a channel */
#define WORD_BITS     64

static void free_incoming(const struct channel *c, struct incoming *m)
{
	if (m->data != NULL)
		c->options.release(m->data);
	for (uint32_t i = 0; m->pieces != NULL && i < m->chunks; i++) {
		if (m->pieces[i].owner != NULL)
			c->options.drop(m->pieces[i].owner);
	}
	free(m->pieces);
}

void channel_receiver_reset(struct channel *c)
{
	for (size_t i = 0; i < c->n_incoming; i++) {
		free_incoming(c, &c->incoming[i]);
		c->options.memory->used_bytes -= c->incoming[i].size;
		*c->options.peer_bytes -= c->incoming[i].size;
	}
	c->n_incoming = 0;
	c->expected = c->beyond = 0;
	if (c->seen != NULL)
		memset(c->seen, 0, CHANNEL_AHEAD / 8);
}

void channel_receiver_free(struct channel *c)
{
	free(c->seen);
	free(c->incoming);
}

/* ---- which chunk numbers were received ---- */

static uint64_t *word_of(const struct channel *c, uint64_t number)
{
	return &c->seen[number % CHANNEL_AHEAD / WORD_BITS];
}

static uint64_t bit_of(uint64_t number)
{
	return UINT64_C(1) << (number % WORD_BITS);
}

static bool was_seen(const struct channel *c, uint64_t number)
{
	return number < c->beyond && (*word_of(c, number) & bit_of(number)) != 0;
}

/* Records that the chunk `number` was received. It must be the first missing chunk or a later
 * chunk. If it is the first missing chunk, moves `expected` to the next missing chunk, and clears
 * the bits of the chunks in between. */
static void note_number(struct channel *c, uint64_t number)
{
	if (number != c->expected) {
		*word_of(c, number) |= bit_of(number);
		if (number >= c->beyond)
			c->beyond = number + 1;
		return;
	}
	c->expected++;
	while (was_seen(c, c->expected)) {
		*word_of(c, c->expected) &= ~bit_of(c->expected);
		c->expected++;
	}
}

bool channel_holes(const struct channel *c)
{
	return c->beyond > c->expected;
}

/* If there are more runs than `out` can hold, gives the first runs. The first runs show the
 * sender which chunks it must resend first. */
unsigned channel_ranges(const struct channel *c, struct channel_range out[CHANNEL_RANGES])
{
	unsigned n = 0;
	for (uint64_t i = c->expected + 1; i < c->beyond && n < CHANNEL_RANGES; i++) {
		if (i % WORD_BITS == 0 && *word_of(c, i) == 0) {
			i += WORD_BITS - 1;
			continue;
		}
		if (!was_seen(c, i))
			continue;
		uint64_t from = i;
		while (was_seen(c, i))
			i++;
		out[n++] = (struct channel_range){(uint32_t)(from - c->expected),
			(uint32_t)(i - from)};
	}
	return n;
}

uint64_t channel_expected(const struct channel *c)
{
	return c->expected;
}

/* ---- incomplete messages ---- */

/* Returns true if the chunk's numbers are possible, and the chunk has the size that a chunk with
 * this index must have. */
static bool agrees_with_itself(const struct channel *c, const struct channel_chunk *k)
{
	if (k->total > c->options.message_most_bytes || k->chunks == 0 || k->index >= k->chunks ||
	    k->index > k->number || (k->chunks > 1 && k->chunks > k->total))
		return false;
	const uint64_t each = channel_chunk_bytes((size_t)k->total, k->chunks);
	/* The product cannot overflow, because index < 2^32 and a chunk has at most
	 * message_most_bytes. */
	const uint64_t offset = each * k->index;
	if (offset > k->total || (offset == k->total && k->total > 0))
		return false;
	return k->size == (k->index + 1 < k->chunks ? each : k->total - offset);
}

/* Returns the position of the first incomplete message that begins at chunk number `first` or
 * later. */
static size_t find_incoming(const struct channel *c, uint64_t first)
{
	size_t low = 0, high = c->n_incoming;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (c->incoming[middle].first < first)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns true if a message with these chunk numbers would overlap no other message. place: the
 * position that the message would get in the list of incomplete messages. */
static bool fits_between(const struct channel *c, size_t place, uint64_t first, uint32_t chunks)
{
	if (first < c->expected)
		/* The first chunk of this message was received earlier, as part of another
		 * message. */
		return false;
	if (place > 0 &&
	    c->incoming[place - 1].first + c->incoming[place - 1].chunks > first)
		return false;
	return place == c->n_incoming || first + chunks <= c->incoming[place].first;
}

static size_t greater_size(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* Returns true if there is memory for a message, by the rules of struct channel_memory. ahead:
 * true if an earlier message is still incomplete. Messages ahead may use only half of the memory,
 * so that the earlier message always finds room. */
static bool may_have(const struct channel *c, size_t size, bool ahead)
{
	const struct channel_memory *m = c->options.memory;
	const size_t part = ahead ? 2 : 1, most = m->most_bytes / part;
	const size_t share =
		greater_size(most / (m->peers > 0 ? m->peers : 1), m->share_bytes / part);
	const size_t all = greater_size(share, CHANNEL_PEER_MOST / part);
	const size_t own = *c->options.peer_bytes;
	if (m->used_bytes == 0 && !ahead)
		return true;
	return (size <= share && own <= share - size) ||
	       (size <= all && own <= all - size && size <= most && m->used_bytes <= most - size);
}

/* Returns true if the message is kept in the buffers of its chunks instead of being joined. */
static bool stays_apart(const struct channel *c, const struct channel_chunk *k)
{
	const size_t least = c->options.piece_least_bytes;
	return least > 0 && k->chunks > 1 && k->total / k->chunks >= least;
}

static struct incoming *insert_incoming(struct channel *c, size_t place,
	const struct channel_chunk *k, uint64_t first)
{
	const size_t size = (size_t)k->total;
	if (c->n_incoming == INCOMING_MOST || !may_have(c, size, first > c->expected))
		return NULL;
	struct incoming fresh = {.first = first, .chunks = k->chunks, .size = size};
	if (stays_apart(c, k))
		fresh.pieces = calloc(k->chunks, sizeof(*fresh.pieces));
	else
		fresh.data = c->options.alloc(size);
	if (fresh.data == NULL && fresh.pieces == NULL)
		return NULL;
	array_reserve(&c->incoming, &c->room_incoming, c->n_incoming + 1, sizeof(*c->incoming));
	struct incoming *m = &c->incoming[place];
	memmove(m + 1, m, (c->n_incoming - place) * sizeof(*m));
	*m = fresh;
	c->n_incoming++;
	c->options.memory->used_bytes += size;
	*c->options.peer_bytes += size;
	return m;
}

/* Does not store a chunk that arrived earlier, or a chunk for which there is no room. The result
 * tells the two cases apart. Within limits, stores a chunk that arrives ahead of its turn, so
 * that the sender need not resend the chunk. */
enum channel_taken channel_take(struct channel *c, const struct channel_chunk *k)
{
	if (k->number < c->expected)
		return CHANNEL_DUPLICATE;
	if (k->number - c->expected >= CHANNEL_AHEAD)
		return CHANNEL_TOO_FAR;
	if (was_seen(c, k->number))
		return CHANNEL_DUPLICATE;
	if (!agrees_with_itself(c, k))
		return CHANNEL_BAD;
	if (c->seen == NULL && k->number > c->expected)
		c->seen = alloc_array(CHANNEL_AHEAD / WORD_BITS, sizeof(*c->seen));
	const uint64_t first = k->number - k->index;
	const size_t place = find_incoming(c, first);
	const bool known = place < c->n_incoming && c->incoming[place].first == first;
	struct incoming *m = known ? &c->incoming[place] : NULL;
	if (known ? m->chunks != k->chunks || m->size != k->total
		  : !fits_between(c, place, first, k->chunks))
		return CHANNEL_BAD;
	if (k->chunks == 1 && k->number == c->expected && place == 0) {
		note_number(c, k->number);
		return CHANNEL_WHOLE;
	}
	if (m == NULL)
		m = insert_incoming(c, place, k, first);
	if (m == NULL)
		return CHANNEL_DEFERRED;
	m->got++;
	note_number(c, k->number);
	if (m->pieces != NULL) {
		m->pieces[k->index] = (struct piece){k->data, k->size, k->owner};
		return CHANNEL_KEPT;
	}
	if (k->size > 0)
		memcpy(m->data + channel_chunk_bytes(m->size, m->chunks) * k->index, k->data,
			k->size);
	return CHANNEL_PART;
}

bool channel_give(struct channel *c, struct channel_message *out)
{
	const struct incoming *m = c->incoming;
	if (c->n_incoming == 0 || m->first + m->chunks > c->expected)
		return false;
	*out = (struct channel_message){.data = m->data, .size = m->size};
	if (m->pieces != NULL)
		out->pieces = (struct pieces){m->pieces, m->chunks};
	c->options.memory->used_bytes -= m->size;
	*c->options.peer_bytes -= m->size;
	c->n_incoming--;
	memmove(&c->incoming[0], &c->incoming[1], c->n_incoming * sizeof(c->incoming[0]));
	return true;
}
