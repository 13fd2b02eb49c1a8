/* straight.h - the two baselines that do not look at collisions: DT-FM's straight pipelines
 * through all stages, and random legal skips. Internal to schedule/.
 */
#ifndef SCHEDULE_STRAIGHT_H
#define SCHEDULE_STRAIGHT_H

#include "base/rng.h"
#include "schedule/problem/problem.h"

/* Pipelines by bottleneck matching from stage to stage, as many as the smallest stage has nodes,
 * starting at as many of stage 0's; each data node sends all its microbatches down one of them,
 * each of which serves its share of data nodes. p->length must be all stages. -ENOMEM, or
 * PLAN_INFEASIBLE: no link. */
int straight_paths(struct solution *s, const struct problem *p, struct error *err);

/* Legal paths drawn at random: exposure exact, the visits of a stage spread evenly over its
 * nodes. -ENOMEM, or PLAN_INFEASIBLE: not found in many tries. */
int random_paths(struct solution *s, const struct problem *p, struct rng *rng,
		 struct error *err);

#endif
