/* copies.h - standby copies of stages: which node holds a copy, of which commit, and how copies are
 * fetched and released. */
#ifndef CONTROLLER_WEIGHTS_COPIES_H
#define CONTROLLER_WEIGHTS_COPIES_H

#include <stdbool.h>
#include <stdint.h>

struct members;
struct run;
struct member;

/* Orders m to fetch and keep a copy of the stage in the background. Returns false if no node has
 * the stage. */
bool copies_fetch(struct members *members, struct member *m, int stage);
/* Orders m to fetch a copy from `source` and keep it. */
bool copies_keep(struct members *members, struct member *m, int stage, const struct member *source);
void copies_fetch_again(struct members *members, struct member *m);
/* Compares m's copy with the stage. If they differ, orders m to fetch the copy again and returns
 * false. */
bool copies_check_hash(struct members *members, struct member *m, uint64_t iteration,
		       uint64_t hash);
/* If m fetches from an excluded node that sent nothing or wrong weights, makes sure that no node
 * uses this source again. */
void copies_drop_source(struct members *members, const struct member *m);
void copies_release(struct members *members, struct member *m);
/* Stops sending sums to m's copy. If m is a replica whose copy has the last commit, m keeps the
 * copy until the next commit. Until then it may be the only copy of the stage. If m is a joiner,
 * m starts its fetch again. */
void copies_refuse(struct members *members, struct member *m, const char *why);
/* Returns true if the commit waits until m's copy has the sum. While the copy is being fetched,
 * the commit waits only if m is a replica that fetches the copy as a backup of the stage. */
bool copies_awaited(const struct member *m);
/* Marks the copy as complete, with the weights after `iterations` committed iterations. */
void copies_complete(struct member *m, uint64_t iterations, uint64_t hash);
/* Stops sending sums to m's complete copy, from the next order to sum (MSG_REDUCE) on. */
void copies_drop(struct member *m);
/* Makes m's dropped copy of the stage complete again. Returns false if m has no such copy, or if
 * the copy is out of date. */
bool copies_use_again(const struct run *run, struct member *m, int stage);
/* Clears the marks of all copies that were to receive this iteration's sum. */
void copies_forget_sums(struct members *members);
void copies_sum_reported(struct member *m);
/* Returns true if the commit waits for m's copy to report the sum. */
bool copies_lacks_sum(const struct member *m);
void copies_forget(struct member *m); /* Marks m as having no usable copy */
/* Returns true if m is connected and keeps a complete copy, possibly of an older commit. */
bool copy_whole(const struct member *m, int stage);
/* Returns true if m keeps a complete copy of the stage that belongs to the last commit. */
bool copy_usable(const struct run *run, const struct member *m, int stage);
/* Returns true if m need not fetch the stage, because m's own weights have the stage's hash after
 * the last commit. */
bool copies_own(const struct members *members, const struct member *m, int stage);
/* Returns true if m's copy is usable, or will be usable once m has reported the last commit. */
bool copy_expected(const struct run *run, const struct member *m, int stage);
/* Returns true if m keeps a usable copy of a stage that has no replica. */
bool copy_needed(const struct members *members, const struct member *m);
/* Returns true if m keeps a usable copy of the stage but is silent. */
bool copy_holder_silent(const struct run *run, const struct member *m, int stage);
/* Returns the hash of the stage's weights after that iteration, as the stage's replicas report
 * it. If the stage has no replicas, returns the hash that excluded nodes or standby copies report
 * for the last commit. 0: unknown. */
uint64_t copies_hash(const struct members *members, int stage, uint64_t iteration);
/* Returns a node, other than `but`, that keeps a usable copy of the stage; NULL: none. */
struct member *copies_holder(struct members *members, int stage, const struct member *but);
/* Returns true if m is excluded, and m's own weights belong to this stage and have all commits. */
bool copy_of_excluded(const struct members *members, const struct member *m, int stage);
/* Marks the nodes whose copies get the stage's sum, and lists them in `nodes`, which has room for
 * all members. Returns their number. */
uint32_t copies_of(struct members *members, int stage, uint16_t *nodes);
/* Returns true if the node has memory for a copy of the stage. */
bool copy_fits(const struct run *run, const struct member *m, int stage);

#endif
