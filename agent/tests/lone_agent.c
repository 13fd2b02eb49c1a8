/* Makes an agent without a worker and a controller, so that tests can call one of its parts. */

#include <stdlib.h>

#include "agent/tests/lone_agent.h"
#include "base/tests/test.h"

struct agent *lone_agent_new(uint16_t node, uint16_t n_nodes)
{
	struct agent *a = calloc(1, sizeof(*a));
	struct post_options o = { 0 };
	struct keys_identity *id;

	assert_non_null(a);
	assert_int_equal(keys_generate(&id, NULL), 0);
	o.identity = id;
	assert_int_equal(post_open(&a->tell.post, &o, NULL), 0);
	keys_free(id);
	a->options.log = a->tell.log = calloc(1, sizeof(struct log));
	a->run.welcome.n_nodes = n_nodes;
	a->run.welcome.node = node;
	a->peers = calloc(n_nodes + 1u, sizeof(a->peers[0]));
	a->run.sum_codecs = calloc(MSG_STAGES, sizeof(a->run.sum_codecs[0])); /* fp32 */
	assert_true(a->options.log && a->peers && a->run.sum_codecs);
	return a;
}

void lone_agent_free(struct agent *a)
{
	iteration_forget_evaluation(a);
	plans_forget(a);
	queue_free(a->iteration.queue);
	outputs_free(a->modules.outputs);
	tasks_free(a->modules.tasks);
	standby_free(a->modules.standby);
	reduction_free(a->modules.reduction);
	restore_free(a->modules.restore);
	report_free(a->modules.report);
	delay_queue_free(a->modules.delay_queue);
	post_close(a->tell.post);
	free(a->options.log);
	free(a->run.sum_codecs);
	free(a->peers);
	free(a->iteration.routes);
	free(a->run.times.sync_s);
	free(a);
}
