/* resume.h - resumes a run whose controller ended, or died at any moment. */
#ifndef CONTROLLER_JOINING_RESUME_H
#define CONTROLLER_JOINING_RESUME_H

#include <stdint.h>

struct error;
struct member;
struct members;
struct backups;

/* Fills the run's state from its store. 0 also if the run had not started. */
int resume_begin(struct backups *backups, struct error *err);
/* The first attempt number, and fault number, of a run's controller number `generation` (0: the
 * first). It is above all numbers of earlier controllers. -ERANGE: none is left. Public for
 * tests. */
int resume_numbers(uint64_t generation, uint32_t *first);
/* Takes over the weights and the standby copy that a joining agent reports. In the phase gathering,
 * an agent that holds the last commit of its stage continues with it. An agent that joins later
 * may hold the only copy of a stage (weights/restore.c). */
void resume_member(struct members *members, struct member *m);

#endif
