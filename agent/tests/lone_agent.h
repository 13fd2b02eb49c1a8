/* lone_agent.h - for tests: an agent without a worker and without a controller. What it would
 * compute the test does; of what it tells only the number of messages counts (sequence).
 * Everything fails the running cmocka test when it goes wrong.
 */
#ifndef AGENT_TESTS_LONE_AGENT_H
#define AGENT_TESTS_LONE_AGENT_H

#include <stdint.h>

#include "agent/state.h"

/* Node `node` of n_nodes, with a post that nobody is at the other end of, a silent log, and peers
 * (n_nodes + 1, the last one nobody's). What of its parts a test needs it makes itself. The
 * caller's: lone_agent_free. */
struct agent *lone_agent_new(uint16_t node, uint16_t n_nodes);
/* With the parts that were made. */
void lone_agent_free(struct agent *a);

#endif
