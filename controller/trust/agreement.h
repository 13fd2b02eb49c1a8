/* agreement.h - what all of a stage must hold alike: its weights, and data nodes the corpus. */
#ifndef CONTROLLER_TRUST_AGREEMENT_H
#define CONTROLLER_TRUST_AGREEMENT_H

#include <stdbool.h>

struct members;
struct member;
struct reported_sum;

/* A replica has told the hash of its weights after the last commit: who differs from most of its
 * stage is set apart. */
void agreement_check_hash(struct members *members, const struct member *reporter);
/* By its own words, outside a commit */
void agreement_weights_changed(struct members *members, struct member *m);
/* Whether it may join: its weights are the stage's. Else they are fetched again. */
bool agreement_check_joiner(struct members *members, struct member *m);
/* Before the first iteration, and after a takeover: of those that are ready, who differs is not;
 * the corpus is known. */
void agreement_before_start(struct members *members);
/* Once it is known who has which stage: what was told of copies before that is compared. */
void agreement_check_copies(struct members *members);
/* After a takeover: of some stage only such weights have come as the record does not have of the
 * last commit. */
bool agreement_record_contradicted(const struct members *members);
/* Whether what it reads is the run's corpus; where that is known, who reads another is out. */
bool agreement_check_corpus(struct members *members, struct member *m);
bool agreement_same_sum(const struct reported_sum *a,
			const struct reported_sum *b); /* to the bit */
/* The reported sums of the stage differ, again in this iteration: excludes the replicas and refuses
 * the copies whose sum is not the majority's. The others sum again. */
void agreement_sums(struct members *members, int stage);

#endif
