/* startup.h - before the first iteration, and after a takeover: who is here, and in which stage. */
#ifndef CONTROLLER_MEMBERS_STARTUP_H
#define CONTROLLER_MEMBERS_STARTUP_H

struct controller;
struct msg_see_status;

void startup_turn(struct controller *c);
/* Fills in steps, step, part, parts, left_s and, in words, doing. */
void startup_status(const struct controller *c, struct msg_see_status *s);

#endif
