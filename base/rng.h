/* rng.h - reproducible random numbers: the same seed gives the same stream on every machine.
 *
 * xoshiro256** (Blackman and Vigna, 2018), seeded through splitmix64. Not for secrets: keys come
 * from libsodium.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

struct rng {
	uint64_t state[4];
};

/* Starts a stream. Equal seeds give equal numbers on every machine. */
void rng_init(struct rng *r, uint64_t seed);
/* Starts stream number `stream` of a seed. Streams with neighbouring numbers are independent. */
void rng_init_stream(struct rng *r, uint64_t seed, uint64_t stream);
/* Returns 64 random bits. */
uint64_t rng_next(struct rng *r);
/* Returns a uniform number in [0, n), unbiased; n > 0. */
uint32_t rng_below(struct rng *r, uint32_t n);
/* Returns a uniform number in [0, 1) with 53 random bits. */
double rng_uniform(struct rng *r);
/* Returns a normal number, mean 0 and variance 1 (polar method); the same bits on every machine. */
double rng_normal(struct rng *r);

#endif
