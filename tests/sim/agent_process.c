/* agent_process.c - reads an agent's state for the checks of a simulated run. */
#include "tests/sim/agent_process.h"

#include "agent/state.h"

uint64_t agent_process_incarnation(const struct agent *a)
{
	return a->self.incarnation;
}

bool agent_process_holds(const struct agent *a, int *stage, uint64_t *committed, uint64_t *hash)
{
	if (!a->held.whole || a->held.stage == MSG_NO_STAGE)
		return false;
	*stage = a->held.stage;
	*committed = a->held.committed;
	*hash = a->held.hash;
	return true;
}

bool agent_process_drains(const struct agent *a)
{
	return a->tell.end.drain_by_us != 0 || a->tell.end.leaving;
}

bool agent_process_steps(const struct agent *a, const struct worker *w, const void *job)
{
	return w == a->worker && ((const struct job *)job)->kind == JOB_STEP;
}

bool agent_process_stores(const struct agent *a, const struct worker *w, const void *job)
{
	const struct job *j = job;

	return w == a->worker && j->kind == JOB_FOLLOW && j->follow.fresh != NULL;
}
