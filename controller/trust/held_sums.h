/* held_sums.h - sums that do not come: who waits for whom, and who is left out for it. */
#ifndef CONTROLLER_TRUST_HELD_SUMS_H
#define CONTROLLER_TRUST_HELD_SUMS_H

struct controller;

/* A sum does not come, and somebody for whom all wait sends nothing: it is left out. */
void suspicion_held_up(struct controller *c);

#endif
