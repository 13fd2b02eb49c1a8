/* resume.h - taking over a run: after the controller's end, or its death at any moment. */
#ifndef CONTROLLER_HISTORY_RESUME_H
#define CONTROLLER_HISTORY_RESUME_H

#include <stdint.h>

struct controller;
struct members;
struct error;
struct member;

/* Takes over a run whose controller ended or died: fills the run's state from its store. */
int resume_begin(struct controller *c, struct error *err);
/* The first number of attempts, and of faults, of the n-th controller that takes over: above all that the ones before
 * it may have used. -ERANGE: none is left. Public for tests. */
int resume_numbers(uint64_t generation, uint32_t *first);
/* What an agent that has come holds of the run, as it says. While gathering who holds its stage goes on with it; one
 * that comes later may have the last copy of a stage (recover.c). */
void resume_member(struct members *members, struct member *m);

#endif
