#include "model/hash.h"

#include <string.h>

uint64_t hash_combine(const uint64_t *numbers, size_t n)
{
	uint64_t hash = HASH_BEGIN;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ numbers[i]) * HASH_PRIME;
	return hash;
}

/* Lanes side by side: a multiplication waits for the one before in its own lane only. */
static uint64_t hash_group(const float *x, size_t n)
{
	uint64_t lanes[HASH_LANES];

	for (size_t l = 0; l < HASH_LANES; l++)
		lanes[l] = HASH_BEGIN;
	for (size_t row = 0; row < n; row += HASH_LANES) {
		size_t width = n - row < HASH_LANES ? n - row : HASH_LANES;

		for (size_t l = 0; l < width; l++) {
			uint32_t word;

			memcpy(&word, &x[row + l], sizeof(word));
			lanes[l] = (lanes[l] ^ word) * HASH_PRIME;
		}
	}
	return hash_combine(lanes, HASH_LANES);
}

uint64_t hash_floats(const float *x, size_t n)
{
	uint64_t hash = HASH_BEGIN;

	for (size_t at = 0; at < n; at += HASH_GROUP) {
		uint64_t group = hash_group(x + at, n - at < HASH_GROUP ? n - at : HASH_GROUP);

		hash = (hash ^ group) * HASH_PRIME;
	}
	return hash;
}
