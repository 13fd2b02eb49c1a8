#include "agent/needs.h"

#include <errno.h>

enum {
	OUTPUTS = 2, /* of a visit: of the forward pass, and of the backward pass or the loss */
	/* Of P floats each: the gradient's copy, which goes out in slices; the parts that come; the
	 * sum; its slices, as they go out and as they come. */
	SUM_ARRAYS = 5,
	COPY_ARRAYS = 3 /* of P floats each: weights and both moments */
};

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

struct needs needs_of(size_t parameters, size_t activation, uint32_t visits, uint64_t early_most,
		      bool saves)
{
	uint64_t array = parameters * sizeof(float);
	uint64_t tensors = visits * (uint64_t)activation * sizeof(float);
	struct needs n = { .kept = OUTPUTS * tensors,
			   .waiting = tensors,
			   .early = least(early_most, tensors + array),
			   .reduction = SUM_ARRAYS * array,
			   .copies = (saves ? 2u : 1u) * COPY_ARRAYS * array };

	n.total = n.kept + n.waiting + n.early + n.reduction + n.copies;
	return n;
}

static double mib(uint64_t bytes)
{
	return (double)bytes / 0x1p20;
}

int needs_check(const struct needs *n, uint64_t free_bytes, struct error *err)
{
	if (n->total <= free_bytes)
		return 0;
	return error_set(err, -ENOMEM,
			 "an iteration needs %.1f MiB beside the stage (outputs kept %.1f, tensors that "
			 "wait %.1f, early ones %.1f, the gradient's sum %.1f, copies of the stage %.1f), "
			 "%.1f are free: %.1f are missing",
			 mib(n->total), mib(n->kept), mib(n->waiting), mib(n->early),
			 mib(n->reduction), mib(n->copies), mib(free_bytes), mib(n->total - free_bytes));
}
