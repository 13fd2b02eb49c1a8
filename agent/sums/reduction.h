/* reduction.h - this node's part in the sum of its stage's gradient over all replicas.
 *
 * REDUCE begins a reduction. This node sends parts of its gradient to the other replicas, sums its
 * own slice, and receives the sums of the other slices (slices.h). The gradient stays unchanged
 * until the commit, so a reduction can restart with another attempt. The states, in their order;
 * a new attempt restarts them, and reduction_forget enters NONE:
 *
 *     state      waits for                                      then
 *     COUNTING   all gradients of this node to be counted       GRADIENT
 *     GRADIENT   the worker to be free                          COPYING   job: copy the gradient
 *     COPYING    that job                                       PARTS     sends the parts
 *     PARTS      all replicas' parts of its slice               SUMMING   job: sum the slice
 *     SUMMING    that job                                       SUMS      sends the sum
 *     SUMS       the sums of all other slices                   NORMING   job: sum of squares
 *     NORMING    that job                                       DONE      reports REDUCED
 */
#ifndef AGENT_REDUCTION_H
#define AGENT_REDUCTION_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/network/report.h"
#include "agent/shared/held.h"
#include "agent/shared/requests.h"
#include "agent/shared/run.h"
#include "agent/shared/tell.h"
#include "agent/sums/slices.h"
#include "agent/tensors/delay_queue.h"
#include "agent/tensors/links.h"
#include "wire/msg.h"

struct job;
struct reduction; /* opaque; the agent has one */

enum reducing {
	REDUCE_NONE,
	REDUCE_COUNTING,
	REDUCE_GRADIENT,
	REDUCE_COPYING,
	REDUCE_PARTS,
	REDUCE_SUMMING,
	REDUCE_SUMS,
	REDUCE_NORMING,
	REDUCE_DONE
};

/* The parts of the agent that a reduction works on. All are borrowed. */
struct reduction_uses {
	struct tell *tell;
	const struct run *run;
	const struct held *held;
	struct requests *requests;
	struct report *report;
	struct links *links;
	struct delay_queue *delay_queue;
};

struct reduction *reduction_new(const struct reduction_uses *uses); /* freed by reduction_free */
void reduction_free(struct reduction *r);  /* NULL is allowed */

/* Handles an order to reduce (MSG_REDUCE). Reports an invalid order. reduction_asks_for_count
 * explains `counts`. */
void reduction_begin(struct reduction *x, const struct msg_reduce *m, uint32_t counts,
		     int64_t now_us);
void reduction_forget(struct reduction *x);
/* Stores a piece of a part or a sum. Returns 0 if the piece was stored, and also if it arrived
 * too late and was ignored. -EAGAIN: the piece belongs to a reduction that has not begun here.
 * slices_put_part explains -EINVAL and -EBADMSG. */
int reduction_put(struct reduction *x, const struct msg *m);
/* Returns true if the caller must check that this node has added all its gradients, because the
 * reduction waits for them. If all are added, the caller calls reduction_counted. counts: number of
 * gradients that this node's queue has counted. */
bool reduction_asks_for_count(struct reduction *x, uint64_t iteration, uint32_t counts);
void reduction_counted(struct reduction *x, int64_t now_us);
bool reduction_next_job(struct reduction *x, struct job *job);
void reduction_job_done(struct reduction *x, struct job *job, int64_t now_us);
/* Returns true if the reduction of this iteration and attempt is DONE. */
bool reduction_ready(const struct reduction *x, uint64_t iteration, uint32_t attempt);
/* Returns the slices of the reduction; NULL: no reduction. */
struct slices *reduction_slices(const struct reduction *x);
/* Returns a node whose part or sum has not arrived completely; -1: none. */
int reduction_awaits(const struct reduction *x);

#endif
