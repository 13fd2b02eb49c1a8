/* replay.h - recomputes committed iterations from the record of a run.
 *
 * All replicas of a stage have equal weights, so the replay keeps one model. The gradient of a
 * microbatch in a stage depends on the weights, the data, the other stages of its path and the
 * kind of device (devices.h). It does not depend on the node. The sums do depend on the nodes,
 * because floating-point addition is not associative:
 *
 *     a node's sum:   the gradients that the node counted, added to zero in the recorded order
 *     a stage's sum:  the nodes' sums, added element by element in ascending order of nodes; each
 *                     sum and the result are rounded as in their transfer (model/codec/codec.h)
 *
 * Therefore the replay keeps one sum for each node. It adds gradients in an order that respects
 * every node's list and every microbatch's chain (chain.h). Such an order may not exist for a
 * microbatch that ran again: some nodes counted its gradient in one attempt, and other nodes
 * counted it in the next attempt. In this case the replay precomputes the gradients of the
 * microbatch, which are equal in every attempt.
 */
#ifndef VERIFY_REPLAY_H
#define VERIFY_REPLAY_H

#include <stdint.h>

#include "base/error.h"
#include "model/config.h"
#include "store/store.h"

struct replay; /* opaque */
struct later_weights;
struct run_part;

/* Loads the run's corpus and the model with its initial weights. The caller frees *out with
 * replay_free. *out borrows the store and the name of the device.
 *
 * device:   name as in model/device_name.h
 * workers:  number of threads, which compute different stages at the same time; 0: one per
 *           processor, or one for a GPU. Results do not depend on this number.
 *
 * -ESTALE: the corpus differs from the run's corpus; not checked if the run ended before a node had
 * read the corpus. -EPROTONOSUPPORT: the run used another hash function. Other errors are those of
 * model_config, corpus_new and stage_new.
 */
int replay_new(struct replay **out, struct store *s, const char *device, unsigned workers,
	       struct error *err);
void replay_free(struct replay *r); /* NULL is allowed */

/* If the record names the weights with which the run began, loads these weights. They replace the
 * weights that replay_new made from the seed. Errors and arguments are those of
 * first_weights_load. */
int replay_begin(struct replay *r, struct store *s, const char *run, const char *weights,
		 struct error *err);

/* Returns true if the last replay_begin has found out how many steps and microbatches made the
 * first weights. If this function returns false, the replay must not begin with a later
 * checkpoint. */
bool replay_knows_origin(const struct replay *r);

/* Replaces the weights by those of a checkpoint, which must have the present stages. Errors are
 * those of later_weights_load. */
int replay_load(struct replay *r, const struct later_weights *w, const char *run,
		struct error *err);

/* If the run changed its stages after this iteration, divides the model into the new stages; all
 * weights and moments stay. Returns 1 after a change, otherwise 0 or a negative errno. Call this
 * function again until it returns 0, because a run may change its stages several times after an
 * iteration. */
int replay_recut(struct replay *r, uint64_t iteration, struct error *err);

/* Return the present model, and the present part of the run (iterations with the same stages);
 * borrowed until replay_recut or replay_free. */
const struct model_config *replay_config(const struct replay *r);
const struct run_part *replay_part(const struct replay *r);
/* Returns the run's next part; NULL if the present part is the last. */
const struct run_part *replay_next_part(const struct replay *r);

struct replayed {
	/* Mean loss of the microbatches, added in double precision in order of microbatch. */
	float loss;
	double norm; /* norm of the averaged gradient of the whole model */
};

/* Recomputes one iteration. Call this function for successive iterations, each time after
 * audit_commit has accepted the commit. -EPROTO: no sequence of computations satisfies the
 * recorded orders of all nodes. */
int replay_commit(struct replay *r, const struct store_commit *c, struct replayed *out,
		  struct error *err);
/* Replaces a stage by the recorded average of other stages (model/average.h). The run did the
 * same when no node held the stage. -EPROTO: the other stages have other shapes than the
 * stage. */
int replay_average(struct replay *r, const struct store_restore *how, struct error *err);
/* Returns the hash of the stage's weights after the last recomputed iteration. */
uint64_t replay_hash(const struct replay *r, uint32_t stage);

#endif
