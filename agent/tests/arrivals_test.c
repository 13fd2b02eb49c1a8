/* Tests which of the peers' tensors count as transfers in the times of this node's device. Also
 * tests what happens if there is no memory to decode a message. */
#include "agent/tests/lone_agent.h"
#include "base/tests/test.h"

int played_decode(struct msg *m, const void *data, size_t size);
int played_join(struct post *p, struct post_message *m);

#define msg_decode played_decode
#define post_join  played_join
#include "agent/arrivals.c"
#undef msg_decode
#undef post_join

static unsigned n_joined;

/* Replaces msg_decode: behaves as if there were no memory for a message's arrays. */
int played_decode(struct msg *m, const void *data, size_t size)
{
	(void)m;
	(void)data;
	(void)size;
	return -ENOMEM;
}

int played_join(struct post *p, struct post_message *m)
{
	(void)p;
	(void)m;
	n_joined++;
	return 0;
}

enum { COMMITTED = 5, PEER = 1, FLOOD = 200, NOW_US = 1000000 };

static struct agent *begin(void)
{
	struct agent *a = lone_agent_new(0, 2);

	a->tell.clock.is_measured = true;
	a->held.standing = STAND_READY;
	a->held.committed = COMMITTED;
	device_clock_begin(a->modules.device_clock, 1);
	return a;
}

/* Returns an activation that its sender has computed at at_us and encoded 5 us later. */
static struct msg activation(uint64_t iteration, int64_t at_us)
{
	return (struct msg){ .type = MSG_TENSOR,
			     .u.tensor = { .kind = TENSOR_ACTIVATION,
					   .from = PEER,
					   .iteration = iteration,
					   .computed_us = at_us,
					   .encoded_us = at_us + 5 } };
}

/* A peer may send any number of tensors of past iterations, and claim any times for these
 * tensors. These tensors are dropped, so their times must not count. */
TEST(dropped_tensors_add_no_times)
{
	struct post_message p = { .kind = POST_DATA };
	struct agent *a = begin();

	for (int i = 0; i < FLOOD; i++) {
		struct msg m = activation(COMMITTED, NOW_US - 10 * i);

		take_message(a, &p, &m, PEER, NOW_US);
	}
	assert_int_equal(a->tell.tally.dropped, FLOOD);
	assert_int_equal(device_clock_intervals(a->modules.device_clock), 0);
	lone_agent_free(a);
}

TEST(transfers_of_the_present_iteration_add_times)
{
	struct agent *a = begin();
	struct device_time t;

	for (uint64_t iteration = COMMITTED; iteration <= COMMITTED + 2; iteration++) {
		struct msg m = activation(iteration, 101);

		note_transfer(a, &m.u.tensor, NOW_US);
		assert_int_equal(device_clock_intervals(a->modules.device_clock),
				 iteration > COMMITTED);
		/* A validation belongs to the newest committed iteration. */
		m.u.tensor.evaluate = 1;
		if (iteration > COMMITTED)
			note_transfer(a, &m.u.tensor, NOW_US);
	}
	device_clock_end(a->modules.device_clock, NOW_US + 1);
	t = device_clock_last(a->modules.device_clock);
	assert_int_equal(t.us[DEVICE_HOST], 5);
	assert_int_equal(t.us[DEVICE_NETWORK], NOW_US - 106);
	lone_agent_free(a);
}

/* If this node lacks the memory for a message, it must not report the sender. The pieces of the
 * message stay unchanged, because a thread may be reading them. */
TEST(missing_memory_is_no_fault_of_the_sender)
{
	struct piece pieces[2] = { { .size = 1 }, { .size = 1 } };
	struct post_message p = { .kind = POST_DATA, .size = 2, .pieces = { pieces, 2 } };
	struct agent *a = begin();

	a->run.welcomed = true;
	arrivals_take(a, &p, NOW_US);
	assert_int_equal(n_joined, 0);
	assert_int_equal(a->tell.tally.dropped, 1);
	assert_int_equal(a->tell.tally.refused, 0);
	assert_int_equal(a->peers.list[PEER].misfits, 0);
	lone_agent_free(a);
}
