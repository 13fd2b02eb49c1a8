/* hash.h - a number for an array of floats: other bits, another number.
 *
 * FNV-1a over 32-bit words, in a form that many threads can compute at once. An array is cut into
 * groups of HASH_GROUP words; in a group lane l goes over words l, l + HASH_LANES, ...; a group's
 * number is the FNV-1a of its lanes' in order, and the array's that of its groups'.
 */
#ifndef MODEL_HASH_H
#define MODEL_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { HASH_LANES = 128, HASH_GROUP = 64 * HASH_LANES };

#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)
#define HASH_PRIME UINT64_C(0x100000001b3)

/* Groups of n words. */
static inline size_t hash_groups(size_t n)
{
	return (n + HASH_GROUP - 1) / HASH_GROUP;
}

uint64_t hash_floats(const float *x, size_t n);
uint64_t hash_combine(const uint64_t *numbers, size_t n); /* of lanes, of groups */

#endif
