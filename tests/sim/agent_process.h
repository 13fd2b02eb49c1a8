/* agent_process.h - reads the state of an agent for the simulation.
 *
 * It has a .c file of its own, because the internal headers of the agent and of the controller
 * define the same names. */
#ifndef TESTS_SIM_AGENT_PROCESS_H
#define TESTS_SIM_AGENT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

struct agent;
struct worker;

uint64_t agent_process_incarnation(const struct agent *a);
/* Gives the stage whose weights the agent has, the number of committed iterations that the weights
 * include, and their hash. Returns false if the agent has no weights. */
bool agent_process_holds(const struct agent *a, int *stage, uint64_t *committed, uint64_t *hash);
/* Returns true if the agent is draining or leaving. */
bool agent_process_drains(const struct agent *a);
/* Returns true if the job that the agent's worker w begins is the optimizer's step of the agent's
 * stage. */
bool agent_process_steps(const struct agent *a, const struct worker *w, const void *job);
/* Returns true if the job that the agent's worker w begins stores pieces of a fetched standby
 * copy. */
bool agent_process_stores(const struct agent *a, const struct worker *w, const void *job);

#endif
