/* codec.h - encodes tensors for the network in the formats of base/tensor_format.h.
 *
 * Encoding and decoding give the same results on every machine: plain x86-64, AVX2, AVX-512, CUDA.
 * Every operation on floats is correctly rounded, to nearest, ties to even, in the order that is
 * given here.
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
 *                      zeros. Denormals therefore have no effect. A decoded zero is +0.
 *   not finite         If the group has an infinity, a NaN or a number of 2^126 or more, the scale
 *                      is NaN (0x7fc0) and the codes are 0: the group decodes to NaNs. The norm of
 *                      a sum that has this group is then NaN, too. Every other group decodes to
 *                      finite numbers.
 *   bytes              The scale, 2 bytes, little-endian; then the codes in two's complement, one
 *                      after another, lowest bits first. Unused bits at the end are 0.
 *
 * Activations (not gradients) in q8 and q6 are sent after the mean of each channel was subtracted,
 * because the means are a large part of the numbers. The means, 2 bytes (bf16) for each channel,
 * precede the groups.
 *
 *     m = sum over the tokens in ascending order, from +0, / tokens; rounded to bf16;
 *         0 if |m| is below 2^-100; NaN if it is not finite or is 2^126 or more
 *     the groups encode x - m; y + m is the decoded number
 *
 * Groups with a scale each are used in QSGD (Alistarh et al., 2017) and ZeRO++ (Wang et al., 2023).
 * This codec keeps no state, so nothing must be repaired if a node dies or joins, or if a stage is
 * skipped.
 */
#ifndef MODEL_CODEC_CODEC_H
#define MODEL_CODEC_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/tensor_format.h"
#include "model/config.h"

/* How an activation, its gradient, or a part of one tensor's sum is encoded. */
struct codec {
	enum tensor_format format;
	uint32_t group; /* number of values in a group; a group has one scale */
	/* Number of channels, if the means of channels are sent. The encoded numbers then are
	 * (tokens, channels). 0: no means are sent. */
	uint32_t channels;
};

/* An encoded activation or gradient, of codec_bytes bytes. In fp32 these bytes are the floats. */
struct tensor_bytes {
	void *at;
	struct codec codec;
};

struct codec codec_of_activation(enum tensor_format format, uint32_t channels);
struct codec codec_of_gradient(enum tensor_format format);

size_t codec_bytes(const struct codec *c, size_t n);
/* Encodes x (n) to `to` (codec_bytes). If c->channels is not 0, n is a multiple of
 * c->channels. */
void codec_encode(const struct codec *c, void *to, const float *x, size_t n);
/* Decodes `from` (codec_bytes), which need not be aligned, to `to` (n). */
void codec_decode(const struct codec *c, float *to, const void *from, size_t n);
/* Returns true if bytes (codec_bytes) from outside decode to plausible numbers: all finite, none of
 * 2e9 or more, no negative scale. */
bool codec_is_plausible(const struct codec *c, const void *from, size_t n);
/* Returns the signal-to-noise ratio of the decoded numbers in dB. Returns 0 if there is no noise or
 * no signal, if a number is not finite, or if memory runs out. */
double codec_snr_db(const struct codec *c, const void *encoded, const float *x, size_t n);
/* Replaces x (n) by the numbers that its receiver would decode. -ENOMEM. */
int codec_round(const struct codec *c, float *x, size_t n);

/* How a stage's summed gradient is encoded. The sum is cut into slices, each for a different node.
 * No group crosses the end of a tensor or of a slice: each tensor's part of a slice begins a new
 * group. */
struct sum_codec {
	enum tensor_format format;
	const size_t *starts; /* (n) first index of each tensor, ascending; starts[0] is 0 */
	size_t n;
};

/* A part of a slice that can be encoded and decoded by itself. */
struct sum_block {
	size_t from, n; /* the block has the floats [from, from + n) of the stage */
	size_t at;      /* offset in bytes of this block in the encoded slice */
};
/* Length of blocks, in floats, that suits a CPU's cache. */
enum { SUM_BLOCK = 512 * FORMAT_SUM_GROUP };
/* Returns how a block is encoded. */
struct codec codec_of_sum(const struct sum_codec *c);
/* Cuts the floats [from, from + n) of the stage into blocks of at most `most` floats. `most` must
 * be a multiple of FORMAT_SUM_GROUP. Gives the blocks in *out, which the caller frees, and
 * returns their number. */
size_t sum_codec_cut(const struct sum_codec *c, size_t from, size_t n, size_t most,
		     struct sum_block **out);

/* Returns the encoded size in bytes of the floats [from, from + n) of the stage. */
size_t sum_codec_bytes(const struct sum_codec *c, size_t from, size_t n);
/* Encodes x (n), the floats [from, from + n) of the stage, to `to` (sum_codec_bytes). */
void sum_codec_encode(const struct sum_codec *c, void *to, const float *x, size_t from, size_t n);
void sum_codec_decode(const struct sum_codec *c, float *to, const void *encoded, size_t from,
		      size_t n);
bool sum_codec_is_plausible(const struct sum_codec *c, const void *encoded, size_t from, size_t n);
/* Gives the bounds of slice j: [P*j/slices, P*(j+1)/slices) of a stage's P floats. */
void sum_codec_slice(size_t floats, uint32_t slices, uint32_t j, size_t *from, size_t *n);
/* Replaces x, all floats of a stage, by the numbers that a receiver would decode from its slices.
 * -ENOMEM. */
int sum_codec_round(const struct sum_codec *c, float *x, size_t floats, uint32_t slices);
/* Makes an array with the codec of each stage (n_stages). The caller frees it with sum_codecs_free.
 * -ENOMEM. */
int sum_codecs_new(struct sum_codec **out, const struct model_config *model,
		   enum tensor_format format, struct error *err);
void sum_codecs_free(struct sum_codec *codecs); /* NULL is allowed */

#endif
