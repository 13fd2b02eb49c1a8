/* recut.h - continues a run with its model divided into other stages.
 *
 * A change has three states:
 *
 * - ordered: the entry "recut" is in the record. The controller saves a checkpoint once an
 *   iteration is committed.
 *
 * - saved: a complete checkpoint of the last commit is on this machine. The next controller that
 *   begins cuts the model.
 *
 * - cut: one transaction has given the record the other stages and their files. The stages are
 *   restored, as after a loss of all stages (restore.h).
 *
 * After the save, the controller ends and begins again in the same process, so a change uses the
 * same code as a resume after a crash. Each step can be repeated: a kill at any moment loses
 * nothing. With the cut the run gets another identity, so agents drop the weights of the former
 * stages. */
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
/* Orders other stages for a run that is under way, or sets the reason why it cannot have them. An
 * order for the present stages cancels an earlier order. */
void recut_command(struct run *run, const struct recut_order *o, struct outcome *outcome);
/* Saves the last commit between two iterations, unless the operator pauses the run. Returns true
 * while the next iteration has to wait. When the commit is saved, run->ending.restarts is set. */
bool recut_turn(struct backups *backups);

#endif
