/* answers.h - what the run does with the planner's answers. */
#ifndef CONTROLLER_PLANNING_ANSWERS_H
#define CONTROLLER_PLANNING_ANSWERS_H

struct members;
struct planning;
struct planned;

/* Takes a plan for the run, and frees it unless it takes effect at the next iteration. */
void answers_run(struct planning *planning, struct planned *a);
/* Takes the plain pipeline's plan, whose time the console shows beside the run's, and frees it. */
void answers_baseline(struct members *members, struct planned *a);

#endif
