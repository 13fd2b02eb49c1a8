/* compare.h - a whole recorded run against its replay: audited, computed again, compared. */
#ifndef VERIFY_COMPARE_H
#define VERIFY_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"
#include "verify/kinds.h"

/* Losses may differ by so much of their size; weights not by a bit. Where another kind of device
 * computes than did (kinds.h) weights drift apart: then losses are held to these, in fp32 and where
 * either computes in bf16, the gradient's norms to ten times as much, and the replicas' weights to
 * one another. (Seen over 40 iterations of the demo: 2.6e-7 and 3.5e-5 between instruction sets,
 * 3.2e-4 and 3.3e-2 between fp32 and bf16 on a CPU.) */
#define COMPARE_LOSS_LIMIT 1e-5
#define COMPARE_UNLIKE_LIMIT 1e-3
#define COMPARE_UNLIKE_BF16_LIMIT 1e-2
#define COMPARE_NORM_TIMES 10

struct compare_options {
	uint64_t from, to;   /* iterations compared; to 0: the last. Those before are replayed too:
	                      * weights come from the beginning */
	const char *device;  /* NULL: what computed it, as in kinds.h */
	unsigned workers;    /* threads; 0: as many as are useful */
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
	uint64_t unlike_from; /* from this iteration on within limits; 0: all bit for bit */
	double unlike_limit, worst_norm; /* of losses; largest relative difference */
	uint64_t norms_off, first_norm_iteration; /* beyond the limit */
	const char *unlike_why;
	uint32_t n_kinds;
	struct compare_kind {
		char device[STAGE_DEVICE_SIZE], here[STAGE_DEVICE_SIZE];
		uint32_t nodes;
		bool exact;
	} kinds[KINDS_MOST]; /* (n_kinds) what computed the run, and what here */
};

/* Whether the record and the replay are the same, as far as was compared. */
bool compare_equal(const struct compare_result *r);

/* 0 when it could be compared, whatever came of it: see *out. Otherwise nothing was proved: the
 * run cannot be read, its corpus is another, the device is missing, -ENODATA nothing is committed
 * in the range, or nothing was announced. */
int compare_run(struct store *s, const struct compare_options *o, struct compare_result *out,
		struct error *err);

#endif
