/* corpus.h - text as tokens: what data nodes train on and what validation holds back.
 *
 * The texts, one after another, are bytes, and each byte is a token (vocab 256). Token shards
 * (shard.h) have their own tokens. The whole is cut into blocks (4096 tokens; more for long
 * sequences, less for short texts); every 20th is for validation and is never trained on. A sample
 * is T + 1 tokens within a run of training blocks:
 *
 *     |train train ... train|validation|train ...      blocks
 *     |<- T ->|<- T ->| ...                            samples, each with one token more
 *
 * Each epoch visits the samples in an order shuffled by (seed, epoch); of that order shard k of
 * n takes every n-th: shards are disjoint, and together they are everything.
 */
#ifndef MODEL_CORPUS_H
#define MODEL_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct corpus; /* opaque; read-only once made, so threads may share it */

/* paths (n_paths) in the order given; n_paths 0: the default corpus, the English texts of
 * Debian's fortunes, by name. sequence: T. Gives *out to the caller. Errors name the file:
 * unreadable, empty, neither text nor a token shard; or the
 * whole: shorter than is needed for both parts. */
int corpus_new(struct corpus **out, char *const *paths, size_t n_paths, uint32_t sequence,
	       uint64_t seed, struct error *err);
/* As corpus_open, from bytes in memory, copied: for tests. */
int corpus_from_text(struct corpus **out, const char *text, size_t size, uint32_t sequence,
		     uint64_t seed, struct error *err);
void corpus_free(struct corpus *c); /* NULL is allowed */

uint64_t corpus_hash(const struct corpus *c);  /* of the bytes */
bool corpus_is_text(const struct corpus *c);   /* its tokens are bytes, not of shards */
size_t corpus_bytes(const struct corpus *c);   /* a token of a shard has 2 or 4 */
uint32_t corpus_vocab(const struct corpus *c); /* tokens are below; 256 for bytes */
/* In one epoch, all shards; of the part held back. Public for tests. */
size_t corpus_samples(const struct corpus *c);
size_t corpus_validation_samples(const struct corpus *c);

/* Microbatch number `position` (from 0, without end) of shard < n_shards: tokens and targets
 * (B, T). Depends on the arguments alone: data positions can be recorded and replayed. */
void corpus_batch(const struct corpus *c, uint32_t shard, uint32_t n_shards, uint64_t position,
		  uint32_t batch, int32_t *tokens, int32_t *targets);
/* Validation microbatch k, wrapping round; the same for every seed. */
void corpus_validation_batch(const struct corpus *c, uint64_t k, uint32_t batch,
			     int32_t *tokens, int32_t *targets);

#endif
