/* saved_state.h - saves and loads the state, other than commits, that a restarted controller
 * needs. */
#ifndef CONTROLLER_MEMBERS_SAVED_STATE_H
#define CONTROLLER_MEMBERS_SAVED_STATE_H

#include <stdbool.h>

struct error;
struct members;
struct tensor_formats;

/* Loads the state that resume_save wrote: stages, home stages, marks, spares, keys, a pause.
 * *formats gets the formats of the run's cluster, which the caller applies. -ENOENT: nothing was
 * saved; -EINVAL: the saved state is damaged. */
int resume_load(struct members *members, struct tensor_formats *formats, struct error *err);
/* Saves the state for a restarted controller. A failure is also logged. */
int resume_save(struct members *members);
/* Returns true while a new run has not assigned its stages. Until then nothing may be saved,
 * because a later controller would assume that the run has begun. */
bool resume_is_early(const struct members *members);
/* Saves a change by the operator. While the stages are not assigned (resume_is_early), saves
 * nothing: first_assignments (joining/startup.c) will save the change together with the
 * stages. */
void resume_save_change(struct members *members);

#endif
