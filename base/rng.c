/* xoshiro256** and the distributions that the project needs. The C library's own generators differ
 * between systems, and replicas must draw the same numbers. */
#include "base/rng.h"

#include <assert.h>
#include <math.h>

static uint64_t next_splitmix(uint64_t *x)
{
	uint64_t z = *x += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

void rng_init(struct rng *r, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		r->state[i] = next_splitmix(&seed);
}

void rng_init_stream(struct rng *r, uint64_t seed, uint64_t stream)
{
	uint64_t mixed = next_splitmix(&seed);

	mixed ^= next_splitmix(&stream);
	rng_init(r, mixed);
}

static uint64_t rotate_left(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

uint64_t rng_next(struct rng *r)
{
	uint64_t *s = r->state, out = rotate_left(s[1] * 5, 7) * 9, t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return out;
}

/* Uses Lemire's multiply-shift with rejection (2019). */
uint32_t rng_below(struct rng *r, uint32_t n)
{
	uint64_t m;

	assert(n > 0);
	m = (rng_next(r) >> 32) * (uint64_t)n;
	if ((uint32_t)m < n) {
		uint32_t floor = (uint32_t)-n % n;

		while ((uint32_t)m < floor)
			m = (rng_next(r) >> 32) * (uint64_t)n;
	}
	return (uint32_t)(m >> 32);
}

double rng_uniform(struct rng *r)
{
	return (double)(rng_next(r) >> 11) * 0x1p-53;
}

/* Computes the logarithm of a positive number from sums, products and quotients only, because
 * every machine rounds them alike. The logarithms of C libraries differ in the last bit. With x =
 * m 2^e and z = (m - 1) / (m + 1), m from sqrt(1/2) to sqrt(2): log m = 2 (z + z^3 / 3 + z^5 / 5
 * + ...), and |z| < 0.172. */
static double natural_log(double x)
{
	double m, z, sum = 0;
	int e;

	m = frexp(x, &e);
	if (m < 0x1.6a09e667f3bcdp-1) {
		m *= 2;
		e--;
	}
	z = (m - 1) / (m + 1);
	for (int k = 21; k > 0; k -= 2)
		sum = sum * (z * z) + 1.0 / k;
	return e * 0x1.62e42fefa39efp-1 + 2 * z * sum;
}

double rng_normal(struct rng *r)
{
	double u, v, s;

	do {
		u = 2 * rng_uniform(r) - 1;
		v = 2 * rng_uniform(r) - 1;
		s = u * u + v * v;
	} while (s >= 1 || s == 0);
	return u * sqrt(-2 * natural_log(s) / s);
}
