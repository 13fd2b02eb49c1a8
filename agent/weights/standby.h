/* standby.h - keeps a second copy of a stage on this node. The copy is a reserve for a stage with
 * one replica, or it has the weights with which this node will move to another stage or join its
 * own stage.
 */
#ifndef AGENT_STANDBY_H
#define AGENT_STANDBY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/network/peers.h"
#include "agent/shared/requests.h"
#include "agent/shared/run.h"
#include "agent/shared/tell.h"
#include "agent/tensors/links.h"
#include "wire/msg.h"

struct job;
struct standby; /* standby_private.h */

enum standby_standing {
	STANDBY_NONE,
	STANDBY_WANTED,   /* a copy was ordered, and the worker has not begun to allocate it */
	STANDBY_MAKING,   /* the worker allocates the copy's memory */
	STANDBY_FETCHING, /* pieces arrive; the pieces that are here step with every commit */
	STANDBY_WHOLE     /* all pieces are in the copy */
};

/* The parts of the agent that a copy works on. All are borrowed. */
struct standby_uses {
	struct tell *tell;
	const struct run *run;
	struct requests *requests;
	struct peers *peers;
	struct links *links;
};

struct standby *standby_new(const struct standby_uses *uses); /* freed by standby_free */
void standby_free(struct standby *k);  /* NULL is allowed */

enum standby_standing standby_standing(const struct standby *k);
/* Returns true if the controller's newest order is to keep a copy. (An order can also be to drop
 * the copy.) */
bool standby_ordered(const struct standby *k);
/* Returns true if a complete copy of that stage is here. */
bool standby_holds(const struct standby *k, uint8_t stage);
uint8_t standby_stage(const struct standby *k);     /* stage of the copy; MSG_NO_STAGE: none */
/* Returns P, the number of parameters of the copy's stage. */
size_t standby_parameters(const struct standby *k);
/* Returns the iteration of the copy; 0: it has no pieces. */
uint64_t standby_iteration(const struct standby *k);
/* Returns the hash of a complete copy; 0: unknown. */
uint64_t standby_hash(const struct standby *k);

/* Carries out the orders KEEP, REDUCE and COMMIT for the copy. Call it only while standby_settled
 * returns true. */
void standby_control(struct standby *k, const struct msg *m, int64_t now_us);
/* Returns true if the copy can take the next order, because no job of the copy runs and no job is
 * due. */
bool standby_settled(const struct standby *k);
/* Accepts the next KEEP whatever its number, because a restarted controller counts from 1. */
void standby_accept_any_order(struct standby *k);
void standby_abandon(struct standby *k); /* makes the copy stop waiting for the present sum */
void standby_piece_arrived(struct standby *k, const struct msg *m, int64_t now_us);
/* Returns true if the tensor is a sum of the copy's stage and the copy needs this sum now or
 * later. */
bool standby_wants(const struct standby *k, const struct msg_tensor *t);
/* Takes a sum. Returns false if the copy does not wait for this sum. Otherwise sets *rc to 0, or
 * to -EINVAL if the sum is invalid. */
bool standby_sum_arrived(struct standby *k, const struct msg *m, int *rc);
/* Requests pieces, and drops a copy that can no longer be completed in time. */
void standby_turn(struct standby *k, int64_t now_us);
int64_t standby_deadline_us(const struct standby *k);
bool standby_next_job(struct standby *k, struct job *job);
void standby_job_done(struct standby *k, const struct job *job, int64_t now_us);
/* Forgets the copy. The worker must be idle. */
void standby_forget(struct standby *k);

#endif
