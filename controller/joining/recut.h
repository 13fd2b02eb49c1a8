/* recut.h - continues a run with its model divided into other stages.
 *
 *     state of the run                                               next
 *     ordered: the entry "recut" is in the record                    saved, once an iteration is
 *                                                                    committed
 *     saved: a whole checkpoint of the last commit is on this        being cut
 *            machine
 *     being cut: a thread writes the new stages' files               cut, when a controller begins
 *                (recut_files.h)
 *     cut: one transaction has entered the new stages and their      restored, as after a loss of
 *          files in the record                                       all stages (restore.h)
 *
 * When the thread has written the files, the controller ends and begins again in the same process.
 * A change therefore takes the same path as a resume after a crash. If a resumed run has an order
 * and a saved commit, the controller cuts the model before it accepts connections. Each step can be
 * repeated, so a kill at any moment loses nothing. The cut gives the run another identity, and
 * agents drop what they hold of the former stages. */
#ifndef CONTROLLER_JOINING_RECUT_H
#define CONTROLLER_JOINING_RECUT_H

#include <stdbool.h>

#include "base/error.h"

struct backups;
struct outcome;
struct recut_order;
struct run;

/* Takes the order from the command line or the record. If the last commit is saved, cuts the model
 * into the ordered stages. Called when a run is resumed, before its record is used. -EINVAL: the
 * run cannot have these stages. */
int recut_begin(struct run *run, struct error *err);
/* Reports in the journal that recut_begin has cut the model, or why it dropped the order. */
void recut_note(struct run *run);
/* Takes an order for other stages while the run is under way, or sets the reason why the run
 * cannot have these stages. An order for the present stages cancels an earlier order. */
void recut_command(struct run *run, const struct recut_order *o, struct outcome *outcome);
/* Saves and cuts the last commit between two iterations, unless the operator pauses the run.
 * Returns true while the next iteration has to wait. Sets run->ending.restarts when the model is
 * cut: this controller then ends, and the next one uses the new stages. */
bool recut_turn(struct backups *backups);

#endif
