/* contradictions.h - who contradicted whom, and who must be wrong.
 *
 * Of two that contradict each other one is wrong, and nothing says which. Of all sets of nodes that hold one of
 * each pair at least (vertex covers of that graph) the smallest are believed: as few as can be are wrong.
 */
#ifndef CONTROLLER_CONTRADICTIONS_H
#define CONTROLLER_CONTRADICTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct contradiction {
	uint16_t ids[2];
	int out;            /* who was left out for it; -1 nobody */
	bool explained;     /* one was found wrong in another way, or forgiven: it says nothing of the other */
	uint64_t iteration; /* when they last contradicted each other */
};

struct contradictions {
	struct contradiction *of; /* (n) each two nodes once; free() */
	uint32_t n;
	size_t room;
};

/* Borrowed until the next contradictions_add; NULL: memory is out. Forgets those of which nobody is out, 200 iterations
 * after they were last seen. */
struct contradiction *contradictions_add(struct contradictions *p, uint16_t a, uint16_t b, uint64_t iteration);
struct contradiction *contradictions_find(const struct contradictions *p, uint16_t a, uint16_t b); /* NULL none */
bool contradiction_is_of(const struct contradiction *d, uint16_t id);
uint16_t contradiction_other(const struct contradiction *d, uint16_t id);
/* How many more are wrong at least if this one is right than if it is wrong. Above 0: it is in all of the
 * smallest sets; below: in none; 0: in some only, or in no pair. (Sets of more than 20 are not told apart.) */
int contradictions_guilt(const struct contradictions *p, uint16_t id);

#endif
