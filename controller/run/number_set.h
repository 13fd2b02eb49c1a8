/* number_set.h - a set of numbers, used to recognise reports that were counted before. */
#ifndef CONTROLLER_RUN_NUMBER_SET_H
#define CONTROLLER_RUN_NUMBER_SET_H

#include <stdbool.h>
#include <stdint.h>

struct number_set {
	uint64_t *slots; /* hash table with `room` slots (open addressing); 0: unused slot */
	uint32_t n, room;
};

/* Adds the number, which must not be 0. Returns true if it was not in the set, or if there is no
 * memory to add it. */
bool number_set_add(struct number_set *o, uint64_t number);
void number_set_clear(struct number_set *o);
void number_set_fini(struct number_set *o);

#endif
