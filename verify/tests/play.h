/* play.h - plays and records a small cluster for the tests of verify.
 *
 * Every node has its own stage. Tasks run in a random order, and the nodes' sums are added by
 * slices, as agents do it. A test may change the record of an iteration before the record is
 * written (`tamper`).
 *
 * Every function fails the running cmocka test on an error.
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
	/* Format of activations between nodes, and format of sums. */
	enum tensor_format wire, sum_wire;
	/* Formats that the record names; a test may make them wrong. */
	struct tensor_formats recorded;
};

/* The progress of a microbatch in an iteration. */
struct journey {
	struct route route;
	uint32_t step; /* number of tasks done: forward passes, loss, backward passes */
	int32_t tokens[BATCH * SEQUENCE], targets[BATCH * SEQUENCE];
	float *x, *y; /* input and output of the current task */
	/* inputs[t] is a copy of the input of task t, for reruns. */
	float *inputs[2 * STAGES + 2];
	float loss;
};

struct played {
	struct journey journeys[MICROBATCHES];
	struct route routes[MICROBATCHES];
	struct store_counted counted[NODES][2 * MICROBATCHES];
	struct store_order orders[NODES];
	uint16_t replicas[STAGES][NODES];
	struct store_reduction reductions[STAGES];
	struct store_commit commit;
};

/* Set-up and tear-down of cmocka. *state becomes a cluster whose run has begun. */
int play_set_up(void **state);
int play_set_up_bf16(void **state); /* set-up with activations in bf16 */
int play_set_up_q6(void **state); /* set-up with activations and sums in q6 */
int play_tear_down(void **state);

/* Plays one iteration. If `again` is true, every microbatch runs twice and its gradients are
 * counted in a random order. `tamper` changes the record before it is written; NULL: no change. */
void play_iteration(struct cluster *c, uint64_t iteration, bool again,
		    void (*tamper)(struct played *r));
/* Compares the record of all played iterations with their replay. */
struct compare_result play_compare(struct cluster *c);
/* Plays ITERATIONS iterations and compares them. `tamper` changes the record of the second
 * iteration. */
struct compare_result play_all(struct cluster *c, bool again, void (*tamper)(struct played *r));
/* Returns the first node of a stage. */
uint32_t play_node_of(uint8_t stage);
/* Gives the weights and the two moments of a stage; borrowed. */
void play_arrays_of(struct stage *s, float *to[3]);
/* Replaces a stage after an iteration by 3/4 of the stage `source`, which has the same size. The
 * record names the factor `recorded`. */
void play_average(struct cluster *c, uint64_t iteration, uint8_t stage, uint8_t source,
		  float recorded);
/* Writes a random text into the corpus file. */
void play_make_text(struct cluster *c);

#endif
