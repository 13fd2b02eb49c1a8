/* reduction.h - the sum of the stage's gradient over its replicas, as this node takes part in it.
 *
 * REDUCE begins it, at once or when all that this node was given is counted; the gradient is copied, parts leave and come, my slice is summed and leaves,
 * the others' come, the norm is taken and told (slices.h has the arithmetic and what is in). The
 * gradient stays until the commit, so it can begin again with another attempt.
 */
#ifndef AGENT_REDUCTION_H
#define AGENT_REDUCTION_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/sums/slices.h"
#include "wire/msg.h"

struct agent;
struct job;
struct reduction; /* opaque; the agent has one */

enum reducing {
	REDUCE_NONE,
	REDUCE_COUNTING, /* until this node has counted all that it was given */
	REDUCE_GRADIENT, /* a copy of the gradient is wanted */
	REDUCE_COPYING,
	REDUCE_PARTS,    /* until all parts of my slice are in */
	REDUCE_SUMMING,
	REDUCE_SUMS,     /* until all other slices are in */
	REDUCE_NORMING,
	REDUCE_DONE      /* told; may be committed */
};

struct reduction *reduction_new(void); /* reduction_free */
void reduction_free(struct reduction *r);  /* NULL is allowed */

void reduction_begin(struct agent *a, const struct msg_reduce *m, int64_t now_us);
void reduction_forget(struct agent *a);
/* A piece of a part or a sum: 0 taken or worthless; -EAGAIN too early; -EINVAL it fits nothing. */
int reduction_put(struct agent *a, const struct msg *m);
/* Requests of the loop: returns true if the reduction needs to know that all gradients of this node
 * are counted. The loop then asks the iteration, and calls reduction_counted if they are. */
bool reduction_asks_for_count(struct agent *a);
void reduction_counted(struct agent *a);
bool reduction_next_job(struct agent *a, struct job *job);
void reduction_job_done(struct agent *a, struct job *job, int64_t now_us);
/* Whether that one is complete here and told. */
bool reduction_ready(const struct agent *a, uint64_t iteration, uint32_t attempt);
struct slices *reduction_slices(const struct agent *a); /* NULL: none is under way */
int reduction_awaits(const struct agent *a);            /* a node whose part or sum is not in; -1 none */

#endif
