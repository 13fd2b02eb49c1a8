/* agent_process.h - what an agent is, as only its own modules know: its header's names are others than the controller's. */
#ifndef TESTS_SIM_AGENT_PROCESS_H
#define TESTS_SIM_AGENT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

struct agent;

uint64_t agent_process_incarnation(const struct agent *a);
/* The stage whose weights it holds, of how many commits, and their hash. False: none. */
bool agent_process_holds(const struct agent *a, int *stage, uint64_t *committed, uint64_t *hash);

#endif
