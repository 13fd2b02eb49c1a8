/* channel.c - the sending half of a channel: cuts messages into chunks and resends lost chunks.
 * nanomsg drops accepted messages when a connection breaks. This module resends what was lost.
 * channel_receive.c is the receiving half. */
#include "wire/delivery/channel.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "wire/delivery/channel_private.h"

/* The retransmission timeout doubles each time it expires without an acknowledgement, up to a
 * limit. The limit is the longer of two times: TIMEOUT_MOST_US, and TIMEOUT_TIMES times the
 * timeout that follows from measured round trips. */
#define TIMEOUT_MOST_US  INT64_C(2000000)
#define TIMEOUT_TIMES 8
#define ENTRY_BYTES ((size_t)64) /* bytes counted for each message in addition to its content */
#define CHUNK_LEAST      ((size_t)4096)
#define BULK_LEAST       ((size_t)8192)

struct channel *channel_new(const struct channel_options *options)
{
	struct channel *c = alloc_new(sizeof(*c));
	c->options = *options;
	c->deadline_us = INT64_MAX;
	return c;
}

void channel_limit(struct channel *c, size_t message_most_bytes)
{
	c->options.message_most_bytes = message_most_bytes;
}

void channel_free(struct channel *c)
{
	if (c == NULL)
		return;
	channel_drop(c);
	free(c->ring);
	free(c->records);
	channel_receiver_free(c);
	free(c);
}

static struct outgoing *outgoing_at(const struct channel *c, size_t i)
{
	return &c->ring[(c->head + i) % c->ring_size];
}

static struct sent_chunk *sent_chunk_at(const struct channel *c, uint64_t number)
{
	return &c->records[number & (c->records_size - 1)];
}

/* ---- cutting ---- */

static size_t smaller_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Returns the size of the longest chunk for a message of this size. A single connection carries
 * the longest chunks that the session allows. Several connections carry equal shares of the
 * message. Two limits change the size of a share: it is at least CHANNEL_FLIGHT_BYTES for an
 * urgent message, and at most about a sixteenth of the window for any other message. */
static size_t chunk_for(const struct channel *c, size_t size)
{
	if (c->cut.connections == 1)
		return c->cut.most_bytes;
	size_t most = smaller_size(c->cut.most_bytes, CHANNEL_SHARED_MOST);
	if (size <= CHANNEL_FLIGHT_BYTES)
		return smaller_size(most, CHANNEL_FLIGHT_BYTES);
	size_t share = (size + c->cut.connections - 1) / c->cut.connections;
	if (c->options.urgent)
		share = share > CHANNEL_FLIGHT_BYTES ? share : CHANNEL_FLIGHT_BYTES;
	else
		share = smaller_size(share, c->options.flow->window / 16 + BULK_LEAST);
	return smaller_size(most, share > CHUNK_LEAST ? share : CHUNK_LEAST);
}

static void number_message(struct channel *c, struct outgoing *m)
{
	const size_t most = chunk_for(c, m->size);
	m->first = c->end;
	m->chunks = m->size == 0 ? 1 : (uint32_t)((m->size + most - 1) / most);
	m->chunk_bytes = channel_chunk_bytes(m->size, m->chunks);
	c->end += m->chunks;
}

static size_t chunk_size(const struct outgoing *m, uint64_t i)
{
	return i + 1 < m->chunks ? m->chunk_bytes : m->size - (size_t)i * m->chunk_bytes;
}

/* ---- sessions ---- */

/* Returns how many bytes of the window a sent chunk takes up: its content and an overhead. */
static size_t sent_chunk_weight(const struct sent_chunk *r)
{
	return r->size + ENTRY_BYTES;
}

static void mark_lost(struct channel *c, uint64_t number)
{
	struct sent_chunk *r = sent_chunk_at(c, number);
	if (r->state != CHUNK_UNDER_WAY)
		return;
	flow_gone(c->options.flow, sent_chunk_weight(r));
	r->state = CHUNK_LOST;
	c->under_way--;
	if (c->n_lost == 0 || number < c->lost_from)
		c->lost_from = number;
	c->n_lost++;
}

static void lose_all(struct channel *c)
{
	for (uint64_t i = c->una; i < c->next; i++)
		mark_lost(c, i);
	c->deadline_us = INT64_MAX;
}

static void forget_sent(struct channel *c)
{
	lose_all(c);
	c->una = c->next = c->end = 0;
	c->n_lost = 0;
	c->cursor = 0;
	c->overdue = c->unanswered = 0;
	c->round = (struct flow_round_trip){0, 0};
}

void channel_start(struct channel *c, const struct channel_cut *cut)
{
	assert(cut->most_bytes > 0 && cut->connections > 0);
	channel_receiver_reset(c);
	forget_sent(c);
	c->cut = *cut;
	for (size_t i = 0; i < c->count; i++)
		number_message(c, outgoing_at(c, i));
	c->open = true;
}

void channel_resume(struct channel *c)
{
	lose_all(c);
	c->overdue = c->unanswered = 0;
	c->open = true;
}

void channel_pause(struct channel *c)
{
	lose_all(c);
	c->open = false;
}

void channel_hold(struct channel_letter *letter)
{
	letter->users++;
}

void channel_drop_letter(void *letter)
{
	struct channel_letter *l = letter;
	if (--l->users > 0)
		return;
	free(l->data);
	if (l->loan.release != NULL)
		l->loan.release(l->loan.context);
	free(l);
}

static void pop_message(struct channel *c)
{
	struct outgoing *m = outgoing_at(c, 0);
	c->queued_bytes -= m->size;
	*c->options.retained_bytes -= m->size;
	channel_drop_letter(m->letter);
	c->head = (c->head + 1) % c->ring_size;
	c->count--;
	if (c->cursor > 0)
		c->cursor--;
}

uint64_t channel_drop(struct channel *c)
{
	uint64_t dropped = c->count;
	forget_sent(c);
	while (c->count > 0)
		pop_message(c);
	channel_receiver_reset(c);
	c->open = false;
	return dropped;
}

/* ---- queueing ---- */

static void grow_ring(struct channel *c)
{
	size_t size = c->ring_size == 0 ? 16 : 2 * c->ring_size;
	if (c->count < c->ring_size)
		return;
	struct outgoing *bigger = alloc_array(size, sizeof(*bigger));
	for (size_t i = 0; i < c->count; i++)
		bigger[i] = *outgoing_at(c, i);
	free(c->ring);
	c->ring = bigger;
	c->ring_size = size;
	c->head = 0;
}

int channel_queue(struct channel *c, const struct channel_part *parts, size_t n, int64_t now_us)
{
	return channel_lend(c, parts, n, &(struct channel_loan){NULL, 0, NULL, NULL}, now_us);
}

int channel_lend(struct channel *c, const struct channel_part *parts, size_t n,
	const struct channel_loan *loan, int64_t now_us)
{
	struct outgoing m = {.queued_us = now_us, .before = *c->options.retained_bytes,
		.size = loan->size};
	if (loan->size > c->options.message_most_bytes)
		return -EMSGSIZE;
	for (size_t i = 0; i < n; i++) {
		if (parts[i].size > c->options.message_most_bytes - m.size)
			return -EMSGSIZE;
		m.size += parts[i].size;
	}
	/* A message above the retention limit is accepted only while the channel retains no other
	 * message. */
	if (c->count > 0 && (m.size > channel_room(c) || channel_room(c) == 0))
		return -EAGAIN;
	uint8_t *data = malloc(m.size - loan->size + 1);
	if (data == NULL)
		return -ENOMEM;
	m.letter = alloc_new(sizeof(*m.letter));
	*m.letter = (struct channel_letter){.data = data, .loan = *loan, .users = 1};
	grow_ring(c);
	size_t filled = 0;
	for (size_t i = 0; i < n; i++) {
		if (parts[i].size > 0)
			memcpy(data + filled, parts[i].data, parts[i].size);
		filled += parts[i].size;
	}
	if (c->cut.most_bytes > 0)
		number_message(c, &m);
	*outgoing_at(c, c->count++) = m;
	c->queued_bytes += m.size;
	*c->options.retained_bytes += m.size;
	return 0;
}

unsigned channel_flights(const struct channel *c)
{
	const size_t flights = c->queued_bytes / CHANNEL_FLIGHT_BYTES + c->count;
	return flights > UINT_MAX ? UINT_MAX : (unsigned)flights;
}

void channel_spread(struct channel *c, unsigned connections)
{
	c->cut.connections = connections;
}

bool channel_empty(const struct channel *c)
{
	return c->count == 0;
}

bool channel_awaits_ack(const struct channel *c)
{
	return c->una < c->next;
}

size_t channel_oldest_bytes(const struct channel *c)
{
	return c->count == 0 ? 0 : outgoing_at(c, 0)->size;
}

/* Counts ENTRY_BYTES for each message in addition to its content, which limits the number of empty
 * messages. */
size_t channel_room(const struct channel *c)
{
	size_t used = c->queued_bytes + c->count * ENTRY_BYTES;
	size_t most = c->options.retained_most_bytes;
	return used >= most ? 0 : most - used;
}

/* ---- sending ---- */

/* Finds the message that contains the chunk `number`. Returns the position of the message in the
 * ring. */
static size_t find_message(const struct channel *c, uint64_t number)
{
	size_t low = 0, high = c->count - 1;
	while (low < high) {
		size_t middle = (low + high + 1) / 2;
		if (outgoing_at(c, middle)->first <= number)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static bool next_lost(struct channel *c, uint64_t *number)
{
	while (c->n_lost > 0) {
		assert(c->lost_from < c->next);
		if (c->lost_from >= c->una && sent_chunk_at(c, c->lost_from)->state == CHUNK_LOST) {
			*number = c->lost_from;
			return true;
		}
		c->lost_from++;
	}
	return false;
}

static void grow_records(struct channel *c)
{
	size_t size = c->records_size == 0 ? 64 : 2 * c->records_size;
	if (c->next - c->una < c->records_size)
		return;
	struct sent_chunk *bigger = alloc_array(size, sizeof(*bigger));
	for (uint64_t i = c->una; i < c->next; i++)
		bigger[i & (size - 1)] = *sent_chunk_at(c, i);
	free(c->records);
	c->records = bigger;
	c->records_size = size;
}

/* Sets the pointers to a chunk's bytes. offset: where the chunk begins in its message. */
static void find_bytes(const struct outgoing *m, size_t offset, struct channel_chunk *out)
{
	const struct channel_loan *loan = &m->letter->loan;
	/* number of the message's bytes that the channel has copied; it borrows the rest */
	const size_t own = m->size - loan->size;
	const size_t first = offset >= own ? 0 : smaller_size(own - offset, out->size);
	out->letter = m->letter;
	out->data = m->letter->data + smaller_size(offset, own);
	out->lent_bytes = out->size - first;
	out->lent = out->lent_bytes > 0 ? loan->data + (offset + first - own) : NULL;
}

bool channel_next(struct channel *c, struct channel_chunk *out)
{
	uint64_t number = c->next;
	size_t place;
	if (c->options.urgent)
		c->options.flow->urgent_waits = false;
	if (!c->open)
		return false;
	if (next_lost(c, &number)) {
		place = find_message(c, number);
	} else {
		if (c->next == c->end || c->next - c->una >= CHANNEL_AHEAD)
			return false;
		grow_records(c);
		while (number >= outgoing_at(c, c->cursor)->first +
					 outgoing_at(c, c->cursor)->chunks)
			c->cursor++;
		place = c->cursor;
	}
	const struct outgoing *m = outgoing_at(c, place);
	const uint64_t i = number - m->first;
	const size_t size = chunk_size(m, i);
	if (c->options.urgent && place > 0 && !flow_may_follow(c->options.flow, m->size))
		return false;
	if (!flow_may_leave(c->options.flow, size + ENTRY_BYTES, c->options.urgent))
		return false;
	*out = (struct channel_chunk){.number = number, .total = m->size, .index = (uint32_t)i,
		.chunks = m->chunks, .size = size};
	find_bytes(m, (size_t)i * m->chunk_bytes, out);
	return true;
}

/* Returns the time after which a chunk counts as lost. Other traffic may share the route, so the
 * time suffices even if the link carries only half of the measured rate. A timeout that is
 * too short is worse than a timeout that is too long, because resending chunks that are not lost
 * costs more time than a late repair. */
static int64_t measured_timeout(const struct channel *c)
{
	const struct flow *f = c->options.flow;
	return flow_overdue_us(c->round.smoothed_us > 0 ? &c->round : &f->round_trip) +
	       2 * flow_drain_us(f);
}

static int64_t retransmit_timeout_us(const struct channel *c)
{
	int64_t t = measured_timeout(c), longest = TIMEOUT_TIMES * t;
	if (longest < TIMEOUT_MOST_US)
		longest = TIMEOUT_MOST_US;
	for (unsigned i = 0; i < c->overdue && t < longest; i++)
		t *= 2;
	return t < longest ? t : longest;
}

void channel_sent(struct channel *c, const struct channel_chunk *chunk, int64_t now_us)
{
	const bool again = chunk->number < c->next;
	struct sent_chunk *r = sent_chunk_at(c, chunk->number);
	if (again) {
		c->resent++;
		c->n_lost--;
	} else {
		c->next = chunk->number + 1;
		if (chunk->index == 0)
			outgoing_at(c, c->cursor)->left_us = now_us;
	}
	r->size = chunk->size;
	r->again = again;
	r->state = CHUNK_UNDER_WAY;
	r->order = ++c->order;
	c->under_way++;
	flow_left(c->options.flow, &r->mark, sent_chunk_weight(r), now_us);
	if (now_us + retransmit_timeout_us(c) < c->deadline_us)
		c->deadline_us = now_us + retransmit_timeout_us(c);
	if (c->next == c->end && c->n_lost == 0)
		flow_idle(c->options.flow);
}

/* ---- acknowledgements ---- */

static void report_finished(struct channel *c, const struct outgoing *m, int64_t now_us)
{
	if (c->options.finished != NULL)
		c->options.finished(c->options.context, &(struct channel_finished){.bytes = m->size,
			.queued_us = m->queued_us, .left_us = m->left_us, .acked_us = now_us,
			.under_way_bytes = m->before});
}

/* Counts a chunk that was acknowledged. is_last: true if this chunk was sent last of all chunks
 * in the acknowledgement. Only the last chunk gives a round trip. For the other chunks, an
 * earlier acknowledgement may have been lost, so their round trips would be too long. */
static void count_arrived(struct channel *c, const struct sent_chunk *r, bool is_last,
			  int64_t now_us)
{
	int64_t took = flow_arrived(c->options.flow, &r->mark, sent_chunk_weight(r),
		!is_last || r->again, now_us);
	if (took >= 0) {
		flow_round_trip_add(&c->round, took);
		c->overdue = 0;
	} else if (c->overdue > 1) {
		/* An acknowledgement has arrived, so the timeout is now doubled only once,
		 * however often it was doubled before. It stays doubled until a chunk gives a new
		 * round trip. A chunk that was sent twice gives none (Karn's algorithm). */
		c->overdue = 1;
	}
}

/* Records that the chunk `number` was acknowledged. Of all chunks in this acknowledgement so far,
 * *last is the chunk that was sent last. Counts all chunks except *last (count_arrived). The
 * caller counts *last at the end. */
static void note_arrival(struct channel *c, uint64_t number, struct sent_chunk **last,
			 int64_t now_us)
{
	struct sent_chunk *r = sent_chunk_at(c, number), *other = *last;
	if (r->state == CHUNK_ARRIVED)
		return;
	if (r->state == CHUNK_LOST) { /* the chunk was declared lost too early */
		flow_back(c->options.flow, sent_chunk_weight(r));
		c->n_lost--;
	} else {
		c->under_way--;
	}
	r->state = CHUNK_ARRIVED;
	if (other == NULL || r->order > other->order)
		*last = r;
	else
		other = r;
	if (other != NULL)
		count_arrived(c, other, false, now_us);
}

/* Marks as lost all chunks that were sent before a chunk that has arrived. Does this only on a
 * single connection, because several connections do not keep the order of chunks. */
static void find_lost(struct channel *c)
{
	const unsigned before = (unsigned)c->n_lost;
	if (c->cut.connections > 1)
		return;
	for (uint64_t i = c->una; i < c->next; i++) {
		if (sent_chunk_at(c, i)->order < c->newest)
			mark_lost(c, i);
	}
	if (c->n_lost > before)
		flow_lost(c->options.flow);
}

static void advance_acknowledged(struct channel *c, uint64_t ack, int64_t now_us)
{
	c->una = ack;
	while (c->count > 0 && outgoing_at(c, 0)->first + outgoing_at(c, 0)->chunks <= ack) {
		report_finished(c, outgoing_at(c, 0), now_us);
		pop_message(c);
	}
}

void channel_acked(struct channel *c, uint64_t ack, const struct channel_range *ranges, unsigned n,
	int64_t now_us)
{
	struct sent_chunk *last = NULL;
	if (!c->open || ack > c->next)
		return; /* ignored, because the peer acknowledges chunks that were never sent */
	c->unanswered = 0;
	for (uint64_t i = c->una; i < ack; i++)
		note_arrival(c, i, &last, now_us);
	for (unsigned k = 0; k < n; k++) {
		uint64_t from = ack + ranges[k].from, to = from + ranges[k].length;
		for (uint64_t i = from > c->una ? from : c->una; i < to && i < c->next; i++)
			note_arrival(c, i, &last, now_us);
	}
	if (last != NULL) {
		count_arrived(c, last, true, now_us);
		if (last->order > c->newest)
			c->newest = last->order;
		if (n > 0)
			find_lost(c);
	}
	if (ack > c->una)
		advance_acknowledged(c, ack, now_us);
	if (c->under_way == 0)
		c->deadline_us = INT64_MAX;
}

int64_t channel_deadline_us(const struct channel *c)
{
	return c->open ? c->deadline_us : INT64_MAX;
}

unsigned channel_tick(struct channel *c, int64_t now_us)
{
	const int64_t wait = retransmit_timeout_us(c);
	const size_t before = c->n_lost;
	if (!c->open || now_us < c->deadline_us)
		return c->unanswered;
	c->deadline_us = INT64_MAX;
	for (uint64_t i = c->una; i < c->next; i++) {
		const struct sent_chunk *r = sent_chunk_at(c, i);
		if (r->state != CHUNK_UNDER_WAY)
			continue;
		if (r->mark.left_us + wait <= now_us)
			mark_lost(c, i);
		else if (r->mark.left_us + wait < c->deadline_us)
			c->deadline_us = r->mark.left_us + wait;
	}
	if (c->n_lost > before) {
		c->overdue++;
		c->unanswered++;
		flow_lost(c->options.flow);
	}
	return c->unanswered;
}

uint64_t channel_resent(const struct channel *c)
{
	return c->resent;
}
