/* needs.c - adds up the memory that an iteration needs, and writes the error message if memory is
 * missing. */
#include "agent/execution/needs.h"

#include <errno.h>

#include "agent/tensors/outputs.h"

enum {
	/* Number of arrays in a reduction, each with one float for each parameter of the stage:
	 * the copy of the gradient that is sent, the received parts, the sum, the sent slice of
	 * the sum and the received slices of the sum. */
	SUM_ARRAYS = 5,
	/* Number of such arrays in a copy of the stage: the weights and both moments. */
	COPY_ARRAYS = 3,
	EARLY_TIMES = 4
};
#define EARLY_LEAST_BYTES ((uint64_t)64 << 20)

static uint64_t take_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t add_up(const struct needs *n)
{
	return n->kept + n->waiting + n->early + n->reduction + n->copies;
}

struct needs needs_of(size_t parameters, size_t activation, uint32_t visits, uint64_t early_most,
		      bool saves)
{
	uint64_t array = parameters * sizeof(float);
	uint64_t tensors = visits * (uint64_t)activation * sizeof(float);
	struct needs n = { .kept = OUTPUTS_OF_VISIT * tensors,
			   .waiting = tensors,
			   .early = take_least(early_most, tensors + array),
			   .reduction = SUM_ARRAYS * array,
			   .copies = (saves ? 2u : 1u) * COPY_ARRAYS * array };

	n.total = add_up(&n);
	return n;
}

static uint64_t subtract_down_to_0(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

struct needs needs_beyond(const struct needs *n, const struct needs *checked)
{
	struct needs more = { .kept = subtract_down_to_0(n->kept, checked->kept),
			      .waiting = subtract_down_to_0(n->waiting, checked->waiting),
			      .early = subtract_down_to_0(n->early, checked->early),
			      .reduction = subtract_down_to_0(n->reduction, checked->reduction),
			      .copies = subtract_down_to_0(n->copies, checked->copies) };

	more.total = add_up(&more);
	return more;
}

uint64_t needs_early_room(const struct needs *n, uint64_t free_bytes, uint64_t most)
{
	uint64_t room = n->early + subtract_down_to_0(free_bytes, n->total);
	uint64_t floor = EARLY_TIMES * n->early + EARLY_LEAST_BYTES;

	return take_least(most, room > floor ? room : floor);
}

static double to_mib(uint64_t bytes)
{
	return (double)bytes / 0x1p20;
}

int needs_check(const struct needs *n, uint64_t free_bytes, struct error *err)
{
	if (n->total <= free_bytes)
		return 0;
	return error_set(
		err, -ENOMEM,
		"an iteration needs %.1f MiB beside the stage (outputs kept %.1f, tensors that "
		"wait %.1f, early ones %.1f, the gradient's sum %.1f, copies of the stage "
		"%.1f), but only %.1f MiB are free",
		to_mib(n->total), to_mib(n->kept), to_mib(n->waiting), to_mib(n->early),
		to_mib(n->reduction), to_mib(n->copies), to_mib(free_bytes));
}
