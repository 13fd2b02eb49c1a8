/* Makes an agent without a worker and a controller, so that a test can call one of its modules. */

#include <stdlib.h>

#include "agent/tests/lone_agent.h"
#include "base/tests/test.h"

struct agent *lone_agent_new(uint16_t node, uint16_t n_nodes)
{
	struct agent_options options = { .log = calloc(1, sizeof(struct log)) };
	struct post_options o = { 0 };
	struct keys_identity *id;
	struct agent *a;

	assert_non_null(options.log);
	a = state_new(&options);
	assert_int_equal(keys_generate(&id, NULL), 0);
	o.identity = id;
	assert_int_equal(post_open(&a->tell.post, &o, NULL), 0);
	keys_free(id);
	rng_init(&a->peers.rng, 1);
	a->run.welcome.n_nodes = n_nodes;
	a->run.welcome.node = node;
	a->peers.list = calloc(n_nodes + 1u, sizeof(a->peers.list[0]));
	/* All zero: the sums of gradients are sent in fp32. */
	a->run.sum_codecs = calloc(MSG_STAGES, sizeof(a->run.sum_codecs[0]));
	a->run.times.delay_s = calloc(n_nodes, sizeof(a->run.times.delay_s[0]));
	a->run.times.bytes_s = calloc(n_nodes, sizeof(a->run.times.bytes_s[0]));
	a->run.times.sync_s = calloc(n_nodes, sizeof(a->run.times.sync_s[0]));
	assert_true(a->peers.list && a->run.sum_codecs && a->run.times.delay_s &&
		    a->run.times.bytes_s && a->run.times.sync_s);
	return a;
}

void lone_agent_free(struct agent *a)
{
	struct log *log = a->options.log;

	iteration_forget_evaluation(&a->iteration);
	plans_forget(&a->modules.plans);
	post_close(a->tell.post);
	free(a->run.sum_codecs);
	free(a->peers.list);
	free(a->run.times.delay_s);
	free(a->run.times.bytes_s);
	free(a->run.times.sync_s);
	state_free(a);
	free(log);
}
