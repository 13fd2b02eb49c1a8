/* run_state.h - what a controller that takes the run over must know beside what was committed: saved whenever it
 * changes, and loaded again.
 */
#ifndef CONTROLLER_HISTORY_RUN_STATE_H
#define CONTROLLER_HISTORY_RUN_STATE_H

struct members;
struct run;
struct error;

/* The options that such a run goes on with, as text to keep (free) and again from the store. */
char *resume_options(const struct run *run);
int resume_options_again(struct run *run, struct error *err);
/* What resume_save has written: stages, places, marks, keys. -ENOENT: nothing was; -EINVAL: it is damaged. */
int resume_load(struct members *members, struct error *err);
int resume_save(struct members *members); /* what a successor must know beside the store */

#endif
