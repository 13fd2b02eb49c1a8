/* answers.h - applies the planner's answers to the run. */
#ifndef CONTROLLER_ITERATION_ANSWERS_H
#define CONTROLLER_ITERATION_ANSWERS_H

struct members;
struct planning;
struct planned;

/* Reports in the journal, for the run's first plan only, how much overlap_sync shortens an
 * iteration. With overlap_sync, each stage's sum begins as soon as the stage's gradients are
 * counted. */
void answers_tell_sums(struct planning *planning, const struct planned *a);
/* Takes the planner's answer to a request for a plan of the run (PLANNER_RUN), and owns it. The
 * plan becomes pending and takes effect at the next iteration. The plan is freed instead in two
 * cases: a newer plan has been requested, or the plan was requested only as a possible improvement
 * and is not clearly better. */
void answers_run(struct planning *planning, struct planned *a);
/* Takes the answer to a request for a plan of the plain pipeline. Stores this plan's iteration
 * time, which consoles compare with the run's own iteration time, and frees the answer. */
void answers_baseline(struct members *members, struct planned *a);

#endif
