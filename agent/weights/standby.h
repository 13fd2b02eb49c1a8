/* standby.h - the copy of a stage that this node keeps beside its own: for a stage with one replica,
 * for a move to another stage, or to join its own.
 */
#ifndef AGENT_STANDBY_H
#define AGENT_STANDBY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/msg.h"

struct agent;
struct job;
struct standby; /* standby_private.h; the agent has one */

enum standby_standing {
	STANDBY_NONE,
	STANDBY_WANTED,   /* ordered */
	STANDBY_MAKING,   /* the worker makes room */
	STANDBY_FETCHING, /* pieces come; those that are there follow the commits */
	STANDBY_WHOLE
};

struct standby *standby_new(void); /* standby_free */
void standby_free(struct standby *k);  /* NULL is allowed */

enum standby_standing standby_standing(const struct agent *a);
bool standby_ordered(const struct agent *a); /* a copy of some stage */
/* Whether a whole copy of that stage is here, */
bool standby_holds(const struct agent *a, uint8_t stage);
uint8_t standby_stage(const struct agent *a);      /* of which stage, */
size_t standby_parameters(const struct agent *a);  /* of so many floats, */
uint64_t standby_iteration(const struct agent *a); /* as of that commit; 0: nothing of it is here */
uint64_t standby_hash(const struct agent *a);      /* with this hash; 0: not known */

/* KEEP, and REDUCE and COMMIT that concern the copy; when settled. */
void standby_control(struct agent *a, const struct msg *m, int64_t now_us);
bool standby_settled(const struct agent *a); /* nothing of the copy is with the worker, or about to be */
void standby_count_anew(struct agent *a);    /* a new controller's first order is newer than any */
void standby_abandon(struct agent *a);       /* does not wait for a sum any more */
void standby_piece_arrived(struct agent *a, const struct msg *m, int64_t now_us);
bool standby_wants(const struct agent *a, const struct msg_tensor *t); /* a sum, now or later */
/* A sum for the copy: whether it is one. Then *rc: 0 taken, -EINVAL. */
bool standby_sum_arrived(struct agent *a, const struct msg *m, int *rc);
void standby_turn(struct agent *a, int64_t now_us); /* asks for pieces; gives up what gets no further */
int64_t standby_deadline_us(const struct agent *a);
bool standby_next_job(struct agent *a, struct job *job);
void standby_job_done(struct agent *a, const struct job *job, int64_t now_us);
void standby_forget(struct agent *a); /* the worker must not be at it */

#endif
