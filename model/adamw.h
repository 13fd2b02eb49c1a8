/* adamw.h - Adam with decoupled weight decay (Loshchilov and Hutter, 2019), on one array. */
#ifndef MODEL_ADAMW_H
#define MODEL_ADAMW_H

struct adamw {
	float lr;
	float beta1, beta2;
	float eps;
	float weight_decay; /* of matrices; norms do not decay */
};

#endif
