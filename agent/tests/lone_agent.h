/* lone_agent.h - for tests: an agent without a worker and without a controller. The test
 * does the worker's jobs. Of the agent's messages only the number is recorded (tally.sequence).
 * Every function fails the running cmocka test on an error.
 */
#ifndef AGENT_TESTS_LONE_AGENT_H
#define AGENT_TESTS_LONE_AGENT_H

#include <stdint.h>

#include "agent/state.h"

/* Returns node `node` of n_nodes, with an unconnected post, a silent log and n_nodes + 1 peers. The
 * last peer belongs to no node. All emulated times are 0. The caller frees the agent by
 * lone_agent_free. */
struct agent *lone_agent_new(uint16_t node, uint16_t n_nodes);
void lone_agent_free(struct agent *a);

#endif
