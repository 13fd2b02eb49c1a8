/* commit.h - the decision: when every replica has its stage's sum, the commit is written durably, and only then
 * announced.
 */
#ifndef CONTROLLER_ITERATION_COMMIT_H
#define CONTROLLER_ITERATION_COMMIT_H

struct controller;
struct member;
struct msg_committed;
struct msg_reduced;

void commit_when_reduced(struct controller *c);
void iteration_reduced(struct controller *c, struct member *m, const struct msg_reduced *r);
void iteration_committed(struct controller *c, struct member *m, const struct msg_committed *r);

#endif
