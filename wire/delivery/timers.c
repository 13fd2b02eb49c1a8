/* timers.c - the heap of timers.h. In every turn, a post with a thousand peers needs the peer that
 * is due next. The heap gives it without a search through all peers. */
#include "wire/delivery/timers.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static void put(struct timers *t, size_t place, struct timer *timer)
{
	t->heap[place - 1] = timer;
	timer->place = place;
}

static void move_up(struct timers *t, struct timer *timer)
{
	size_t place = timer->place;
	for (; place > 1 && t->heap[place / 2 - 1]->at_us > timer->at_us; place /= 2)
		put(t, place, t->heap[place / 2 - 1]);
	put(t, place, timer);
}

static void move_down(struct timers *t, struct timer *timer)
{
	size_t place = timer->place;
	for (;;) {
		size_t next = 2 * place;
		if (next < t->n && t->heap[next]->at_us < t->heap[next - 1]->at_us)
			next++;
		if (next > t->n || t->heap[next - 1]->at_us >= timer->at_us)
			break;
		put(t, place, t->heap[next - 1]);
		place = next;
	}
	put(t, place, timer);
}

static void unset(struct timers *t, struct timer *timer)
{
	struct timer *last = t->heap[--t->n];
	const size_t place = timer->place;
	timer->place = 0;
	if (last == timer)
		return;
	put(t, place, last);
	move_up(t, last);
	move_down(t, last);
}

void timers_set(struct timers *t, struct timer *timer, int64_t at_us)
{
	timer->at_us = at_us;
	if (at_us == INT64_MAX) {
		if (timer->place > 0)
			unset(t, timer);
		return;
	}
	if (timer->place == 0) {
		array_reserve(&t->heap, &t->room, t->n + 1, sizeof(struct timer *));
		put(t, ++t->n, timer);
	}
	move_up(t, timer);
	move_down(t, timer);
}

struct timer *timers_first(const struct timers *t)
{
	return t->n > 0 ? t->heap[0] : NULL;
}

int64_t timers_first_us(const struct timers *t)
{
	return t->n > 0 ? t->heap[0]->at_us : INT64_MAX;
}

void timers_fini(struct timers *t)
{
	free(t->heap);
	memset(t, 0, sizeof(*t));
}
