/* explore.h - for tests: explores all states of the protocol's model and checks each. */
#ifndef CONTROLLER_TESTS_EXPLORE_H
#define CONTROLLER_TESTS_EXPLORE_H

#include "controller/tests/protocol.h"

struct explored {
	uint64_t states, steps;
	/* number of states in which the iteration has ended, and of states in which a stage has no
	 * node left */
	uint64_t ended, hopeless;
	/* the first violation found, whose shortest trace was printed; NULL: none */
	const char *wrong;
};

/* Explores states breadth first until no new state is found. A state is identified by a hash of 64
 * bits. With ten million states, one exploration in 300,000 has two states with the same hash.
 * trace: stream to which the steps that lead to a violation are printed; NULL: they are not
 * printed. */
struct explored explore(const struct protocol *p, FILE *trace);

#endif
