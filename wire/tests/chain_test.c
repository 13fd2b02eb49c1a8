/* Tests the positions of a microbatch's tasks: forward, loss, backward. */

#include "base/tests/test.h"
#include "wire/chain.h"

TEST(a_chain_goes_out_and_back)
{
	static const enum task_kind kinds[] = { TASK_FORWARD, TASK_FORWARD, TASK_FORWARD, TASK_LOSS,
						TASK_BACKWARD, TASK_BACKWARD, TASK_BACKWARD };
	static const uint32_t hops[] = { 0, 1, 2, 0, 2, 1, 0 };

	for (uint32_t t = 0; t <= 6; t++) {
		assert_int_equal(chain_hop(3, t), hops[t]);
		assert_int_equal(chain_kind(3, t), kinds[t]);
		assert_int_equal(chain_position(3, hops[t], kinds[t]), t);
	}
	assert_int_equal(chain_position(3, 2, TASK_LOSS), 3);
	assert_int_equal(chain_hop(3, 7), 0);
	assert_int_equal(chain_hop(0, 0), 0);
}

TEST(a_node_is_at_its_hop)
{
	static const uint16_t nodes[] = { 7, 2, 5, 9 };

	assert_int_equal(chain_find(nodes, 3, 7), 0);
	assert_int_equal(chain_find(nodes, 3, 5), 2);
	assert_int_equal(chain_find(nodes, 3, 9), -1);
	assert_int_equal(chain_find(nodes, 0, 7), -1);
}
