/* lone_agent.h - for tests: an agent without a worker and without a controller. The test does the
 * worker's jobs. The agent's messages are only counted (tally.sequence). Every function fails the
 * running cmocka test on an error.
 */
#ifndef AGENT_TESTS_LONE_AGENT_H
#define AGENT_TESTS_LONE_AGENT_H

#include <stdint.h>

#include "agent/state.h"

/* Returns the agent of node `node` in a run of n_nodes. The agent has a post without connections,
 * a silent log and n_nodes + 1 peers. The last peer belongs to no node. All emulated times are 0.
 * The caller frees the agent by lone_agent_free. */
struct agent *lone_agent_new(uint16_t node, uint16_t n_nodes);
void lone_agent_free(struct agent *a);

#endif
