/* number_set.c - a set of numbers, as a hash table with open addressing.
 *
 * Such a set has the reports that the controller has counted in an iteration. A report that arrives
 * twice therefore counts once. The controller clears the set at each iteration. Clearing keeps the
 * table for the next iteration, unless the table has grown beyond KEPT_ROOM slots. */
#include "controller/run/number_set.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { FIRST_ROOM = 1024, KEPT_ROOM = 1 << 16 };

/* Finds the slot that holds the number, or the unused slot in which to put it. */
static uint64_t *slot_of(const struct number_set *o, uint64_t number)
{
	uint64_t x = number * 0x9e3779b97f4a7c15u;
	uint32_t at = (uint32_t)((x ^ x >> 32) * 0xbf58476d1ce4e5b9u >> 32) & (o->room - 1);

	while (o->slots[at] != 0 && o->slots[at] != number)
		at = (at + 1) & (o->room - 1);
	return &o->slots[at];
}

static void grow(struct number_set *o)
{
	struct number_set more = { .room = o->room ? 2 * o->room : FIRST_ROOM };

	more.slots = alloc_array(more.room, sizeof(*more.slots));
	for (uint32_t i = 0; i < o->room; i++)
		if (o->slots[i] != 0)
			*slot_of(&more, o->slots[i]) = o->slots[i];
	more.n = o->n;
	free(o->slots);
	*o = more;
}

bool number_set_add(struct number_set *o, uint64_t number)
{
	uint64_t *slot;

	assert(number != 0);
	if (2 * o->n >= o->room)
		grow(o);
	slot = slot_of(o, number);
	if (*slot == number)
		return false;
	*slot = number;
	o->n++;
	return true;
}

void number_set_clear(struct number_set *o)
{
	if (o->room > KEPT_ROOM)
		number_set_fini(o);
	if (o->n > 0)
		memset(o->slots, 0, o->room * sizeof(*o->slots));
	o->n = 0;
}

void number_set_fini(struct number_set *o)
{
	free(o->slots);
	*o = (struct number_set){ .slots = NULL };
}
