/* vector_sets.h - vector_body.h as compiled for each instruction set (see the Makefile). */
#ifndef MODEL_CPU_VECTOR_SETS_H
#define MODEL_CPU_VECTOR_SETS_H

#include "model/vector/vector.h"

/* For the instruction set that the compiler assumes by default. */
extern const struct vector_ops vector_ops_plain;
extern const struct vector_ops vector_ops_v3;    /* x86-64-v3: AVX2, FMA */
extern const struct vector_ops vector_ops_v4;    /* x86-64-v4: AVX-512 */

#endif
