/* agent_process.h - the state of an agent, for the simulation. A file of its own reads it, because
 * the internal headers of the agent and of the controller define the same names. */
#ifndef TESTS_SIM_AGENT_PROCESS_H
#define TESTS_SIM_AGENT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

struct agent;
struct worker;

uint64_t agent_process_incarnation(const struct agent *a);
/* Reads the stage that the agent holds, the number of commits that its weights contain and their
 * hash. Returns false if it holds none. */
bool agent_process_holds(const struct agent *a, int *stage, uint64_t *committed, uint64_t *hash);
/* Returns true if the agent drains, or leaves. */
bool agent_process_drains(const struct agent *a);
/* Returns true if the job, which a worker of the agent begins, is the optimizer's step of the
 * agent's stage. */
bool agent_process_steps(const struct agent *a, const struct worker *w, const void *job);
/* Returns true if the job stores the pieces of a fetched copy. */
bool agent_process_stores(const struct agent *a, const struct worker *w, const void *job);

#endif
