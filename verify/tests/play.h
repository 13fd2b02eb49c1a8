/* play.h - for tests: a small cluster is played with a stage object for every node, tasks in a random order and sums
 * by slices, as agents do it, and recorded. A test may tamper with the record; what happened stays as it was.
 *
 * Everything fails the running cmocka test when it goes wrong.
 */
#ifndef VERIFY_TESTS_PLAY_H
#define VERIFY_TESTS_PLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "model/stage.h"
#include "model/text/corpus.h"
#include "store/store.h"
#include "verify/compare.h"

enum {
	STAGES = 3, NODES = 7, SHARDS = 2, PER_SHARD = 3, MICROBATCHES = SHARDS * PER_SHARD,
	BATCH = 2, SEQUENCE = 8, ITERATIONS = 4
};

extern const uint8_t play_stage_of[NODES];

struct cluster {
	char folder[64], text[128];
	struct store *store;
	struct corpus *corpus;
	struct stage *nodes[NODES];
	struct rng rng;
	bool bf16; /* it rounds what goes from node to node */
};

/* One microbatch on its way; step: position in F.. L B.. */
struct journey {
	struct store_route route;
	uint16_t nodes[STAGES];
	uint8_t stages[STAGES];
	uint32_t step;
	int32_t tokens[BATCH * SEQUENCE], targets[BATCH * SEQUENCE];
	float *x, *y; /* activation or gradient under way; the next */
	float *kept[2 * STAGES + 2]; /* what step t took in, once set aside */
	float loss;
};

struct record {
	struct journey journeys[MICROBATCHES];
	struct store_route routes[MICROBATCHES];
	struct store_counted counted[NODES][2 * MICROBATCHES];
	struct store_order orders[NODES];
	uint16_t replicas[STAGES][NODES];
	struct store_reduction reductions[STAGES];
	struct store_commit commit;
};

/* Set-up and tear-down: *state is the cluster, its run has begun. */
int play_set_up(void **state);
int play_set_up_bf16(void **state); /* what goes from node to node is rounded */
int play_tear_down(void **state);

/* One iteration of the cluster. again: every microbatch runs several times, and is counted in any order.
 * tamper: NULL, or changes the record before it is committed, not what happened. */
void play_iteration(struct cluster *c, uint64_t iteration, bool again, void (*tamper)(struct record *r));
/* What verify says of all that was played. */
struct compare_result play_compare(struct cluster *c);
/* ITERATIONS of them, the second of which may be tampered with, and what verify says. */
struct compare_result play_all(struct cluster *c, bool again, void (*tamper)(struct record *r));
/* Another text in the corpus' file. */
void play_make_text(struct cluster *c);

#endif
