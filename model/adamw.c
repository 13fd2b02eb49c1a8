/* Computes the factors of a step of AdamW from correctly rounded operations only, so that all
 * replicas of a stage step with the same bits. */
#include "model/adamw.h"

/* Computes the power by squaring. The last bit of pow() differs between C libraries and
 * processors. */
static double power_of(double x, uint64_t n)
{
	double product = 1;

	for (; n > 0; n /= 2) {
		if (n % 2)
			product *= x;
		x *= x;
	}
	return product;
}

struct adamw_factors adamw_factors(const struct adamw *h, float scale, float decay, uint64_t t)
{
	return (struct adamw_factors){
		.scale = scale,
		.beta1 = h->beta1,
		.beta2 = h->beta2,
		.rest1 = 1 - h->beta1,
		.rest2 = 1 - h->beta2,
		.unbias1 = (float)(1 / (1 - power_of((double)h->beta1, t))),
		.unbias2 = (float)(1 / (1 - power_of((double)h->beta2, t))),
		.lr = h->lr,
		.eps = h->eps,
		.keep = 1 - h->lr * decay,
	};
}
