/* channel.c - see channel.h. */
#include "wire/channel.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_FIRST_US INT64_C(250000)
#define TIMEOUT_LEAST_US INT64_C(100000) /* beyond the round trip: a busy receiver answers late */
#define TIMEOUT_MOST_US  INT64_C(2000000)
#define ENTRY_BYTES      ((size_t)64) /* what a message costs beyond its bytes, at least */
#define WINDOW_LEAST     ((size_t)65536)

struct outgoing {
	uint8_t *data;
	size_t size;
	uint64_t first;  /* number of its first chunk */
	uint64_t chunks; /* at least 1 */
};

struct channel {
	struct channel_options options;
	bool open;         /* started, not paused */
	size_t chunk_bytes;
	/* sending: ring of messages, oldest at `head` */
	struct outgoing *ring;
	size_t ring_size, head, count;
	size_t cursor;     /* of the message that `next` is in, counted from head */
	size_t retained_bytes;
	uint64_t una, next, sent_most, end;
	uint64_t recover;  /* gaps below it were dealt with */
	size_t in_flight, window, threshold;
	/* time */
	int64_t timeout_us, deadline_us, round_us, spread_us;
	uint64_t timed;    /* the chunk whose round trip is measured, */
	int64_t timed_us;  /* since; 0 none */
	uint64_t resent;
	/* receiving */
	uint64_t expected;
	uint8_t *message;
	size_t message_size, message_got;
};

int channel_new(struct channel **out, const struct channel_options *options)
{
	struct channel *c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	c->options = *options;
	c->deadline_us = INT64_MAX;
	*out = c;
	return 0;
}

void channel_free(struct channel *c)
{
	if (c == NULL)
		return;
	channel_drop(c);
	free(c->ring);
	free(c);
}

static struct outgoing *at(const struct channel *c, size_t i)
{
	return &c->ring[(c->head + i) % c->ring_size];
}

static void number(struct channel *c, struct outgoing *m)
{
	m->first = c->end;
	m->chunks = m->size == 0 ? 1 : (m->size + c->chunk_bytes - 1) / c->chunk_bytes;
	c->end += m->chunks;
}

static void drop_partial(struct channel *c)
{
	if (c->message == NULL)
		return;
	c->options.release(c->message);
	*c->options.assembling_bytes -= c->message_size;
	c->message = NULL;
	c->message_size = c->message_got = 0;
}

static void go_back(struct channel *c)
{
	c->next = c->una;
	c->cursor = 0;
	c->in_flight = 0;
	c->recover = c->sent_most;
	c->timed_us = 0;
	c->deadline_us = INT64_MAX;
}

void channel_start(struct channel *c, size_t chunk_bytes)
{
	assert(chunk_bytes > 0);
	drop_partial(c);
	c->chunk_bytes = chunk_bytes;
	c->una = c->next = c->sent_most = c->end = c->expected = 0;
	for (size_t i = 0; i < c->count; i++)
		number(c, at(c, i));
	go_back(c);
	c->window = c->options.window_bytes;
	c->threshold = c->options.window_most_bytes;
	c->timeout_us = TIMEOUT_FIRST_US;
	c->round_us = c->spread_us = 0;
	c->open = true;
}

void channel_resume(struct channel *c)
{
	go_back(c);
	c->timeout_us = TIMEOUT_FIRST_US;
	c->open = true;
}

void channel_pause(struct channel *c)
{
	go_back(c);
	c->open = false;
}

static void pop(struct channel *c)
{
	struct outgoing *m = at(c, 0);
	c->retained_bytes -= m->size;
	free(m->data);
	c->head = (c->head + 1) % c->ring_size;
	c->count--;
	if (c->cursor > 0)
		c->cursor--;
}

uint64_t channel_drop(struct channel *c)
{
	uint64_t dropped = c->count;
	while (c->count > 0)
		pop(c);
	drop_partial(c);
	c->una = c->next = c->sent_most = c->end = c->expected = 0;
	go_back(c);
	c->open = false;
	return dropped;
}

/* ---- sending ---- */

static int grow(struct channel *c)
{
	size_t size = c->ring_size == 0 ? 16 : 2 * c->ring_size;
	if (c->count < c->ring_size)
		return 0;
	struct outgoing *bigger = malloc(size * sizeof(*bigger));
	if (bigger == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < c->count; i++)
		bigger[i] = *at(c, i);
	free(c->ring);
	c->ring = bigger;
	c->ring_size = size;
	c->head = 0;
	return 0;
}

int channel_queue(struct channel *c, const struct channel_part *parts, size_t n)
{
	struct outgoing m = {0};
	for (size_t i = 0; i < n; i++) {
		if (parts[i].size > c->options.message_most_bytes - m.size)
			return -EMSGSIZE;
		m.size += parts[i].size;
	}
	/* A message larger than the bound itself may go when nothing else is retained. */
	if (c->count > 0 && (m.size > channel_room(c) || channel_room(c) == 0))
		return -EAGAIN;
	m.data = malloc(m.size == 0 ? 1 : m.size);
	if (m.data == NULL || grow(c) < 0) {
		free(m.data);
		return -ENOMEM;
	}
	size_t filled = 0;
	for (size_t i = 0; i < n; i++) {
		if (parts[i].size > 0)
			memcpy(m.data + filled, parts[i].data, parts[i].size);
		filled += parts[i].size;
	}
	if (c->chunk_bytes > 0)
		number(c, &m);
	*at(c, c->count++) = m;
	c->retained_bytes += m.size;
	return 0;
}

size_t channel_retained(const struct channel *c)
{
	return c->retained_bytes;
}

bool channel_empty(const struct channel *c)
{
	return c->count == 0;
}

/* Each message costs its entry too, so that empty ones are bounded as well. */
size_t channel_room(const struct channel *c)
{
	size_t used = c->retained_bytes + c->count * ENTRY_BYTES;
	size_t most = c->options.retained_most_bytes;
	return used >= most ? 0 : most - used;
}

static size_t chunk_size(const struct channel *c, const struct outgoing *m, uint64_t i)
{
	return i + 1 < m->chunks ? c->chunk_bytes : m->size - (size_t)i * c->chunk_bytes;
}

bool channel_next(struct channel *c, struct channel_chunk *out)
{
	if (!c->open || c->next == c->end)
		return false;
	struct outgoing *m = at(c, c->cursor);
	while (c->next >= m->first + m->chunks)
		m = at(c, ++c->cursor);
	uint64_t i = c->next - m->first;
	size_t size = chunk_size(c, m, i);
	if (c->in_flight > 0 && c->in_flight + size > c->window)
		return false;
	*out = (struct channel_chunk){.number = c->next, .total = m->size,
		.offset = i * c->chunk_bytes, .data = m->data + (size_t)i * c->chunk_bytes,
		.size = size};
	return true;
}

/* What a chunk counts in the window: a frame is never free. */
static size_t weight(size_t size)
{
	return size + ENTRY_BYTES;
}

void channel_sent(struct channel *c, const struct channel_chunk *chunk, int64_t now_us)
{
	if (chunk->number < c->sent_most) {
		c->resent++;
	} else {
		c->sent_most = chunk->number + 1;
		if (c->timed_us == 0) {
			c->timed = chunk->number;
			c->timed_us = now_us;
		}
	}
	if (c->in_flight == 0)
		c->deadline_us = now_us + c->timeout_us;
	c->in_flight += weight(chunk->size);
	c->next = chunk->number + 1;
}

/* The timeout from round trips, after Jacobson (RFC 6298). */
static void measure(struct channel *c, uint64_t ack, int64_t now_us)
{
	if (c->timed_us == 0 || ack <= c->timed)
		return;
	int64_t took = now_us - c->timed_us;
	c->timed_us = 0;
	if (c->round_us == 0) {
		c->round_us = took > 0 ? took : 1;
		c->spread_us = took / 2;
	} else {
		int64_t off = took - c->round_us;
		c->spread_us += ((off < 0 ? -off : off) - c->spread_us) / 4;
		c->round_us += off / 8;
	}
}

static void set_timeout(struct channel *c)
{
	int64_t t = c->round_us == 0 ? TIMEOUT_FIRST_US
				     : c->round_us + 4 * c->spread_us + TIMEOUT_LEAST_US;
	c->timeout_us = t > TIMEOUT_MOST_US ? TIMEOUT_MOST_US : t;
}

/* Bytes that numbers una..ack-1 weighed; pops messages that are through. */
static size_t advance(struct channel *c, uint64_t ack)
{
	size_t through = 0;
	while (c->una < ack) {
		struct outgoing *m = at(c, 0);
		through += weight(chunk_size(c, m, c->una - m->first));
		c->una++;
		if (c->una == m->first + m->chunks)
			pop(c);
	}
	return through;
}

static void widen(struct channel *c, size_t through)
{
	if (c->window < c->threshold)
		c->window += through;
	else
		c->window += through / (c->window / WINDOW_LEAST + 1);
	if (c->window > c->options.window_most_bytes)
		c->window = c->options.window_most_bytes;
}

static void narrow(struct channel *c, bool timeout)
{
	c->threshold = c->window / 2 > WINDOW_LEAST ? c->window / 2 : WINDOW_LEAST;
	c->window = timeout ? WINDOW_LEAST : c->threshold;
}

void channel_acked(struct channel *c, uint64_t ack, bool gap, int64_t now_us)
{
	if (!c->open || ack > c->sent_most || ack < c->una)
		return; /* never sent, or an old answer overtaken */
	if (ack > c->una) {
		measure(c, ack, now_us);
		set_timeout(c);
		size_t through = advance(c, ack);
		if (c->next < ack) {
			c->next = ack; /* had gone back; it had arrived after all */
			c->cursor = 0;
			c->in_flight = 0;
		} else {
			c->in_flight -= through < c->in_flight ? through : c->in_flight;
		}
		widen(c, through);
		c->deadline_us = c->next > c->una ? now_us + c->timeout_us : INT64_MAX;
		if (c->next == c->una)
			c->in_flight = 0;
	}
	if (gap && c->una >= c->recover && c->next > c->una) {
		go_back(c);
		narrow(c, false);
	}
}

int64_t channel_deadline_us(const struct channel *c)
{
	return c->open ? c->deadline_us : INT64_MAX;
}

void channel_tick(struct channel *c, int64_t now_us)
{
	if (!c->open || now_us < c->deadline_us)
		return;
	go_back(c);
	narrow(c, true);
	c->timeout_us = c->timeout_us * 2 > TIMEOUT_MOST_US ? TIMEOUT_MOST_US : c->timeout_us * 2;
}

/* ---- receiving ---- */

static bool consistent(const struct channel *c, const struct channel_chunk *k)
{
	if (k->total > c->options.message_most_bytes || k->offset > k->total ||
	    k->size > k->total - k->offset)
		return false;
	if (k->size == 0 && k->total != 0)
		return false;
	if (c->message == NULL)
		return k->offset == 0;
	return k->offset == c->message_got && k->total == c->message_size;
}

enum channel_taken channel_take(struct channel *c, const struct channel_chunk *k,
	uint8_t **message)
{
	if (k->number < c->expected)
		return CHANNEL_DUPLICATE;
	if (k->number > c->expected)
		return CHANNEL_GAP;
	if (!consistent(c, k))
		return CHANNEL_BAD;
	if (k->size == k->total) {
		c->expected++;
		return CHANNEL_WHOLE;
	}
	if (c->message == NULL) {
		size_t total = (size_t)k->total;
		size_t used = *c->options.assembling_bytes;
		/* One alone may pass the bound, else it could never arrive. */
		if (used > 0 && (used >= c->options.assembling_most_bytes ||
				 total > c->options.assembling_most_bytes - used))
			return CHANNEL_DEFERRED;
		c->message = c->options.alloc(total);
		if (c->message == NULL)
			return CHANNEL_DEFERRED;
		c->message_size = total;
		c->message_got = 0;
		*c->options.assembling_bytes += total;
	}
	memcpy(c->message + c->message_got, k->data, k->size);
	c->message_got += k->size;
	c->expected++;
	if (c->message_got < c->message_size)
		return CHANNEL_PART;
	*message = c->message;
	*c->options.assembling_bytes -= c->message_size;
	c->message = NULL;
	c->message_size = c->message_got = 0;
	return CHANNEL_COMPLETE;
}

uint64_t channel_expected(const struct channel *c)
{
	return c->expected;
}

uint64_t channel_resent(const struct channel *c)
{
	return c->resent;
}

int64_t channel_round_trip_us(const struct channel *c)
{
	return c->round_us;
}
