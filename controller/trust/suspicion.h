/* suspicion.h - agents that contradict the routes, or one another: who is left out. */
#ifndef CONTROLLER_TRUST_SUSPICION_H
#define CONTROLLER_TRUST_SUSPICION_H

#include <stdbool.h>
#include <stdint.h>

struct controller;
struct member;
struct msg_trouble;

/* Marks one that may come back, as all whom it contradicts are out by now, and returns it; NULL: nobody may. */
struct member *suspicion_forgive(struct controller *c);
/* m has a number that cannot be. Many such in one iteration: the training has diverged, and ends. */
void suspicion_number(struct controller *c, struct member *m, const char *why);
/* A replica's first accusation of that one in this iteration: what it says counts, and costs it nothing. */
bool suspicion_is_news(const struct controller *c, const struct member *by, const struct msg_trouble *t);
void suspicion_accused(struct controller *c, struct member *accused, struct member *by);
bool suspicion_concerns(const struct controller *c, uint16_t id); /* it is in a pair, explained or not */
/* What m said cannot be: no sum of this iteration stands. */
void suspicion_proven(struct controller *c, struct member *m, const char *why);
/* Remembers that a and b contradict each other. */
void suspicion_pair(struct controller *c, uint16_t a, uint16_t b);
/* Whom it contradicted until now has no fault in that, and nothing of it keeps it out: it was found out by
 * itself, or the operator takes it back. */
void suspicion_explain(struct controller *c, const struct member *m);
/* One of a pair, on the word of the other. */
void suspicion_left_out(struct controller *c, struct member *m, const struct member *other,
		    const char *why);
/* All wait for m: at first like a dead node, which may come back; the second time left out. */
void suspicion_overdue(struct controller *c, struct member *m, const char *why);
/* Whether it lately kept all others waiting. */
bool suspicion_late(const struct controller *c, const struct member *m);
/* m has its stage's sum: was it through with all that it should have counted? If not, somebody is
 * left out, and true. */
bool suspicion_counts(struct controller *c, struct member *m);
/* The sums of the stage differ, and not for the first time. */
void suspicion_sums(struct controller *c, int stage);
void suspicion_beat(struct controller *c, struct member *m); /* whether data moves */

#endif
