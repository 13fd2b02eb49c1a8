/* Tests the cost of a run from given prices, and the run's goodput. */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/tests/test.h"
#include "tui/run/costs.h"

static const char prices_text[] = "{\"n01\": 2.5,\n \"Oregon\": 1.25,\n \"others\": 0.5}";

TEST(prices_are_parsed)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{ "", "p:1:" },
		{ "[1]", "p:1: expected prices" },
		{ "{}", "p:1: expected prices" },
		{ "{\"n01\": 1,\n\"n02\": \"2\"}", "p:2: n02: expected a price" },
		{ "{\n\n\"LA\": -1}", "p:3: LA: expected a price" },
		{ "{\"others\": 1e9}", "p:1: others: expected a price" },
		{ "{\"a name that is longer than any place of a node\": 1}", "expected a node" },
		{ "{\"n01\": 1, \"n01\": 2}", "duplicate" },
	};
	struct prices p = { .n = 0 };
	struct error err;

	assert_int_equal(prices_parse(&p, "p", prices_text, &err), 0);
	assert_true(p.are_known);
	assert_int_equal(p.n, 2);
	assert_true(p.others == 0.5);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(prices_parse(&p, "p", wrong[i].text, &err), -EINVAL);
		if (!strstr(err.text, wrong[i].says))
			fail_msg("\"%s\" does not say %s", err.text, wrong[i].says);
	}
	assert_int_equal(p.n, 2); /* an invalid file leaves the prices unchanged */
}

/* Returns a run of four nodes. n00 and n03 are in Oregon; n02 is dead. */
static struct state *four_nodes(void)
{
	static const char *const places[] = { "Oregon", "Oregon", "LA", "LA" };
	struct state *s = state_new();
	struct msg m = { .type = MSG_SEE_RUN };

	m.u.see_run.n_nodes = 4;
	m.u.see_run.microbatches = 10;
	m.u.see_run.tokens_per_iteration = 500000;
	state_apply(s, &m);
	for (uint16_t i = 0; i < 4; i++) {
		m = (struct msg){ .type = MSG_SEE_NODE };
		m.u.see_node.node = i;
		m.u.see_node.state = i == 2 ? NODE_DEAD : NODE_LIVE;
		strcpy(m.u.see_node.location, places[(i + 1) % 4 / 2 * 2]);
		state_apply(s, &m);
	}
	return s;
}

static void add_iteration(struct state *s, struct msg_see_iteration it)
{
	struct msg m = { .type = MSG_SEE_ITERATION, .u.see_iteration = it };

	m.u.see_iteration.iteration = s->history.n_iterations + 1;
	state_apply(s, &m);
}

TEST(a_run_costs_what_its_nodes_cost)
{
	struct state *s = four_nodes();
	struct prices p;
	struct cost c;

	assert_int_equal(prices_parse(&p, "p", prices_text, NULL), 0);
	c = costs_of(&p, s, -1, 1);
	/* 1.25 for n00 and n03 in Oregon, 2.5 for n01 itself, nothing for n02, which is dead. */
	assert_true(c.per_hour == 1.25 + 2.5 + 1.25);
	/* The cost of a token is unknown before an iteration has ended. */
	assert_true(c.per_mtoken == 0);
	add_iteration(s, (struct msg_see_iteration){ .real_s = 36, .iteration_s = 18 });
	c = costs_of(&p, s, -1, 1);
	/* In 36 s, a hundredth of an hour, the run costs 0.05 and processes 500,000 tokens. */
	assert_true(fabs(c.per_mtoken - 2 * 5.0 / 100) < 1e-9);
	c = costs_of(&p, s, 1, 2);
	assert_true(c.per_hour == 2.5);
	assert_true(fabs(c.per_mtoken - 2 * 2.5 / 50) < 1e-9);
	s->run.emulated = 1; /* the duration is then iteration_s, in plan seconds */
	c = costs_of(&p, s, -1, 1);
	assert_true(fabs(c.per_mtoken - 2 * 5.0 / 200) < 1e-9);
	assert_int_equal(prices_parse(&p, "p", "{\"n001\": 2}", NULL), 0);
	assert_true(costs_of(&p, s, -1, 1).per_hour == 2);
	state_free(s);
}

/* An iteration takes 10 s from commit to commit. The nodes compute for 8 s of these 10 s, and are
 * busy for three quarters of the 8 s, so the goodput is 0.6. In the second iteration all 10
 * microbatches run twice. Its goodput is 0.3, and the mean of both is 0.45. */
TEST(goodput_is_the_share_of_committed_work)
{
	struct state *s = four_nodes();

	assert_true(costs_goodput(s) == 0);
	add_iteration(s, (struct msg_see_iteration){
				 .real_s = 10, .iteration_s = 8, .idle_fraction = 0.25f });
	assert_true(fabs(costs_goodput(s) - 0.6) < 1e-6);
	add_iteration(
		s, (struct msg_see_iteration){
			   .real_s = 10, .iteration_s = 8, .rerun = 10, .idle_fraction = 0.25f });
	assert_true(fabs(costs_goodput(s) - 0.45) < 1e-6);
	s->run.time_scale = 0.5; /* a plan second lasts half a real second */
	assert_true(fabs(costs_goodput(s) - 0.225) < 1e-6);
	add_iteration(s, (struct msg_see_iteration){ .real_s = NAN, .iteration_s = INFINITY });
	assert_true(fabs(costs_goodput(s) - 0.225) < 1e-6);
	state_free(s);
}
