/* startup.h - before the first iteration, and after a takeover: who is here, and in which stage. */
#ifndef CONTROLLER_MEMBERS_STARTUP_H
#define CONTROLLER_MEMBERS_STARTUP_H

struct iteration;
struct members;
struct msg_see_status;

void startup_turn(struct iteration *it);
/* Fills in steps, step, part, parts, left_s and, in words, doing. */
void startup_status(const struct members *members, struct msg_see_status *s);

#endif
