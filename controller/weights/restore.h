/* restore.h - a stage that no process holds any more: all go back to a checkpoint; where there is none, the stage
 * is made of its neighbours.
 */
#ifndef CONTROLLER_WEIGHTS_RESTORE_H
#define CONTROLLER_WEIGHTS_RESTORE_H

#include <stdbool.h>

struct controller;
struct member;
struct msg_unready;

bool restore_checkpoint(struct controller *c); /* begins; false: there is none */
/* Begins; false: nothing can stand in the stage's place. */
bool restore_average(struct controller *c, int stage, struct member *taker);
void restore_look_again(struct controller *c); /* a process has come: what could not be read may be there now */
void restore_failed(struct controller *c, struct member *m, const struct msg_unready *u);
void restore_turn(struct controller *c); /* while one is active */
/* A node is back with the stage's weights: they need not be made. False: the run goes back already. */
bool restore_averted(struct controller *c, int stage);

#endif
