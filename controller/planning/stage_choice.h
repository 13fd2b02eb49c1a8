/* stage_choice.h - chooses the stages of a run on a thread of its own, and describes the reasons as
 * text.
 *
 * The choice is made as by `skippipe plan --fleet` (schedule/fleet/choose.h), but for the run's
 * present members. A choice takes seconds, and the controller's loop must not wait for it. */
#ifndef CONTROLLER_PLANNING_STAGE_CHOICE_H
#define CONTROLLER_PLANNING_STAGE_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "controller/planning/stage_question.h"
#include "schedule/fleet/choose.h"

struct stage_choice; /* opaque */

enum { STAGE_CHOICE_TEXT = 256 };

/* Starts the choice, which takes about budget_s seconds on at most `threads` processors. If q
 * compares stages, nothing is chosen, and stage_choice_result is -ENOENT. Takes ownership of q.
 * -EAGAIN: no thread could be started, and q was freed. */
int stage_choice_start(struct stage_question *q, double budget_s, int threads,
		       struct stage_choice **out, struct error *err);
/* Cancels a choice that is being made, and frees it. c may be NULL. */
void stage_choice_free(struct stage_choice *c);
bool stage_choice_is_done(const struct stage_choice *c);

/* The functions below may only be called once the choice is done. */

/* Returns 0 if the choice was made; otherwise the negative error of choose()
 * (schedule/fleet/choose.h), with its message in *err. */
int stage_choice_result(const struct stage_choice *c, struct error *err);
const struct stage_question *stage_choice_question(const struct stage_choice *c);
/* Returns the candidate with this rank, counted from 0; NULL: there are fewer candidates. A
 * candidate with a single stage uses all nodes, because a run with one stage has a data shard for
 * each node. */
const struct candidate *stage_choice_candidate(const struct stage_choice *c, int rank);
/* Returns the seconds of an iteration with the present stages, simulated in the same way as for the
 * candidates. INFINITY: there are no present stages, or no plan for them. */
double stage_choice_present_s(const struct stage_choice *c);
/* As stage_choice_present_s, but for the stages given to stage_question_compare. */
double stage_choice_wanted_s(const struct stage_choice *c);
double stage_choice_elapsed_s(const struct stage_choice *c);

/* Writes a text such as "3 stages of 4,4,4 layers, 0.512 s an iteration: S0 n00 n01, S1 n02,
 * ...". */
void stage_choice_describe(const struct stage_choice *c, int rank, char out[STAGE_CHOICE_TEXT]);
/* If the best candidate's microbatches do not have the configured size, writes their number, their
 * size and the reason, and returns true. */
bool stage_choice_resized(const struct stage_choice *c, char out[STAGE_CHOICE_TEXT]);
/* Writes why the best candidate leaves a node out. i: index among the left-out nodes, from 0.
 * Returns the node's number in the run; -1: i is too large. */
int stage_choice_left_out(const struct stage_choice *c, int i, char out[STAGE_CHOICE_TEXT]);

#endif
