/* pairs.h - who contradicted whom, and who must be wrong.
 *
 * Of two that contradict each other one is wrong, and nothing says which. Of all sets of nodes that hold one of
 * each pair at least (vertex covers of that graph) the smallest are believed: as few as can be are wrong.
 */
#ifndef CONTROLLER_PAIRS_H
#define CONTROLLER_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pair {
	uint16_t ids[2];
	int out;            /* who was left out for it; -1 nobody */
	bool explained;     /* one was found wrong in another way, or forgiven: it says nothing of the other */
	uint64_t iteration; /* when they last contradicted each other */
};

struct pairs {
	struct pair *of; /* (n) each two nodes once; free() */
	uint32_t n;
	size_t room;
};

/* Borrowed until the next pairs_add; NULL: memory is out. Forgets those of which nobody is out, 200 iterations
 * after they were last seen. */
struct pair *pairs_add(struct pairs *p, uint16_t a, uint16_t b, uint64_t iteration);
struct pair *pairs_find(const struct pairs *p, uint16_t a, uint16_t b); /* NULL none */
bool pair_is_of(const struct pair *d, uint16_t id);
uint16_t pair_other(const struct pair *d, uint16_t id);
/* How many more are wrong at least if this one is right than if it is wrong. Above 0: it is in all of the
 * smallest sets; below: in none; 0: in some only, or in no pair. (Sets of more than 20 are not told apart.) */
int pairs_guilt(const struct pairs *p, uint16_t id);

#endif
