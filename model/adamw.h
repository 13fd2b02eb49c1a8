/* adamw.h - Adam with decoupled weight decay (Loshchilov and Hutter, 2019), on one array.
 *
 * Replicas of a stage step their own weights, on different kinds of machines, and all replicas must
 * end with the same bits. The arithmetic is therefore written only once: the factors in adamw.c,
 * the step of each weight in adamw_element.h.
 */
#ifndef MODEL_ADAMW_H
#define MODEL_ADAMW_H

#include <stdint.h>

struct adamw {
	float lr;
	float beta1, beta2;
	float eps;
	float weight_decay; /* weight decay of matrices; norms do not decay */
};

/* The factors of step number t (from 1), equal for all weights of a tensor. */
struct adamw_factors {
	float scale;                       /* factor by which the gradient is multiplied */
	float beta1, beta2, rest1, rest2;  /* rest1 = 1 - beta1, rest2 = 1 - beta2 */
	float unbias1, unbias2;            /* unbias = 1 / (1 - beta^t), for beta1 and for beta2 */
	float lr, eps, keep;               /* keep = 1 - lr * weight decay */
};

/* Computes the factors. decay: h->weight_decay, or 0 for norms. Uses only correctly rounded
 * operations and no function of the C library, so the bits are the same on every machine. */
struct adamw_factors adamw_factors(const struct adamw *h, float scale, float decay, uint64_t t);

#endif
