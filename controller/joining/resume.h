/* resume.h - resumes a run whose controller ended, or died at any moment. */
#ifndef CONTROLLER_JOINING_RESUME_H
#define CONTROLLER_JOINING_RESUME_H

#include <stdint.h>

struct error;
struct member;
struct members;
struct backups;

/* Fills the run's state from its store. Also returns 0 if the recorded run had not started. */
int resume_begin(struct backups *backups, struct error *err);
/* Sets *first to the first attempt number of a controller. The first fault number of a controller
 * is the same number. generation: number of the controller in its run, from 0. *first is above all
 * numbers of earlier controllers. -ERANGE: no numbers are left. Public for tests. */
int resume_numbers(uint64_t generation, uint32_t *first);
/* Takes over the weights and the standby copy that a joining agent reports. While the run gathers
 * agents, an agent that holds the last commit of its stage continues with these weights. An agent
 * that joins later may hold the only copy of a stage (weights/restore.c). */
void resume_member(struct members *members, struct member *m);

#endif
