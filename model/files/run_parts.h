/* run_parts.h - the parts of a run whose model was cut into other stages during the run.
 *
 * Within a part the stages and the data shards stay the same. Once a run has more than one part,
 * its record has the list of parts under the key "parts". Verify and replays need all parts; the
 * controller needs only the newest.
 */
#ifndef MODEL_RUN_PARTS_H
#define MODEL_RUN_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define RUN_PARTS_KEY "parts"

struct run_part {
	uint64_t after;    /* last iteration committed before this part; 0: the first part */
	uint64_t skipped;  /* iterations whose data was skipped before this part */
	uint64_t position; /* number of microbatches that were read before the part */
	uint64_t writer;   /* epoch of the part's first controller (store_writer_epoch) */
	uint32_t n_shards, per_shard; /* data shards, and microbatches of each in an iteration */
	uint32_t n_restores; /* number of stages that the run had restored before the part */
	char *model;         /* the model with its cut, as JSON (skippipe.model/1); owned */
	/* The run's cluster and the controller's saved state at the end of the part, as JSON;
	 * owned. NULL for the newest part, whose texts are elsewhere in the record. */
	char *cluster, *state;
};

struct run_parts {
	struct run_part *list; /* the n parts, in their order in the run */
	size_t n;
};

/* Returns the position in each data shard, in microbatches. committed: number of iterations that
 * were committed since the run began. skipped: number of iterations since the run began whose data
 * was skipped. */
uint64_t run_part_position(const struct run_part *p, uint64_t committed, uint64_t skipped);

/* Adds a copy of the part. */
void run_parts_add(struct run_parts *parts, const struct run_part *p);
/* Returns the list as JSON, which the caller frees; NULL if memory runs out. */
char *run_parts_print(const struct run_parts *parts);
/* Parses what run_parts_print has written. The caller frees the list with run_parts_free. -EINVAL:
 * the text is damaged. */
int run_parts_parse(struct run_parts *out, const char *text, struct error *err);
void run_parts_free(struct run_parts *parts); /* zeroes the list; a zeroed list is allowed */

#endif
