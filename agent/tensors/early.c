/* early.c - stores the tensors that arrive early. Each peer may fill only its share of the memory.
 * Otherwise one fast peer could fill all memory and exclude the other peers. */
#include "agent/tensors/early.h"

#include <assert.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/array.h"

enum {
	SHARE_INPUTS = 8, /* every share has room for at least this many inputs */
	ITERATIONS = 2,   /* every share has room for the tensors of this many iterations */
	INPUTS = 2        /* a microbatch has this many inputs on a node, each from one peer */
};
#define SHARE_LEAST ((size_t)16 << 20) /* minimum share, in bytes */

struct early {
	/* The n tensors, the oldest first. `from` == n_peers marks a dropped tensor. */
	struct early_tensor *list;
	size_t n, room;
	/* Number of bytes of all stored tensors, and of each peer's tensors (n_peers entries). */
	size_t bytes, *bytes_of;
	size_t most, share;
	uint32_t n_peers;
};

static void decoding_free(struct decoding *d)
{
	free(d->input.at);
	free(d);
}

void decoding_end(struct decoding *d, bool is_plausible)
{
	d->has_ended = true;
	d->is_plausible = is_plausible;
	if (!d->is_orphan)
		return;
	post_release(&d->message);
	decoding_free(d);
}

/* Releases the message of a tensor. If a thread still reads the message, gives the message to the
 * tensor's decoding, which releases the message later. */
static void release(struct early_tensor *t)
{
	struct decoding *d = t->decoding;

	t->decoding = NULL;
	if (d && !d->has_ended) {
		d->message = t->message;
		d->is_orphan = true;
		return;
	}
	if (d)
		decoding_free(d);
	post_release(&t->message);
}

size_t early_share(const struct early_traffic *t, size_t most)
{
	size_t input = t->input_bytes + EARLY_PLACE_BYTES;
	/* Number of messages that carry the sum. The first and the last message may be short. */
	size_t places = t->sum_bytes / t->piece_bytes + 2;
	size_t share = ITERATIONS *
		       (INPUTS * t->visits * input + t->sum_bytes + places * EARLY_PLACE_BYTES);

	if (share < SHARE_INPUTS * input)
		share = SHARE_INPUTS * input;
	if (share < SHARE_LEAST)
		share = SHARE_LEAST;
	return share < most ? share : most;
}

struct early *early_new(uint32_t n_peers)
{
	struct early *e = alloc_new(sizeof(*e));

	e->bytes_of = alloc_array(n_peers + 1u, sizeof(e->bytes_of[0]));
	e->n_peers = n_peers;
	return e;
}

void early_free(struct early *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->n; i++)
		early_drop(e, i);
	free(e->bytes_of);
	free(e->list);
	free(e);
}

void early_bound(struct early *e, size_t room_bytes, size_t share_bytes)
{
	e->most = room_bytes;
	e->share = share_bytes;
}

/* Returns the number of bytes that are reserved for each peer. */
static size_t own_part(const struct early *e)
{
	return e->most / 2 / (e->n_peers ? e->n_peers : 1);
}

bool early_fits(struct early *e, uint16_t from, size_t bytes)
{
	size_t own = e->bytes_of[from] + bytes + EARLY_PLACE_BYTES;

	return own <= e->share &&
	       (e->bytes + bytes + EARLY_PLACE_BYTES <= e->most / 2 || own <= own_part(e)) &&
	       array_grow(&e->list, &e->room, e->n + 1, sizeof(*e->list));
}

void early_keep(struct early *e, const struct early_tensor *t)
{
	size_t bytes = t->message.size + EARLY_PLACE_BYTES;

	assert(e->n < e->room && t->from < e->n_peers);
	e->list[e->n++] = *t;
	e->bytes += bytes;
	e->bytes_of[t->from] += bytes;
}

bool early_crowded(const struct early *e, uint16_t from)
{
	size_t own = e->bytes_of[from];

	return own > e->share / 2 || (own > own_part(e) / 2 && e->bytes > e->most / 4);
}

size_t early_count(const struct early *e)
{
	return e->n;
}

struct early_tensor *early_at(struct early *e, size_t i)
{
	assert(i < e->n);
	return &e->list[i];
}

void early_drop(struct early *e, size_t i)
{
	struct early_tensor *t = &e->list[i];
	size_t bytes = t->message.size + EARLY_PLACE_BYTES;

	if (t->from >= e->n_peers)
		return; /* the tensor was dropped already */
	e->bytes -= bytes;
	e->bytes_of[t->from] -= bytes;
	release(t);
	t->from = (uint16_t)e->n_peers;
}

size_t early_close_up(struct early *e)
{
	size_t kept = 0, n = e->n;

	for (size_t i = 0; i < n; i++)
		if (e->list[i].from < e->n_peers)
			e->list[kept++] = e->list[i];
	e->n = kept;
	return n - kept;
}

size_t early_share_of(const struct early *e)
{
	return e->share;
}

size_t early_bytes(const struct early *e)
{
	return e->bytes;
}

size_t early_bytes_of(const struct early *e, uint16_t from)
{
	return e->bytes_of[from];
}
