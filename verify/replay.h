/* replay.h - recomputes committed iterations from the record of a run.
 *
 * All replicas of a stage have equal weights, so one model stands for all nodes. A microbatch's
 * contribution to a stage depends on the weights, the data, the other stages of its path and the
 * kind of device that computed them (devices.h), but not on the node. The additions do depend on
 * the nodes, because floating-point addition is not associative:
 *
 *     a node's sum:   its contributions, added from zero in the order in which it counted them
 *     a stage's sum:  the nodes' sums, added element by element in ascending order of nodes; each
 *                     of them, and the result, rounded as it travelled (model/codec/codec.h)
 *
 * Therefore every node has a sum of its own here. The replay counts contributions in an order that
 * respects every node's list and every microbatch's chain (chain.h). Such an order may not exist
 * for a microbatch that ran again, because some nodes counted it in one attempt and other nodes in
 * the next. The gradients are the same in every attempt, so the replay precomputes them in this
 * case.
 */
#ifndef VERIFY_REPLAY_H
#define VERIFY_REPLAY_H

#include <stdint.h>

#include "base/error.h"
#include "model/config.h"
#include "store/store.h"

struct replay; /* opaque */
struct run_part;

/* Loads the run's corpus and the model with its initial weights. `device` is a name after
 * model/device_name.h. `workers` is the number of threads, which work on different stages at the
 * same time; 0 means one per processor, or a single one on a GPU. The bits do not depend on it.
 * Gives *out to the caller (replay_free) and borrows the store and the name until then. -ESTALE:
 * the corpus has other bytes than in the run (not checked if the run ended before a node had read
 * it).
 * -EPROTONOSUPPORT: the run's hashes are of another kind. Other errors are those of model_config,
 * corpus_new and stage_new. */
int replay_new(struct replay **out, struct store *s, const char *device, unsigned workers,
	       struct error *err);
void replay_free(struct replay *r); /* NULL is allowed */

/* Replaces the seed's weights by those with which the run began, if the record names such weights.
 * Errors and arguments are those of first_weights_load. */
int replay_begin(struct replay *r, struct store *s, const char *run, const char *weights,
		 struct error *err);

/* Cuts the model into the stages that the run had after this iteration, if it changed them then.
 * The weights and moments stay. Returns 1 if the stages have changed. A run may change them several
 * times after one iteration. */
int replay_recut(struct replay *r, uint64_t iteration, struct error *err);

/* The model and the run's part as they are now; borrowed until replay_recut or replay_free. */
const struct model_config *replay_config(const struct replay *r);
const struct run_part *replay_part(const struct replay *r);
/* Returns the next part; NULL: there is none. */
const struct run_part *replay_next_part(const struct replay *r);

struct replayed {
	float loss;  /* mean loss over the microbatches, added in double precision in their order */
	double norm; /* global norm of the averaged gradient */
};

/* Recomputes one iteration. The commit must have passed audit_commit and must follow the previous
 * one. -EPROTO: the recorded orders contradict one another. */
int replay_commit(struct replay *r, const struct store_commit *c, struct replayed *out,
		  struct error *err);
/* Makes a stage from its neighbours, as the run did when no node held it (model/average.h).
 * -EPROTO: the recorded neighbours have other shapes. */
int replay_average(struct replay *r, const struct store_restore *how, struct error *err);
/* Returns the hash of the stage's present weights. */
uint64_t replay_hash(const struct replay *r, uint32_t stage);

#endif
