/* drill.h - what the operator did, kept as a drill: RUN-DIR/drill.json replays this run's acts from a script
 * (skippipe drill FILE), against limits taken from what was seen, with some room.
 */
#ifndef CONTROLLER_OPERATOR_DRILL_H
#define CONTROLLER_OPERATOR_DRILL_H

struct controller;
struct msg_command;

void drill_add(struct controller *c, const struct msg_command *m); /* an act that was done */
void drill_save(struct controller *c); /* RUN-DIR/drill.json, if there was any act */
void drill_fini(struct controller *c);

#endif
