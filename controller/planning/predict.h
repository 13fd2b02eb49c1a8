/* predict.h - predicts how long an iteration of a plan takes on measured links. */
#ifndef CONTROLLER_PLANNING_PREDICT_H
#define CONTROLLER_PLANNING_PREDICT_H

struct members;
struct planned;

/* Replaces the plan's predictions by predictions that include the controller's messages and the
 * sums. Does nothing if links are not measured. */
void predict(struct members *members, struct planned *a);

#endif
