/* answers.h - what is done with the planner's answers. */
#ifndef CONTROLLER_PLANNING_ANSWERS_H
#define CONTROLLER_PLANNING_ANSWERS_H

struct controller;

void replan_turn(struct controller *c); /* takes the planner's answers */

#endif
