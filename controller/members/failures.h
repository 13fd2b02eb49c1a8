/* failures.h - counts how often each node was lost, in this run and in earlier runs.
 *
 * The counts are stored by key in LIST.failures, beside the list of admitted keys. A day without a
 * failure clears the count of a key. */
#ifndef CONTROLLER_MEMBERS_FAILURES_H
#define CONTROLLER_MEMBERS_FAILURES_H

#include <stdbool.h>
#include <stddef.h>

struct member;
struct members;

/* Reads the number of failures of m's key. Call it when a process joins as node m. */
void failures_recall(struct members *members, struct member *m);
/* Counts the loss of m, which was a replica, and writes the file. */
void failures_count(struct members *members, struct member *m);
/* Returns true if m failed so often that plans use it only as a last resort (spares.c). */
bool failures_are_many(const struct member *m);
/* Writes why plans use m only as a last resort (spares.c): m failed often, or joined as a late
 * spare. "": plans use m normally. */
void failures_reason(const struct member *m, char *out, size_t room);

#endif
