/* kinds.h - what computed a run, and what computes here in the place of each.
 *
 * A contribution's bits depend on what computed it: a CPU's instruction set and library of
 * products, a GPU's kind. Nodes tell it, and the record keeps it. What this machine can compute
 * as they did it does, several instruction sets in several processes; for the others the nearest
 * that it has stands in, and then nothing can be compared bit for bit.
 */
#ifndef VERIFY_KINDS_H
#define VERIFY_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"
#include "verify/executor.h"

enum { KINDS_MOST = 32 };

struct kind {
	char device[STAGE_DEVICE_SIZE]; /* as the first of its nodes told it; "" it is not known */
	uint32_t nodes;                 /* that ever computed with it */
	struct executor *executor;      /* several kinds may share one */
	bool exact;                     /* the same bits */
};

struct kinds {
	struct kind list[KINDS_MOST]; /* (n) the first, the commonest, in this process */
	uint32_t n;
	bool exact; /* all of them */
};

/* device NULL: each kind as it was; otherwise everything on that one (model/device_name.h). A record
 * that does not say is taken to be of the device given, or of this machine's CPU. kinds_free what
 * it holds. Errors are those of the store and of executor_new; -E2BIG: more than KINDS_MOST. */
int kinds_new(struct kinds *out, struct store *s, const struct executor_setup *setup,
	      const char *device, struct error *err);
/* Every executor with it. */
void kinds_free(struct kinds *k);

/* The kind of a device as recorded; NULL and unknown ones are the first. */
const struct kind *kinds_find(const struct kinds *k, const char *device);

#endif
