/* drill.h - what the operator did, kept as a drill: RUN-DIR/drill.json replays this run's acts from a script
 * (skippipe drill FILE), against limits taken from what was seen, with some room.
 */
#ifndef CONTROLLER_OPERATOR_DRILL_H
#define CONTROLLER_OPERATOR_DRILL_H

struct members;
struct run;
struct msg_command;

void drill_add(struct members *members, const struct msg_command *m); /* an act that was done */
void drill_save(struct members *members); /* RUN-DIR/drill.json, if there was any act */
void drill_fini(struct run *run);

#endif
