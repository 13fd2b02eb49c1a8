/* saved_state.h - saves and loads the state, other than commits, that a restarted controller
 * needs. */
#ifndef CONTROLLER_MEMBERS_SAVED_STATE_H
#define CONTROLLER_MEMBERS_SAVED_STATE_H

struct error;
struct members;
struct tensor_formats;

/* Loads the state that resume_save wrote: stages, home stages, marks, keys. Sets *formats to the
 * formats of the run's cluster, which the caller has to apply. -ENOENT: nothing was saved; -EINVAL:
 * the saved state is damaged. */
int resume_load(struct members *members, struct tensor_formats *formats, struct error *err);
/* Saves the state for a restarted controller. A failure is also logged. */
int resume_save(struct members *members);

#endif
