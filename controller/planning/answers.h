/* answers.h - what the run does with the planner's answers. */
#ifndef CONTROLLER_PLANNING_ANSWERS_H
#define CONTROLLER_PLANNING_ANSWERS_H

struct controller;
struct planned;

/* Takes a plan for the run, and frees it unless it takes effect at the next iteration. */
void answers_run(struct controller *c, struct planned *a);
/* Takes the plain pipeline's plan, whose time the console shows beside the run's, and frees it. */
void answers_baseline(struct controller *c, struct planned *a);

#endif
