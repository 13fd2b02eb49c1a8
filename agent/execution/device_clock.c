/* device_clock.c - measures how long the device is in each state, with three unions of time
 * intervals. Each union contains the previous union.
 *
 * Union 0 has the times in which the device was busy. Union 1 adds the times in which the host
 * worked for the device. Union 2 adds the times in which a tensor was on its way. A state's time
 * is the length of its union minus the length of the previous union.
 */
#include "agent/execution/device_clock.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"

/* Limit of the number of intervals in a union. Peers determine the number of transfers, so
 * without a limit a peer could fill the memory. A union that exceeds the limit closes its
 * narrowest gap. */
enum { UNIONS = DEVICE_OTHERS, MOST = DEVICE_CLOCK_INTERVALS };

struct interval {
	int64_t from_us, to_us;
};

/* A union of time intervals: at most MOST intervals, in ascending order. Neighbouring intervals
 * do not touch. */
struct intervals {
	LIST(struct interval) of;
};

struct device_clock {
	struct intervals unions[UNIONS];
	int64_t begun_us; /* 0: no period has begun */
	struct device_time last;
};

struct device_clock *device_clock_new(void)
{
	return alloc_new(sizeof(struct device_clock));
}

void device_clock_free(struct device_clock *x)
{
	for (int i = 0; x && i < UNIONS; i++)
		free(x->unions[i].of.list);
	free(x);
}

void device_clock_begin(struct device_clock *x, int64_t now_us)
{
	if (!x->begun_us)
		x->begun_us = now_us;
}

/* Adds an interval, and merges it with the intervals that it overlaps or touches. Most new
 * intervals are later than all stored intervals, so the search begins at the end. */
static void add_interval(struct intervals *u, struct interval new)
{
	size_t to = u->of.n, from;
	struct interval *list;

	LIST_ADD(&u->of);
	list = u->of.list;
	while (to > 0 && list[to - 1].from_us > new.to_us)
		to--;
	for (from = to; from > 0 && list[from - 1].to_us >= new.from_us; from--) {
		if (list[from - 1].from_us < new.from_us)
			new.from_us = list[from - 1].from_us;
		if (list[from - 1].to_us > new.to_us)
			new.to_us = list[from - 1].to_us;
	}
	memmove(list + from + 1, list + to, (u->of.n - 1 - to) * sizeof(*list));
	list[from] = new;
	u->of.n -= to - from;
}

/* Returns the narrowest gap between two successive intervals; u has at least two intervals. */
static struct interval find_gap(const struct intervals *u)
{
	const struct interval *list = u->of.list;
	size_t at = 1;

	for (size_t i = 2; i < u->of.n; i++)
		if (list[i].from_us - list[i - 1].to_us < list[at].from_us - list[at - 1].to_us)
			at = i;
	return (struct interval){ list[at - 1].to_us, list[at].from_us };
}

/* Adds an interval to union `first` and to all later unions, which contain union `first`. A union
 * that exceeds MOST closes its narrowest gap. All later unions then close that gap too. Otherwise
 * the later unions would no longer contain this union, and a state's time could be negative. */
static void add_to_unions(struct device_clock *x, int first, struct interval new)
{
	for (int i = first; i < UNIONS; i++)
		add_interval(&x->unions[i], new);
	for (int i = first; i < UNIONS; i++) {
		if (x->unions[i].of.n > MOST) {
			struct interval gap = find_gap(&x->unions[i]);

			for (int k = i; k < UNIONS; k++)
				add_interval(&x->unions[k], gap);
		}
	}
}

void device_clock_add(struct device_clock *x, enum device_state state, int64_t from_us,
		      int64_t to_us)
{
	if (!x->begun_us)
		return;
	if (from_us < x->begun_us)
		from_us = x->begun_us;
	if (from_us < to_us)
		add_to_unions(x, (int)state, (struct interval){ from_us, to_us });
}

/* Removes the times before at_us from u, and returns their total length. */
static int64_t cut_before(struct intervals *u, int64_t at_us)
{
	int64_t sum = 0;
	size_t n = 0;

	for (; n < u->of.n && u->of.list[n].to_us <= at_us; n++)
		sum += u->of.list[n].to_us - u->of.list[n].from_us;
	if (n < u->of.n && u->of.list[n].from_us < at_us) {
		sum += at_us - u->of.list[n].from_us;
		u->of.list[n].from_us = at_us;
	}
	u->of.n -= n;
	if (n > 0)
		memmove(u->of.list, u->of.list + n, u->of.n * sizeof(*u->of.list));
	return sum;
}

void device_clock_end(struct device_clock *x, int64_t until_us)
{
	int64_t covered = 0;

	if (!x->begun_us || until_us <= x->begun_us)
		return;
	for (int i = 0; i < UNIONS; i++) {
		int64_t longer = cut_before(&x->unions[i], until_us);

		x->last.us[i] = (uint64_t)(longer - covered);
		covered = longer;
	}
	x->last.us[DEVICE_OTHERS] = (uint64_t)(until_us - x->begun_us - covered);
	x->begun_us = until_us;
}

struct device_time device_clock_last(const struct device_clock *x)
{
	return x->last;
}

size_t device_clock_intervals(const struct device_clock *x)
{
	size_t most = 0;

	for (int i = 0; i < UNIONS; i++)
		if (x->unions[i].of.n > most)
			most = x->unions[i].of.n;
	return most;
}

void device_clock_forget(struct device_clock *x)
{
	for (int i = 0; i < UNIONS; i++)
		x->unions[i].of.n = 0;
	x->begun_us = 0;
	x->last = (struct device_time){ { 0 } };
}
