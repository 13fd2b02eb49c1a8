/* saved_state.h - saves and loads the state that a successor needs beside the commits. */
#ifndef CONTROLLER_MEMBERS_SAVED_STATE_H
#define CONTROLLER_MEMBERS_SAVED_STATE_H

struct members;
struct run;
struct error;

/* The options that a resumed run keeps: as text for the store (free), and back from the store. */
char *resume_options(const struct run *run);
int resume_options_again(struct run *run, struct error *err);
/* Loads what resume_save wrote: stages, homes, marks, keys. -ENOENT: nothing was saved; -EINVAL:
 * the saved state is damaged. */
int resume_load(struct members *members, struct error *err);
/* Saves the state for a successor. A failure is also logged. */
int resume_save(struct members *members);

#endif
