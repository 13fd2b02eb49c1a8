/* slots.h - sets how many microbatches a node holds at once, according to its memory. */
#ifndef CONTROLLER_JOINING_SLOTS_H
#define CONTROLLER_JOINING_SLOTS_H

struct member;
struct members;

/* Sets how many microbatches m holds at once, according to its share of the machine's free memory.
 * Called when m has joined. Changes nothing if a cluster file or an emulated network gives the
 * number, or if m did not report its memory. */
void slots_settle(struct members *members, const struct member *m);
/* Calls slots_settle for m, which joins during the run, and for agents of its machine that have not
 * built their stage yet. If the number of such an agent changes, the agent waits for a new
 * MSG_WELCOME and a new assignment. */
void slots_settle_late(struct members *members, struct member *m);
/* Calls slots_settle for all nodes that have joined. */
void slots_settle_all(struct members *members);

#endif
