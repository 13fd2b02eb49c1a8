/* agreement.h - compares what all replicas of a stage must have in common: weights and sums, and
 * for data nodes the corpus. */
#ifndef CONTROLLER_TRUST_AGREEMENT_H
#define CONTROLLER_TRUST_AGREEMENT_H

#include <stdbool.h>

struct members;
struct member;
struct reported_sum;

/* Called when a replica has reported the hash of its weights after the last commit. Drops the
 * replicas whose hash is not the majority's. */
void agreement_check_hash(struct members *members, const struct member *reporter);
/* Called when the node reports that its weights have changed without a commit. */
void agreement_weights_changed(struct members *members, struct member *m);
/* Returns true if the node may join because its weights have the hash of the stage. Otherwise the
 * node must fetch the weights again. */
bool agreement_check_joiner(struct members *members, struct member *m);
/* Called before the first iteration, and after a controller restart. Decides the run's corpus. A
 * node whose weights differ from the majority's waits until it has fetched the correct
 * weights. */
void agreement_before_start(struct members *members);
/* Compares the standby copies that were reported before the stages were assigned. */
void agreement_check_copies(struct members *members);
/* Returns true if, for some stage, the weights of all connected nodes contradict the hashes
 * recorded for the last commit. Used after a controller restart. */
bool agreement_record_contradicted(const struct members *members);
/* Returns true if the node reads the run's corpus. A node that reads another corpus is marked
 * failed. */
bool agreement_check_corpus(struct members *members, struct member *m);
/* Returns true if both sums are equal to the bit. */
bool agreement_same_sum(const struct reported_sum *a, const struct reported_sum *b);
/* Called when the stage's sums differ for the second time in an iteration. Excludes the replicas
 * whose sum is not that of the majority, and refuses the standby copies whose sum is not that of
 * the majority. The remaining nodes sum again. */
void agreement_sums(struct members *members, int stage);

#endif
