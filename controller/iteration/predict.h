/* predict.h - what a plan will really take on measured links: the search's own figure, and around
 * it what the controller's messages and the sums add.
 */
#ifndef CONTROLLER_ITERATION_PREDICT_H
#define CONTROLLER_ITERATION_PREDICT_H

struct members;
struct planned;

/* On measured links: what the controller's messages and the sums add is part of what the plan
 * predicts. */
void predict(struct members *members, struct planned *a);

#endif
