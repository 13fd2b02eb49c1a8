/* Reads an agent's state for the checks at the end of a simulated run. */
#include "tests/sim/agent_process.h"

#include "agent/state.h"

uint64_t agent_process_incarnation(const struct agent *a)
{
	return a->incarnation;
}

bool agent_process_holds(const struct agent *a, int *stage, uint64_t *committed, uint64_t *hash)
{
	if (!a->whole || a->stage == MSG_NO_STAGE)
		return false;
	*stage = a->stage;
	*committed = a->committed;
	*hash = a->hash;
	return true;
}
