/* Brings activations and their gradients to a GPU's stage and back. They cross the PCI bus in the
 * bytes in which they travel between nodes, which in q8 are a quarter of the floats. The device
 * decodes and encodes them to the bits of model/codec/codec.h. */
#include "model/cuda/stage_cuda.h"

#include <string.h>

static size_t activation(const struct cuda_stage *s)
{
	return s->rows * s->l->config.dim;
}

/* Converts between x and bytes in device memory, where the means of channels precede the groups. */
static struct codec_args args_of(const struct cuda_stage *s, const struct codec *c, float *x,
				 unsigned char *bytes)
{
	return (struct codec_args){
		.x = x,
		.bytes = bytes + (size_t)c->channels * FORMAT_SCALE_BYTES,
		.means = c->channels ? (const uint16_t *)(const void *)bytes : NULL,
		.n = activation(s),
		.channels = c->channels,
		.bits = tensor_format_bits(c->format),
		.group = c->group,
	};
}

static size_t groups(const struct codec_args *a)
{
	return (a->n + a->group - 1) / a->group;
}

void cuda_encode(struct cuda_stage *s, const struct codec *c, void *to, float *x)
{
	struct codec_args a = args_of(s, c, x, to);
	struct channel_means_args m = { x, to, s->rows, c->channels };

	if (c->format == FORMAT_FP32) {
		device_copy(s->d, to, x, a.n * sizeof(*x));
		return;
	}
	if (c->format == FORMAT_BF16) {
		cuda_each(s, KERNEL_BF16_ENCODE, a.n, &a);
		return;
	}
	if (c->channels)
		cuda_each(s, KERNEL_CHANNEL_MEANS, c->channels, &m);
	cuda_each(s, KERNEL_QUANTISE, groups(&a), &a);
}

void cuda_decode(struct cuda_stage *s, const struct codec *c, float *to, void *from)
{
	struct codec_args a = args_of(s, c, to, from);

	if (c->format == FORMAT_FP32)
		device_copy(s->d, to, from, a.n * sizeof(*to));
	else if (c->format == FORMAT_BF16)
		cuda_each(s, KERNEL_BF16_DECODE, a.n, &a);
	else
		cuda_each(s, KERNEL_DEQUANTISE, groups(&a), &a);
}

void cuda_put_input(struct cuda_stage *s, float *to, const struct stage_task *t)
{
	size_t bytes = codec_bytes(&t->in_codec, activation(s));

	if (device_holds(s->d, t->in)) {
		device_put(s->d, to, t->in, bytes);
		return;
	}
	memcpy(s->crossing.host_in, t->in, bytes);
	if (t->in_codec.format == FORMAT_FP32) {
		device_put(s->d, to, s->crossing.host_in, bytes);
		return;
	}
	device_put(s->d, s->crossing.in, s->crossing.host_in, bytes);
	cuda_decode(s, &t->in_codec, to, s->crossing.in);
}

void cuda_get_output(struct cuda_stage *s, const struct stage_task *t, float *from)
{
	size_t bytes = codec_bytes(&t->out_codec, activation(s));
	void *encoded = from;

	if (!t->out)
		return;
	if (device_holds(s->d, t->out)) {
		device_get(s->d, t->out, from, bytes);
		return;
	}
	if (t->out_codec.format != FORMAT_FP32)
		cuda_encode(s, &t->out_codec, encoded = s->crossing.out, from);
	device_get(s->d, s->crossing.host_out, encoded, bytes);
}

int cuda_finish_pass(struct cuda_stage *s, const struct stage_task *t)
{
	int rc = device_status(s->d);

	if (!rc && t->out && !device_holds(s->d, t->out))
		memcpy(t->out, s->crossing.host_out, codec_bytes(&t->out_codec, activation(s)));
	return rc;
}
