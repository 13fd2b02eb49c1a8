/* compare.h - audits and recomputes a recorded run, and compares the results. */
#ifndef VERIFY_COMPARE_H
#define VERIFY_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"
#include "verify/devices.h"

/* Weights must be equal bit for bit, and losses may differ by COMPARE_LOSS_LIMIT, a relative
 * difference.
 *
 * If a device of another kind computed in an iteration (devices.h), the weights drift apart. From
 * the first such iteration on, tolerances apply. If a device computes in bf16, losses may differ by
 * COMPARE_TOLERANCE_BF16. Otherwise losses may differ by COMPARE_TOLERANCE. The norms of gradients
 * may differ by COMPARE_NORM_FACTOR times the tolerance of losses. Even where tolerances apply, the
 * replicas of a stage must have bit-identical weights.
 *
 * Largest relative differences measured over 40 iterations of the demo. Between two instruction
 * sets: 2.6e-7 in losses and 3.5e-5 in norms. Between fp32 and bf16 on a CPU: 3.2e-4 in losses
 * and 3.3e-2 in norms.
 */
#define COMPARE_LOSS_LIMIT 1e-5
#define COMPARE_TOLERANCE 1e-3
#define COMPARE_TOLERANCE_BF16 1e-2
#define COMPARE_NORM_FACTOR 10

struct compare_options {
	/* First and last iteration to compare; `to` 0: up to the last committed iteration.
	 * Iterations before `from` are recomputed but not compared, because later weights depend
	 * on them. */
	uint64_t from, to;
	/* Name of the device that recomputes; NULL: the best match (devices.h). */
	const char *device;
	const char *run;     /* the run's folder */
	/* Folder of the weights with which the run began; NULL: the folder that the record
	 * names. */
	const char *weights;
	/* Number of threads; 0: one thread for each processor, or a single thread for a GPU. */
	unsigned workers;
	/* Called after every iteration; may be NULL. */
	void (*progress)(void *context, uint64_t iteration, uint64_t last);
	void *context;
};

struct compare_weights {
	uint64_t compared;  /* number of reported hashes that were compared */
	uint64_t differing; /* number of reported hashes that differ from the expected hash */
	/* Number of stages for which no node reported a hash, added over the compared
	 * iterations. */
	uint64_t unannounced;
	uint64_t restored; /* number of restores of stages from checkpoints */
	uint64_t averaged; /* number of restores of stages as an average of other stages */
	/* The first reported hash that differs. If no hash differs, its iteration is 0. */
	struct store_hash first_differing;
	uint64_t first_expected; /* the hash that was expected instead of first_differing */
};

struct compare_losses {
	uint64_t compared, equal_bits;
	uint64_t differing; /* number of losses whose difference exceeds the limit that applies */
	double largest;     /* largest relative difference of a loss */
	/* Iteration of the first loss whose difference exceeds the limit; 0: none. */
	uint64_t first_differing;
	double first_recorded, first_here;
};

/* Norms of gradients are compared only in iterations to which tolerances apply. */
struct compare_norms {
	uint64_t differing; /* number of norms whose difference exceeds the limit */
	double largest;     /* largest relative difference of a norm */
	/* Iteration of the first norm whose difference exceeds the limit; 0: none. */
	uint64_t first_differing;
};

struct compare_result {
	uint64_t last;     /* the last committed iteration in the store */
	uint64_t replayed; /* number of replayed iterations */
	/* As in struct model_config. If it is not 0, the nodes only pretended to compute, and there
	 * are no losses. */
	uint32_t rehearsal;
	/* Number of times that the run changed its stages in the replayed iterations. */
	uint64_t cuts;
	uint32_t nodes;     /* number of nodes that counted a gradient in the compared iterations */
	/* The replay began with the checkpoint of this iteration; 0: it began with the run's
	 * first weights. */
	uint64_t began_after;
	/* Reason why the weights with which the run began are missing. */
	struct error began_late_why;
	/* Number of iterations that were audited but not recomputed. These are iterations from
	 * compare_options.from to began_after. */
	uint64_t unproved;
	/* The first rule of audit.h that the record breaks; "": no rule is broken. A broken rule
	 * ends the comparison. */
	struct error broken_rule;
	struct devices devices;
	uint64_t tolerance_from; /* the first iteration to which tolerances apply; 0: none */
	/* Largest relative difference of losses that is accepted from tolerance_from on. */
	double tolerance;
	struct compare_weights weights;
	struct compare_losses losses;
	struct compare_norms norms;
};

/* Returns true if the record and the replay agree in all iterations that were recomputed. */
bool compare_equal(const struct compare_result *r);

/* Returns 0 and sets *out if the run could be compared, whether or not it agrees with its replay.
 * Any other result proves nothing. Errors are those of replay_new and devices_choose. -ENODATA:
 * the range has no committed iteration, or no node announced its weights. */
int compare_run(struct store *s, const struct compare_options *o, struct compare_result *out,
		struct error *err);

#endif
