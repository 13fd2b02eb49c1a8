/* copies.h - who holds a copy of a stage beside its replicas, and of which commit; copies are fetched, and let go. */
#ifndef CONTROLLER_WEIGHTS_COPIES_H
#define CONTROLLER_WEIGHTS_COPIES_H

#include <stdbool.h>
#include <stdint.h>

struct members;
struct run;
struct member;

/* Fetches a copy of the stage in the background, and keeps it: false when nobody has it. */
bool copies_fetch(struct members *members, struct member *m, int stage);
/* Fetches a copy from that source in the background, and keeps it. */
bool copies_keep(struct members *members, struct member *m, int stage, const struct member *source);
void copies_fetch_again(struct members *members, struct member *m);
/* False: its copy is not the stage's, and is fetched again. */
bool copies_hash_right(struct members *members, struct member *m, uint64_t iteration,
		       uint64_t hash);
/* An excluded source that has given nothing, or other weights, is not asked again. */
void copies_drop_source(struct members *members, const struct member *m);
void copies_release(struct members *members, struct member *m);
/* m's copy gets no sums any more: another keeps one, or m joins anew. A copy of the last commit is let go
 * with the next one only: until then its stage may be nowhere else. */
void copies_refuse(struct members *members, struct member *m, const char *why);
/* The commit waits until it has the sum; not so a joiner that still fetches. */
bool copies_awaited(const struct member *m);
void copies_forget(struct member *m); /* it has none, or as good as none */
/* Returns true if m is connected and keeps a copy, maybe of an older commit. */
bool copy_whole(const struct member *m, int stage);
bool copy_usable(const struct run *run, const struct member *m, int stage); /* of the last commit */
/* Returns true if a replica's hash proves that m's own weights are those of the stage at that commit, so
 * that m need not fetch them. */
bool copies_own(const struct members *members, const struct member *m, int stage);
/* Returns true if the copy is usable, or will be once m has reported the commit. */
bool copy_coming(const struct run *run, const struct member *m, int stage);
/* Returns true if m keeps a usable copy of a stage that has no replica. */
bool copy_needed(const struct members *members, const struct member *m);
/* Returns true if m keeps such a copy but is silent. */
bool copy_asleep(const struct run *run, const struct member *m, int stage);
/* What the replicas of the stage told for that iteration; where there are none, of the last commit, who was left out or
 * keeps a copy. 0: nothing yet. */
uint64_t copies_hash(const struct members *members, int stage, uint64_t iteration);
/* Returns a node that keeps a usable copy of the stage, other than `but`; NULL if there is none. */
struct member *copies_holder(struct members *members, int stage, const struct member *but);
/* Whether m was left out, and its own weights are those of the stage's last commit. */
bool copy_left_out(const struct members *members, const struct member *m, int stage);
/* Who gets the stage's sum without being a replica: marks them, fills nodes (n_members). */
uint32_t copies_of(struct members *members, int stage, uint16_t *nodes);
bool copies_room(const struct run *run, const struct member *m, int stage); /* memory for one */

#endif
