/* recut.h - continues a run with its model cut into other stages.
 *
 *     state of the run                                               next
 *     ordered: the entry "recut" is in the record                    saved, once an iteration is
 *                                                                    committed
 *     saved: a whole checkpoint of the last commit is on this        being cut
 *            machine
 *     being cut: a thread writes the new stages' files               cut, when a controller begins
 *                (recut_files.h)
 *     cut: one transaction has given the record the other stages     restored, as after a loss of
 *          and their files                                           all stages (restore.h)
 *
 * A controller whose thread has cut ends and begins again in the same process, so a change goes the
 * same way as a resume after a crash. A controller that resumes a saved commit cuts before it
 * listens. Each step can be repeated: a kill at any moment loses nothing. The run gets another
 * identity with the cut, and agents drop what they hold of the former stages. */
#ifndef CONTROLLER_JOINING_RECUT_H
#define CONTROLLER_JOINING_RECUT_H

#include <stdbool.h>

#include "base/error.h"

struct backups;
struct outcome;
struct recut_order;
struct run;

/* To be called when a run is resumed, before its record is used: takes the order of the command
 * line, and cuts the model if the last commit is saved. -EINVAL: the run cannot have these
 * stages. */
int recut_begin(struct run *run, struct error *err);
/* Says in the journal that the model was cut, if recut_begin has done so. */
void recut_note(struct run *run);
/* Orders other stages for a run that is under way, or says why it cannot have them. An order for
 * the present stages takes an earlier order back. */
void recut_command(struct run *run, const struct recut_order *o, struct outcome *outcome);
/* Saves and cuts the last commit between two iterations, unless the operator pauses the run.
 * Returns true while the next iteration has to wait: at the end run->ending.restarts is set. */
bool recut_turn(struct backups *backups);

#endif
