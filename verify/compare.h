/* compare.h - a whole recorded run against its replay: audited, computed again, compared. */
#ifndef VERIFY_COMPARE_H
#define VERIFY_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

/* Losses may differ by so much of their size; weights not by a bit. */
#define COMPARE_LOSS_LIMIT 1e-5

struct compare_options {
	uint64_t from, to;   /* iterations compared; to 0: the last. Those before are replayed too:
	                      * weights come from the beginning */
	const char *device;  /* as in model/stage.h */
	unsigned workers;    /* threads; 0 counts as 1 */
	/* Told after every iteration; NULL: nobody. */
	void (*progress)(void *context, uint64_t iteration, uint64_t last);
	void *context;
};

struct compare_result {
	uint64_t last;        /* committed in the store */
	uint64_t replayed;    /* iterations */
	uint64_t announced;   /* hashes that were compared */
	uint32_t nodes;       /* that counted a gradient in the compared iterations */
	uint64_t unannounced; /* stages of compared iterations that no node told of */
	uint64_t restored,
		averaged;   /* stages put back from checkpoints, made of their neighbours */
	uint64_t differing; /* hashes */
	uint64_t losses, losses_equal,
		losses_off; /* compared; equal to the bit; beyond the limit */
	double worst_loss;  /* largest relative difference */
	struct store_hash
		first;       /* the first hash that differs, as announced; iteration 0: none */
	uint64_t first_here; /* what the replay has instead */
	uint64_t first_loss_iteration; /* the first beyond the limit; 0: none */
	double first_loss_recorded, first_loss_here;
	struct error broken; /* the first broken rule of audit.h; "" none. Ends the comparison */
};

/* Whether the record and the replay are the same, as far as was compared. */
bool compare_equal(const struct compare_result *r);

/* 0 when it could be compared, whatever came of it: see *out. Otherwise nothing was proved: the
 * run cannot be read, its corpus is another, the device is missing, -ENODATA nothing is committed
 * in the range, or nothing was announced. */
int compare_run(struct store *s, const struct compare_options *o, struct compare_result *out,
		struct error *err);

#endif
