/* bf16.h - floats in half of their bytes, as activations and their gradients may travel.
 *
 * A bf16 is the upper half of a float. Rounding is to the nearest, halves to even, element by
 * element: the same floats give the same bits on every machine. Infinities and denormals are
 * rounded like every other number (the largest floats become infinite), and NaN stays NaN.
 */
#ifndef MODEL_BF16_H
#define MODEL_BF16_H

#include <stddef.h>
#include <stdint.h>

/* to (n) = x (n), rounded. */
void bf16_pack(uint16_t *to, const float *x, size_t n);
/* to (n) = x (n) of uint16_t, at any address; exact. */
void bf16_unpack(float *to, const void *x, size_t n);
/* Rounds x (n) in place to the values of bf16. */
void bf16_round(float *x, size_t n);

#endif
