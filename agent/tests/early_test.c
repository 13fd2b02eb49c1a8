/* Tests the shares of early tensors. No peer exceeds its share or excludes another peer, and the
 * early tensors of a correct peer fit. Also tests how outputs.c counts the users of a body. */

#include <stdlib.h>

#include "agent/execution/needs.h"
#include "agent/tensors/early.h"
#include "agent/tensors/outputs.h"
#include "base/tests/test.h"

#define MIB ((size_t)1 << 20)

enum { PEERS = 8, GREEDY = 1, MODEST = 2, VISITS = 12, PIECES = 5 };

/* In this iteration 12 microbatches visit the node. Each of their inputs has 1 MiB. The gradient
 * has 9 MiB and is sent in pieces of 2 MiB. */
static const struct early_traffic traffic = {
	.visits = VISITS, .input_bytes = MIB, .sum_bytes = 9 * MIB, .piece_bytes = 2 * MIB
};

/* Returns a store with this many bytes of room. The share of each peer follows from the room. */
static struct early *made(size_t room)
{
	struct early *e;

	e = early_new(PEERS);
	early_bound(e, room, early_share(&traffic, room / 2));
	return e;
}

static bool keep(struct early *e, uint16_t from, size_t bytes)
{
	struct early_tensor t = { .message = { .size = bytes }, .from = from };

	if (!early_fits(e, from, bytes))
		return false;
	early_keep(e, &t);
	return true;
}

/* Stores tensors of a peer until a tensor is refused. Returns the number of stored tensors. */
static size_t flood(struct early *e, uint16_t from, size_t bytes)
{
	size_t n = 0;

	while (keep(e, from, bytes))
		n++;
	return n;
}

/* Checks that the store accepts what a correct peer sends in an iteration: all inputs, and the
 * slices of the reduction. */
static void check_modest_fits(struct early *e, uint16_t from)
{
	for (int i = 0; i < VISITS; i++)
		assert_true(keep(e, from, MIB));
	for (int i = 0; i < PIECES; i++)
		assert_true(keep(e, from, i < PIECES - 1 ? 2 * MIB : MIB));
}

TEST(no_peer_takes_more_than_its_share)
{
	struct early *e = made(1024 * MIB);

	assert_int_equal(flood(e, GREEDY, MIB), early_share_of(e) / (MIB + EARLY_PLACE_BYTES));
	assert_true(early_bytes_of(e, GREEDY) <= early_share_of(e));
	/* A share holds the tensors of two iterations: two inputs of 1 MiB for each visit, and a
	 * gradient of 9 MiB. */
	assert_true(early_share_of(e) >= 2 * (2 * VISITS + 9) * MIB);
	assert_false(keep(e, GREEDY, MIB));
	check_modest_fits(e, MODEST);
	early_free(e);
}

/* A fixed number of bytes is added to the size of each tensor. This limits the number of small
 * tensors in a share. */
TEST(the_number_of_small_tensors_is_limited)
{
	struct early *e = made(1024 * MIB);

	assert_true(flood(e, GREEDY, 4) <= early_share_of(e) / EARLY_PLACE_BYTES);
	early_free(e);
}

/* All peers share one half of the store. The other half is divided among the peers, so each peer
 * has a part that other peers cannot fill. */
TEST(no_peer_is_shut_out)
{
	/* This room gives each peer a reserved part of 24 MiB, which holds the tensors of an
	 * iteration. */
	const size_t room = 2 * PEERS * 24 * MIB;
	struct early *e = made(room);

	for (uint16_t i = 0; i < PEERS; i++)
		if (i != MODEST)
			flood(e, i, MIB / 2);
	assert_true(early_bytes(e) > room / 2 - MIB);
	check_modest_fits(e, MODEST);
	assert_true(early_bytes(e) <= room);
	assert_false(keep(e, GREEDY, MIB / 2));
	early_free(e);
}

/* The memory check (needs.c) counts a certain number of early tensors. Even on a machine with
 * little memory, the store must hold these tensors. */
TEST(honest_tensors_fit_into_the_smallest_store)
{
	struct needs n = needs_of(9 * MIB / sizeof(float), MIB / sizeof(float), VISITS,
				  1024 * MIB, false);
	struct early *e = made(needs_early_room(&n, n.total, 1024 * MIB));

	assert_true(early_bytes(e) == 0 && n.early == (VISITS + 9) * MIB);
	check_modest_fits(e, MODEST);
	early_free(e);
}

TEST(sums_wait_at_their_sender_before_the_share_is_full)
{
	struct early *e = made(1024 * MIB);
	size_t n = 0;

	for (; !early_crowded(e, GREEDY); n++)
		assert_true(keep(e, GREEDY, MIB));
	assert_true(early_bytes_of(e, GREEDY) < early_share_of(e) / 2 + 2 * MIB);
	assert_false(early_crowded(e, MODEST));
	early_drop(e, 0);
	early_drop(e, 1);
	/* The entries of dropped tensors stay until early_close_up. */
	assert_int_equal(early_count(e), n);
	assert_int_equal(early_close_up(e), 2);
	assert_int_equal(early_count(e), n - 2);
	assert_false(early_crowded(e, GREEDY));
	assert_int_equal(early_bytes_of(e, GREEDY), (n - 2) * (MIB + EARLY_PLACE_BYTES));
	early_free(e);
}

/* If a tensor is dropped while a thread reads its message, the message must stay until the thread
 * has ended. */
TEST(a_dropped_tensor_stays_until_its_decoding_ends)
{
	struct early *e = made(64 * MIB);

	for (int ended = 0; ended < 2; ended++) {
		struct decoding *d = calloc(1, sizeof(*d));
		struct early_tensor t = { .message = { .size = MIB }, .from = GREEDY,
					  .decoding = d };

		assert_non_null(d);
		d->input.at = malloc(8);
		assert_true(early_fits(e, GREEDY, MIB));
		early_keep(e, &t);
		if (ended)
			decoding_end(d, true);
		early_drop(e, 0);
		assert_int_equal(early_close_up(e), 1);
		assert_int_equal(early_bytes_of(e, GREEDY), 0);
		if (!ended) {
			assert_true(d->is_orphan && d->message.size == MIB);
			/* decoding_end frees the decoding and its message. Otherwise a sanitizer
			 * would report a leak. */
			decoding_end(d, true);
		}
	}
	early_free(e);
}

/* If a task is repeated, its output replaces the earlier output. A microbatch has at most one
 * output for each kind of task. */
TEST(a_repeated_task_replaces_its_output)
{
	struct body *out = body_new(malloc(8), 8, true), *again = body_new(malloc(8), 8, true);
	struct outputs *o;

	o = outputs_new();
	assert_null(outputs_find(o, 7, TASK_FORWARD));
	for (int attempt = 0; attempt < 3; attempt++) {
		outputs_keep(o, 7, TASK_FORWARD, attempt < 2 ? again : out);
		outputs_keep(o, 7, TASK_BACKWARD, again);
		assert_int_equal(outputs_count(o), OUTPUTS_OF_VISIT);
	}
	assert_true(outputs_find(o, 7, TASK_FORWARD) == out &&
		    outputs_find(o, 7, TASK_BACKWARD) == again);
	assert_int_equal(again->users, 2);
	outputs_drop(o, 7);
	assert_int_equal(outputs_count(o), 0);
	assert_null(outputs_find(o, 7, TASK_FORWARD));
	assert_true(out->users == 1 && again->users == 1);
	body_drop(out);
	body_drop(again);
	outputs_free(o);
}
