/* Tests which completed transfers count as measurements of a link. The test replaces the post below
 * links.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"

#define post_peer     played_peer
#define post_transfer played_transfer
#include "agent/tests/lone_agent.h"

enum { NODES = 3, SECOND = 1000000, ROUND_US = 100000 };

/* The transfer that the post will report next. If its field `bytes` is 0, the post reports no
 * transfer. */
static struct post_transfer next;

int played_peer(const struct post *p, post_peer_id id, struct post_peer_info *out)
{
	(void)p;
	(void)id;
	*out = (struct post_peer_info){ .up = true, .least_round_trip_us = ROUND_US };
	return 0;
}

int played_transfer(struct post *p, struct post_transfer *out)
{
	(void)p;
	if (next.bytes == 0)
		return -EAGAIN;
	*out = next;
	next.bytes = 0;
	return 0;
}

#include "agent/tensors/links.c"

static int begin(void **state)
{
	struct agent *a = lone_agent_new(0, NODES);

	/* Any pointer but NULL will do, because the test replaces the functions that get it. */
	a->peers.post = (struct post *)a;
	a->peers.list[2].dial = 7;
	*state = a;
	return 0;
}

static int end(void **state)
{
	struct agent *a = *state;

	lone_agent_free(a);
	return 0;
}

static void finish(struct agent *a, enum post_class class, size_t bytes, int64_t took_us,
		   bool first)
{
	next = (struct post_transfer){ .peer = 7,
				       .class = class,
				       .bytes = bytes,
				       .queued_us = SECOND,
				       .left_us = SECOND,
				       .acked_us = SECOND + took_us,
				       .first = first };
	links_pump(&a->modules.links, SECOND + took_us);
	assert_int_equal(next.bytes, 0);
}

/* The first transfer on a connection includes the time of connecting, so it must not count as a
 * measurement. */
TEST_WITH(first_transfers_are_no_measurements, begin, end)
{
	struct agent *a = *state;
	const struct peer *p = &a->peers.list[2];

	finish(a, POST_CLASS_ACTIVATIONS, 7000, 250000, true);
	assert_int_equal(p->n_held, 0);
	finish(a, POST_CLASS_SUMS, 1 << 20, 500000, true);
	assert_true(p->bandwidth == 0);
	finish(a, POST_CLASS_ACTIVATIONS, 7000, ROUND_US, false);
	assert_int_equal(p->n_held, 1);
	assert_true(p->held_s > 0.0499 && p->held_s < 0.0501);
	finish(a, POST_CLASS_SUMS, 1 << 20, 500000, false);
	assert_true(p->bandwidth > 0);
}
