/* Names the formats of tensors and gives their bytes, from one table. */
#include "base/tensor_format.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

static const struct {
	const char *name;
	unsigned bits; /* bits of a number's code; 0: the format has no codes */
	bool of_activations, of_sums;
} formats[FORMAT_COUNT] = {
	[FORMAT_FP32] = { "fp32", 0, true, true }, [FORMAT_BF16] = { "bf16", 0, true, false },
	[FORMAT_Q8] = { "q8", 8, true, true },     [FORMAT_Q6] = { "q6", 6, true, true },
	[FORMAT_Q4] = { "q4", 4, false, true },
};

const char *tensor_format_name(enum tensor_format format)
{
	return formats[format].name;
}

int tensor_format_parse(const char *name, enum tensor_format *format)
{
	for (int f = 0; f < FORMAT_COUNT; f++)
		if (strcmp(formats[f].name, name) == 0) {
			*format = (enum tensor_format)f;
			return 0;
		}
	return -EINVAL;
}

bool tensor_format_suits_activations(enum tensor_format format)
{
	return formats[format].of_activations;
}

bool tensor_format_suits_sums(enum tensor_format format)
{
	return formats[format].of_sums;
}

unsigned tensor_format_bits(enum tensor_format format)
{
	return formats[format].bits;
}

size_t tensor_format_bytes(enum tensor_format format, size_t n, size_t group)
{
	size_t bits = formats[format].bits;

	if (bits == 0)
		return n * (format == FORMAT_BF16 ? sizeof(uint16_t) : sizeof(float));
	return n / group * (FORMAT_SCALE_BYTES + group * bits / 8) +
	       (n % group ? FORMAT_SCALE_BYTES + (n % group * bits + 7) / 8 : 0);
}

size_t tensor_format_activation_bytes(enum tensor_format format, size_t n, size_t channels)
{
	return tensor_format_gradient_bytes(format, n) +
	       (formats[format].bits ? channels * FORMAT_SCALE_BYTES : 0);
}

size_t tensor_format_gradient_bytes(enum tensor_format format, size_t n)
{
	return tensor_format_bytes(format, n, FORMAT_ACTIVATION_GROUP);
}

size_t tensor_format_sum_bytes(enum tensor_format format, size_t n)
{
	return tensor_format_bytes(format, n, FORMAT_SUM_GROUP);
}

static double find_share(enum tensor_format format, size_t group)
{
	return (double)tensor_format_bytes(format, group, group) /
	       (double)(group * sizeof(float));
}

double tensor_format_activation_share(enum tensor_format format)
{
	return find_share(format, FORMAT_ACTIVATION_GROUP);
}

double tensor_format_sum_share(enum tensor_format format)
{
	return find_share(format, FORMAT_SUM_GROUP);
}
