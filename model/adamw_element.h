/* adamw_element.h - AdamW's step of one weight, for the CPU and the GPU.
 *
 * The including file defines INLINE_, the storage class of a small function, and MUL, ADD, SUB, DIV
 * and SQRT of floats. Each result is rounded to nearest and keeps denormals, and no two operations
 * are contracted into one. On the CPU, the five operations are C's operators, in a file that is
 * compiled with -ffp-contract=off (vector/exact_body.h). On the GPU, the operations are intrinsics,
 * which the compiler is not allowed to contract.
 *
 * NaN is replaced by one bit pattern, because machines do not agree on its sign and payload.
 */
#ifndef MODEL_ADAMW_ELEMENT_H
#define MODEL_ADAMW_ELEMENT_H

#include "model/adamw.h"

INLINE_ float adamw_tidy(float x)
{
	return x == x ? x : NOT_A_NUMBER;
}

INLINE_ void adamw_element(const struct adamw_factors *f, float *w, float *m, float *v,
			   float gradient)
{
	float g = MUL(gradient, f->scale);
	float mean = ADD(MUL(f->beta1, *m), MUL(f->rest1, g));
	float square = ADD(MUL(f->beta2, *v), MUL(MUL(f->rest2, g), g));
	float top = MUL(f->lr, MUL(mean, f->unbias1));
	float bottom = ADD(SQRT(MUL(square, f->unbias2)), f->eps);

	*m = adamw_tidy(mean);
	*v = adamw_tidy(square);
	*w = adamw_tidy(SUB(MUL(*w, f->keep), DIV(top, bottom)));
}

#endif
