/* adamw.h - Adam with decoupled weight decay (Loshchilov and Hutter, 2019), on one array.
 *
 * Replicas of a stage compute each weight's step by themselves, on whatever machine they are,
 * and must end with the same bits. So what a step is made of is written down once: the factors
 * here, each weight's arithmetic in adamw_element.h.
 */
#ifndef MODEL_ADAMW_H
#define MODEL_ADAMW_H

#include <stdint.h>

struct adamw {
	float lr;
	float beta1, beta2;
	float eps;
	float weight_decay; /* of matrices; norms do not decay */
};

/* What every weight of a step number t (from 1) is multiplied by and so on. */
struct adamw_factors {
	float scale;                       /* of the gradient */
	float beta1, beta2, rest1, rest2;  /* rest = 1 - beta */
	float unbias1, unbias2;            /* 1 / (1 - beta^t) */
	float lr, eps, keep;               /* keep = 1 - lr * decay */
};

/* decay: h->weight_decay, or 0. By correctly rounded operations alone, none of the C library's:
 * the same bits everywhere. */
struct adamw_factors adamw_factors(const struct adamw *h, float scale, float decay, uint64_t t);

#endif
