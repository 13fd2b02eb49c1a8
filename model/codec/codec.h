/* codec.h - tensors as bytes that travel: the numbers behind the formats of base/tensor_format.h.
 *
 * The same numbers give the same bytes, and the same bytes the same numbers, on every machine:
 * plain x86-64, AVX2, AVX-512, CUDA. Every operation on floats is one correctly rounded operation,
 * to the nearest, ties to even, in the order that is given here.
 *
 * bf16. The upper half of a float, rounded. Infinities and denormals are rounded like every other
 * number (the largest floats become infinite), and NaN becomes 0x7fc0.
 *
 * q8, q6, q4. The numbers are cut into groups, the last of which may be shorter. With b bits, codes
 * are -Q .. Q, where Q = 2^(b-1) - 1. For each group:
 *
 *     a = largest |x|
 *     s = a / Q, rounded to bf16
 *     q = x / s, rounded to an integer; |q| <= Q, because s is within 1/512 of a / Q
 *     y = q * s is the decoded number; exact, as q and s have at most 15 bits together
 *
 *   zeros, denormals   If s is below 2^-100, the scale and all codes are 0: the group decodes to
 *                      zeros. Therefore no denormal matters. A decoded zero is +0.
 *   not finite         If the group has an infinity, a NaN or a number of 2^126 or more, the scale
 *                      is NaN (0x7fc0) and the codes are 0: the group decodes to NaNs, so that the
 *                      norm of a sum shows it. Every other group decodes to finite numbers.
 *   bytes              The scale, 2 bytes, little-endian; then the codes in two's complement, one
 *                      after another, lowest bits first. Unused bits at the end are 0.
 *
 * Activations (not gradients) in q8 and q6 travel without the means of their channels, which hold
 * much of their size: ahead of the groups there is a mean of 2 bytes (bf16) for each channel.
 *
 *     m = sum over the tokens in ascending order, from +0, / tokens; rounded to bf16;
 *         0 if |m| is below 2^-100; NaN if it is not finite or is 2^126 or more
 *     x - m is what the groups hold; y + m is the decoded number
 *
 * Source of the scheme: groups with a scale each, as in QSGD (Alistarh et al., 2017) and ZeRO++
 * (Wang et al., 2023). Ours has no state, so that deaths, joins and skipped stages need nothing.
 */
#ifndef MODEL_CODEC_CODEC_H
#define MODEL_CODEC_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/tensor_format.h"
#include "model/config.h"

/* The encoding of an activation or its gradient, or of a part of one tensor's sum. */
struct codec {
	enum tensor_format format;
	uint32_t group;    /* numbers that share a scale */
	uint32_t channels; /* 0: no means are removed; numbers are (tokens, channels) otherwise */
};

struct codec codec_of_activation(enum tensor_format format, uint32_t channels);
struct codec codec_of_gradient(enum tensor_format format);

size_t codec_bytes(const struct codec *c, size_t n);
/* to (codec_bytes) = x (n). With channels n is a multiple of them. */
void codec_encode(const struct codec *c, void *to, const float *x, size_t n);
/* to (n) = from (codec_bytes), at any address. */
void codec_decode(const struct codec *c, float *to, const void *from, size_t n);
/* Returns true if bytes (codec_bytes) from outside decode to numbers that a computation gives: all
 * finite, none of 2e9 or more, no negative scale. */
bool codec_is_plausible(const struct codec *c, const void *from, size_t n);
/* Returns the signal-to-noise ratio, dB, of the decoded numbers; 0 if there is no noise, no signal,
 * a number that is not finite, or no memory. */
double codec_snr_db(const struct codec *c, const void *encoded, const float *x, size_t n);
/* Replaces x (n) by the numbers that its receiver decodes. -ENOMEM. */
int codec_round(const struct codec *c, float *x, size_t n);

/* The encoding of a stage's summed gradient, of which nodes own slices. No group crosses a tensor
 * or the end of a slice: each tensor's part of a slice begins a new group. */
struct sum_codec {
	enum tensor_format format;
	const size_t *starts; /* (n) where the stage's tensors begin, ascending, the first 0 */
	size_t n;
};

/* Returns the bytes of floats [from, from + n) of the stage. */
size_t sum_codec_bytes(const struct sum_codec *c, size_t from, size_t n);
/* to (sum_codec_bytes) = x (n), which are floats [from, from + n) of the stage. */
void sum_codec_encode(const struct sum_codec *c, void *to, const float *x, size_t from, size_t n);
void sum_codec_decode(const struct sum_codec *c, float *to, const void *encoded, size_t from,
		      size_t n);
bool sum_codec_is_plausible(const struct sum_codec *c, const void *encoded, size_t from, size_t n);
/* Gives slice j of so many, [P*j/slices, P*(j+1)/slices) of a stage's P floats. */
void sum_codec_slice(size_t floats, uint32_t slices, uint32_t j, size_t *from, size_t *n);
/* Replaces x, all floats of a stage, by the numbers that its slices decode to. -ENOMEM. */
int sum_codec_round(const struct sum_codec *c, float *x, size_t floats, uint32_t slices);
/* Gives the codecs of all stages (n_stages) to the caller (sum_codecs_free). -ENOMEM. */
int sum_codecs_new(struct sum_codec **out, const struct model_config *model,
		   enum tensor_format format, struct error *err);
void sum_codecs_free(struct sum_codec *codecs); /* NULL is allowed */

#endif
