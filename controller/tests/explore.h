/* explore.h - for tests: all states of the protocol's model, and whether anything is wrong in one. */
#ifndef CONTROLLER_TESTS_EXPLORE_H
#define CONTROLLER_TESTS_EXPLORE_H

#include "controller/tests/protocol.h"

struct explored {
	uint64_t states, steps;
	uint64_t ended, hopeless; /* states: where it has ended; where a stage has nobody left */
	/* NULL nothing; else the first found, by a shortest way: its trace was printed */
	const char *wrong;
};

/* Breadth first, to the end. States are known by 64 bits of them: of ten million two are mistaken for one once in
 * three hundred thousand explorations. trace: NULL, or where to print how what is wrong comes about. */
struct explored explore(const struct protocol *p, FILE *trace);

#endif
