/* Copies activations and their gradients to a GPU's stage and back. Both cross the PCI bus in the
 * encoding in which they travel between nodes. In q8, this encoding has about a quarter of the
 * bytes of floats. The device decodes and encodes to the same bits as model/codec/codec.h. */
#include "model/cuda/stage_cuda.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static size_t activation(const struct cuda_stage *s)
{
	return s->rows * s->l->config.dim;
}

/* Returns the arguments of the kernels that convert between x (n) and bytes, both in device memory.
 * In the bytes, the means of channels precede the groups. */
static struct codec_args args_of(const struct codec *c, float *x, unsigned char *bytes, size_t n)
{
	return (struct codec_args){
		.x = x,
		.bytes = bytes + (size_t)c->channels * FORMAT_SCALE_BYTES,
		.means = c->channels ? (const uint16_t *)(const void *)bytes : NULL,
		.n = n,
		.channels = c->channels,
		.bits = tensor_format_bits(c->format),
		.group = c->group,
	};
}

static size_t groups(const struct codec_args *a)
{
	return (a->n + a->group - 1) / a->group;
}

void cuda_encode(struct cuda_stage *s, const struct codec *c, void *to, float *x, size_t n)
{
	struct codec_args a = args_of(c, x, to, n);
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

void cuda_decode(struct cuda_stage *s, const struct codec *c, float *to, void *from, size_t n)
{
	struct codec_args a = args_of(c, to, from, n);

	if (c->format == FORMAT_FP32)
		device_copy(s->d, to, from, a.n * sizeof(*to));
	else if (c->format == FORMAT_BF16)
		cuda_each(s, KERNEL_BF16_DECODE, a.n, &a);
	else
		cuda_each(s, KERNEL_DEQUANTISE, groups(&a), &a);
}

/* Copies an input into the buffer's pinned memory, and from there to the device while the device
 * computes. No pass reads the buffer any more, because the caller has waited for the passes that
 * read it. An earlier input may still be on its way from this buffer to the device. No pass will
 * read that input, so the new input may overwrite it. */
static void put_ahead(struct cuda_stage *s, int buffer, const void *from, size_t bytes)
{
	struct arrival *in = &s->crossing.in[buffer];

	assert(!s->l->activations_stay);
	memcpy(in->pinned, from, bytes);
	device_put_beside(s->d, in->device, in->pinned, bytes);
}

/* Returns the buffer that has the input with this number; -1: none. */
static int find_arrival(const struct cuda_stage *s, uint64_t number)
{
	for (int i = 0; i < CROSSINGS && number; i++)
		if (s->crossing.in[i].number == number)
			return i;
	return -1;
}

void cuda_put_input(struct cuda_stage *s, float *to, const struct stage_task *t)
{
	size_t bytes = codec_bytes(&t->in_codec, activation(s));
	int buffer;

	if (device_holds(s->d, t->in)) {
		device_put(s->d, to, t->in, bytes);
		return;
	}
	buffer = find_arrival(s, t->in_number);
	if (buffer < 0) {
		buffer = s->crossing.in[0].number ? 1 : 0;
		put_ahead(s, buffer, t->in, bytes);
	}
	s->crossing.in[buffer].number = 0;
	s->crossing.last_in = buffer;
	device_order(s->d, STREAM_PUT, STREAM_COMPUTE);
	cuda_decode(s, &t->in_codec, to, s->crossing.in[buffer].device, activation(s));
}

static void put_next(struct cuda_stage *s, const struct stage_task *t)
{
	int buffer = 1 - s->crossing.last_in;

	if (!t->next_number || find_arrival(s, t->next_number) >= 0)
		return;
	put_ahead(s, buffer, t->next, codec_bytes(&t->next_codec, activation(s)));
	s->crossing.in[buffer].number = t->next_number;
}

/* Completes the buffer's earlier output and encodes the new output into the buffer. Then copies
 * the buffer to pinned memory while the device computes. */
static void get_beside(struct cuda_stage *s, const struct codec *c, int buffer, float *from)
{
	assert(!s->l->activations_stay);
	downloads_clear(s->crossing.downloads, buffer);
	cuda_encode(s, c, s->crossing.out[buffer], from, activation(s));
	device_order(s->d, STREAM_COMPUTE, STREAM_GET);
	device_get_beside(s->d, downloads_pinned(s->crossing.downloads, buffer),
			  s->crossing.out[buffer], codec_bytes(c, activation(s)));
	device_mark(s->d, STREAM_GET, (unsigned)buffer);
}

void cuda_get_output(struct cuda_stage *s, struct stage_task *t, float *from)
{
	size_t bytes = codec_bytes(&t->out_codec, activation(s));
	int buffer = s->crossing.next_out;

	if (!t->out && !t->leaves)
		return;
	if (!t->leaves && device_holds(s->d, t->out)) {
		device_get(s->d, t->out, from, bytes);
		return;
	}
	s->crossing.next_out = 1 - buffer;
	get_beside(s, &t->out_codec, buffer, from);
	t->output = downloads_give(s->crossing.downloads, buffer, bytes);
}

/* If task->leaves is false, the caller wants the output now. The output then passes through the
 * same buffers, and this function collects it. */
int cuda_finish_pass(struct cuda_stage *s, struct stage_task *t)
{
	struct error err = { "" };
	int rc;

	put_next(s, t);
	rc = device_status(s->d);
	if (!rc && t->output && !t->leaves) {
		rc = stage_output_collect(t->output, t->out, &err);
		if (rc == -EIO)
			device_fail(s->d, "an output", err.text);
		t->output = NULL;
	}
	if (rc) {
		stage_output_drop(t->output);
		t->output = NULL;
	}
	return rc;
}
