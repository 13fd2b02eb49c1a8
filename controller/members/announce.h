/* announce.h - describes the run and its faults to consoles. */
#ifndef CONTROLLER_MEMBERS_ANNOUNCE_H
#define CONTROLLER_MEMBERS_ANNOUNCE_H

struct fault;
struct members;
struct msg;

/* Sends all consoles the run's description and the active faults. */
void consoles_run(struct members *members);
/* Fills MSG_SEE_RUN. */
void announce_fill_run(const struct members *members, struct msg *m);
/* Fills MSG_SEE_FAULT. */
void announce_fill_fault(const struct fault *f, struct msg *m);

#endif
