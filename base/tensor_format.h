/* tensor_format.h - the formats in which tensors travel between nodes, and their bytes.
 *
 *     fp32       floats
 *     bf16       the upper half of each float, rounded to nearest
 *     q8 q6 q4   groups of numbers: one scale, and a code of 8, 6 or 4 bits per number
 *
 * model/codec/codec.h defines the numbers behind the bytes. Plans, measurements and messages need
 * only the sizes, which are here.
 */
#ifndef BASE_TENSOR_FORMAT_H
#define BASE_TENSOR_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

enum tensor_format { FORMAT_FP32, FORMAT_BF16, FORMAT_Q8, FORMAT_Q6, FORMAT_Q4, FORMAT_COUNT };

/* The formats of an iteration. */
struct tensor_formats {
	enum tensor_format wire;     /* format of activations and their gradients */
	enum tensor_format sum_wire; /* format of the sums of gradients */
};

enum {
	FORMAT_ACTIVATION_GROUP =
		32,             /* numbers that share a scale, in activations and their gradients */
	FORMAT_SUM_GROUP = 128, /* numbers that share a scale, in sums of gradients */
	FORMAT_SCALE_BYTES = 2  /* bytes of a scale, or of the mean of a channel */
};

/* Returns "fp32", "bf16", "q8", "q6" or "q4". */
const char *tensor_format_name(enum tensor_format format);
/* -EINVAL: no format has this name. */
int tensor_format_parse(const char *name, enum tensor_format *format);
/* Return true if activations, or sums, may be sent in the format. */
bool tensor_format_suits_activations(enum tensor_format format);
bool tensor_format_suits_sums(enum tensor_format format);

/* Returns the bits of a code; 0 for fp32 and bf16. */
unsigned tensor_format_bits(enum tensor_format format);
/* Returns the bytes of n numbers in groups of `group` numbers; the last group may be shorter. */
size_t tensor_format_bytes(enum tensor_format format, size_t n, size_t group);
/* Return the bytes of an activation of n numbers with `channels` channels, and of its gradient. A
 * coded activation also has the mean of each channel. */
size_t tensor_format_activation_bytes(enum tensor_format format, size_t n, size_t channels);
size_t tensor_format_gradient_bytes(enum tensor_format format, size_t n);
/* Returns the bytes of a sum of gradients of n numbers. */
size_t tensor_format_sum_bytes(enum tensor_format format, size_t n);
/* Return a size divided by the size in fp32: of long activations, without the means of their
 * channels, and of long sums of gradients. Examples: 1 for fp32, 0.203125 for activations in q6. */
double tensor_format_activation_share(enum tensor_format format);
double tensor_format_sum_share(enum tensor_format format);

#endif
