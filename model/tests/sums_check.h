/* sums_check.h - compares the sum of a gradient over replicas on a device with the CPU's. */
#ifndef MODEL_TESTS_SUMS_CHECK_H
#define MODEL_TESTS_SUMS_CHECK_H

#include "base/error.h"
#include "base/tensor_format.h"
#include "model/config.h"

/* Makes sums of stage 0 over one to three replicas. Each replica in turn is on the device, and
 * the other replicas are on the CPU. Then makes a step. *differing: number of encoded slices,
 * hashes, sums of squares and arrays whose bits differ from those that the CPU computes from the
 * same gradients. Some gradients have numbers that are not finite. Errors as stage_new's, and
 * -EIO for a device that fails. */
int sums_check(const struct model_config *c, const char *device, enum tensor_format format,
	       unsigned *differing, struct error *err);

#endif
