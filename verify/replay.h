/* replay.h - computes a committed iteration again from what the store holds.
 *
 * All replicas of a stage have equal weights, so one model stands for all nodes. What a
 * microbatch adds to a stage depends on the weights, its data, the stages before and after, and
 * on the kind of device that computed each of them (kinds.h), not on which node did; but floats
 * are added in an order, and that does depend on who:
 *
 *     node's sum:   its contributions, in the order in which it counted them, from zero
 *     stage's sum:  the nodes' sums, by ascending node, element by element
 *
 * So every node has a sum of its own here. Forwards keep every hop's input; what the nodes
 * counted is done in an order that respects every node's list and every
 * microbatch's chain where there is such an order. There may be none
 * for a microbatch that ran again, counted by some nodes in one attempt and by others in the next:
 * its gradients, which are the same in every attempt, are then worked out ahead. Only a hop's
 * input is kept, and its forward is run again before its backward: memory stays small.
 */
#ifndef VERIFY_REPLAY_H
#define VERIFY_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/config.h"
#include "store/store.h"
#include "verify/kinds.h"

struct replay; /* opaque */

/* The run's model with the weights it started from, and its corpus, which must be the same bytes
 * still (-ESTALE; a run that ended before its nodes had read it does not say). device as in
 * kinds.h; workers: threads that work on different stages at the same time (the bits do not
 * depend on how many; 0: as many as there are processors, one where a GPU computes). Gives *out
 * to the caller (replay_free). The store is borrowed until then. */
int replay_new(struct replay **out, struct store *s, const char *device, unsigned workers,
	       struct error *err);
void replay_free(struct replay *r); /* NULL is allowed */

/* Borrowed until replay_free. */
const struct model_config *replay_config(const struct replay *r);
const struct kinds *replay_kinds(const struct replay *r);

struct replayed {
	float loss;  /* the mean over the microbatches, summed in their order in double */
	double norm; /* of the averaged gradient */
	/* Nodes of unlike kinds stood in for one another: whose output those after them used is not
	 * recorded. */
	bool uncertain;
};

/* One iteration: c must have passed audit_commit and follow the last one. -EPROTO: the recorded
 * orders contradict one another; -ENOMEM. */
int replay_commit(struct replay *r, const struct store_commit *c, struct replayed *out,
		  struct error *err);
/* A stage that nobody held any more was made of its neighbours (model/average.h). -EPROTO: of
 * stages that cannot stand in its place. */
int replay_average(struct replay *r, const struct store_restore *how, struct error *err);
uint64_t replay_hash(const struct replay *r, uint32_t stage); /* of the weights now */

#endif
