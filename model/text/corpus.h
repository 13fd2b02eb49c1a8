/* corpus.h - text as tokens, divided into training data and validation data.
 *
 * Texts are joined, and each byte is a token (vocab 256). Token shards (shard.h) have their own
 * tokens. The corpus is cut into blocks (4096 tokens; more for long sequences, less for short
 * texts); every 20th is for validation and is never trained on. A sample is T + 1 tokens within a
 * run of training blocks:
 *
 *     |train train ... train|validation|train ...      blocks
 *     |<- T ->|<- T ->| ...                            samples, each with one token more
 *
 * Each epoch visits the samples in an order shuffled by (seed, epoch). Data shard k of n takes
 * every n-th sample of this order, from the k-th on: shards are disjoint, and together contain all
 * samples.
 */
#ifndef MODEL_CORPUS_H
#define MODEL_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct corpus; /* opaque; read-only once made, so threads may share it */

/* Reads the files in the order of paths (n_paths) and gives *out to the caller. n_paths 0: reads
 * the default corpus, which is the English texts of Debian's fortunes, sorted by name. The texts
 * come from the bundle, or else from Debian's package. sequence: length T of a sequence. Errors
 * name the file (unreadable, empty, neither text nor a token shard), or say that the corpus is too
 * short for training and validation. */
int corpus_new(struct corpus **out, char *const *paths, size_t n_paths, uint32_t sequence,
	       uint64_t seed, struct error *err);
/* Makes a corpus from a copy of bytes in memory; for tests. */
int corpus_from_text(struct corpus **out, const char *text, size_t size, uint32_t sequence,
		     uint64_t seed, struct error *err);
void corpus_free(struct corpus *c); /* NULL is allowed */

uint64_t corpus_hash(const struct corpus *c); /* returns the hash of the corpus's bytes */
/* Returns true if tokens are bytes, and false if they come from shards. */
bool corpus_is_text(const struct corpus *c);
/* Returns the bytes of a token: 1 for texts, 2 or 4 for shards. */
size_t corpus_bytes(const struct corpus *c);
/* Returns a number above all tokens; 256 if tokens are bytes. */
uint32_t corpus_vocab(const struct corpus *c);
/* Refuses (-EINVAL) a corpus on which a run cannot train its model. has_tokenizer: the model's
 * tokens are not bytes. */
int corpus_check(const struct corpus *c, uint32_t vocab, bool has_tokenizer, struct error *err);
/* Return the number of samples in an epoch, over all data shards, and in the validation part.
 * Public for tests. */
size_t corpus_samples(const struct corpus *c);
size_t corpus_validation_samples(const struct corpus *c);

/* Gives the tokens and targets (B, T) of microbatch number `position` (from 0, without end) of data
 * shard `shard` < n_shards. The result depends on the arguments alone, so data positions can be
 * recorded and replayed. */
void corpus_batch(const struct corpus *c, uint32_t shard, uint32_t n_shards, uint64_t position,
		  uint32_t batch, int32_t *tokens, int32_t *targets);
/* Gives validation microbatch k. Numbers beyond the last microbatch begin again with the first. The
 * result does not depend on the seed. */
void corpus_validation_batch(const struct corpus *c, uint64_t k, uint32_t batch,
			     int32_t *tokens, int32_t *targets);

#endif
