/* startup.h - prepares the first iteration of a new run, or the next iteration of a run whose
 * controller was restarted. */
#ifndef CONTROLLER_JOINING_STARTUP_H
#define CONTROLLER_JOINING_STARTUP_H

struct iteration;
struct members;
struct msg_see_status;

void startup_turn(struct iteration *it);
/* Fills in the fields steps, step, part, parts and left_s, and writes a description to `doing`. */
void startup_status(const struct members *members, struct msg_see_status *s);

#endif
