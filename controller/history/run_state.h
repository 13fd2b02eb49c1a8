/* run_state.h - what a controller that takes the run over must know beside what was committed: saved whenever it
 * changes, and loaded again.
 */
#ifndef CONTROLLER_HISTORY_RUN_STATE_H
#define CONTROLLER_HISTORY_RUN_STATE_H

struct controller;
struct error;

/* The options that such a run goes on with, as text to keep (free) and again from the store. */
char *resume_options(const struct controller *c);
int resume_options_again(struct controller *c, struct error *err);
/* What resume_save has written: stages, places, marks, keys. -ENOENT: nothing was; -EINVAL: it is damaged. */
int resume_load(struct controller *c, struct error *err);
int resume_save(struct controller *c); /* what a successor must know beside the store */

#endif
