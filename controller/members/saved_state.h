/* saved_state.h - saves and loads the state that a successor needs beside the commits. */
#ifndef CONTROLLER_MEMBERS_SAVED_STATE_H
#define CONTROLLER_MEMBERS_SAVED_STATE_H

struct error;
struct members;
struct tensor_formats;

/* Loads what resume_save wrote: stages, homes, marks, keys. *formats gets the formats of the run's
 * cluster, which the caller applies. -ENOENT: nothing was saved; -EINVAL: the saved state is
 * damaged. */
int resume_load(struct members *members, struct tensor_formats *formats, struct error *err);
/* Saves the state for a successor. A failure is also logged. */
int resume_save(struct members *members);

#endif
