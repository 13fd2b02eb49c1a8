/* The sum of a stage's gradient over replicas, on a GPU. Parts and sums cross the PCI bus
 * encoded. The device decodes them and adds them in the order of the replicas, into an array
 * other than the gradient's. The gradient stays unchanged, so that a sum can restart. The device
 * also computes the hashes and the squares of the sum, with the same bits as the CPU
 * (agent/sums/slices.c).
 *
 * Encoded numbers pass through the stage's pieces of pinned memory, a block at a time. No block is
 * longer than a piece. Each function waits for the device at its end.
 */
#include "model/cuda/stage_cuda.h"

#include <stdlib.h>
#include <string.h>

/* Decodes a block of n numbers in the caller's memory to x in device memory. While a block is sent
 * from one piece, the next block is copied into the other. */
static void put_block(struct cuda_stage *s, const struct codec *c, float *x, const void *from,
		      size_t n)
{
	float *piece = s->pieces.at[s->pieces.next];
	size_t bytes = codec_bytes(c, n);

	s->pieces.next ^= 1;
	memcpy(piece, from, bytes);
	device_status(s->d); /* waits until the other piece is sent */
	device_put(s->d, s->sums.bytes, piece, bytes);
	cuda_decode(s, c, x, s->sums.bytes, n);
}

/* Encodes x (n) in device memory to the caller's memory. The bytes also stay in sums.bytes. */
static void get_block(struct cuda_stage *s, const struct codec *c, void *to, float *x, size_t n)
{
	const float *piece = s->pieces.at[s->pieces.next];
	size_t bytes = codec_bytes(c, n);

	cuda_encode(s, c, s->sums.bytes, x, n);
	device_get(s->d, s->pieces.at[s->pieces.next], s->sums.bytes, bytes);
	if (device_status(s->d) == 0)
		memcpy(to, piece, bytes);
}

static size_t cut(const struct cuda_stage *s, const struct sum_codec *c, size_t from, size_t n,
		  struct sum_block **out)
{
	size_t groups = s->pieces.size / FORMAT_SUM_GROUP;

	/* groups is 0 only if the stage is shorter than a group. Every block of the stage then fits
	 * into a piece. */
	return sum_codec_cut(c, from, n, (groups ? groups : 1) * FORMAT_SUM_GROUP, out);
}

int cuda_encode_gradient(void *self, const struct sum_codec *c, size_t from, size_t n, void *to)
{
	struct cuda_stage *s = self;
	struct codec codec = codec_of_sum(c);
	struct sum_block *blocks;
	size_t count = cut(s, c, from, n, &blocks);

	for (size_t i = 0; i < count; i++)
		get_block(s, &codec, (char *)to + blocks[i].at,
			  s->array[ARRAY_GRADIENT] + blocks[i].from, blocks[i].n);
	free(blocks);
	return device_status(s->d);
}

/* Decodes a block of a replica's part to x. part NULL: takes this stage's gradient instead, encoded
 * and decoded like the other replicas' parts. */
static void put_part(struct cuda_stage *s, const struct codec *c, float *x, const char *part,
		     const struct sum_block *b)
{
	if (part) {
		put_block(s, c, x, part + b->at, b->n);
		return;
	}
	cuda_encode(s, c, s->sums.bytes, s->array[ARRAY_GRADIENT] + b->from, b->n);
	cuda_decode(s, c, x, s->sums.bytes, b->n);
}

static void add_block(struct cuda_stage *s, const struct codec *c, const void *const *parts,
		      uint32_t n, const struct sum_block *b, void *to)
{
	float *sum = s->sums.array + b->from;
	struct add_args a = { .to = sum, .from = s->sums.part, .n = b->n };

	put_part(s, c, sum, parts[0], b);
	for (uint32_t i = 1; i < n; i++) {
		put_part(s, c, s->sums.part, parts[i], b);
		cuda_each(s, KERNEL_ADD, a.n, &a);
	}
	get_block(s, c, (char *)to + b->at, sum, b->n);
	cuda_decode(s, c, sum, s->sums.bytes, b->n);
}

int cuda_add_parts(void *self, const struct sum_codec *c, size_t from, size_t n,
		   const void *const *parts, uint32_t n_parts, void *to)
{
	struct cuda_stage *s = self;
	struct codec codec = codec_of_sum(c);
	struct sum_block *blocks;
	size_t count = cut(s, c, from, n, &blocks);

	for (size_t i = 0; i < count; i++)
		add_block(s, &codec, parts, n_parts, &blocks[i], to);
	free(blocks);
	return device_status(s->d);
}

int cuda_put_sum(void *self, const struct sum_codec *c, size_t from, size_t n, const void *encoded)
{
	struct cuda_stage *s = self;
	struct codec codec = codec_of_sum(c);
	struct sum_block *blocks;
	size_t count = cut(s, c, from, n, &blocks);

	for (size_t i = 0; i < count; i++)
		put_block(s, &codec, s->sums.array + blocks[i].from,
			  (const char *)encoded + blocks[i].at, blocks[i].n);
	free(blocks);
	return device_status(s->d);
}

const float *cuda_summed(const void *self)
{
	const struct cuda_stage *s = self;

	return s->sums.array;
}

int cuda_hash_array(struct cuda_stage *s, const float *x, size_t n, uint64_t *hash)
{
	size_t bytes = n * sizeof(*x), leaves = hash_leaves(bytes);
	struct hash_args a = { .x = x, .to = s->t.leaves, .n = n };
	int rc;

	if (leaves)
		device_launch(s->d, KERNEL_HASH, false, (leaves + LEAF_THREADS - 1) / LEAF_THREADS,
			      1, LEAF_THREADS, 0, &a);
	device_get(s->d, s->host_leaves, s->t.leaves, leaves * HASH_DIGEST);
	rc = device_status(s->d);
	*hash = hash_root(s->host_leaves, bytes);
	return rc;
}

/* A block of squares has as many numbers as a leaf of the hash, and its sum is shorter than a
 * digest. The sums therefore pass through the memory of the digests. */
int cuda_square_array(struct cuda_stage *s, const float *x, size_t n, double *sum)
{
	const double *sums = (const double *)(const void *)s->host_leaves;
	struct squares_args a = { .x = x, .to = (double *)(void *)s->t.leaves, .n = n };
	size_t blocks = squares_blocks(n), threads = blocks * SQUARES_LANES;
	int rc;

	device_launch(s->d, KERNEL_SQUARES, false, (threads + ROW_THREADS - 1) / ROW_THREADS, 1,
		      ROW_THREADS, 2 * ROW_THREADS, &a);
	device_get(s->d, s->host_leaves, s->t.leaves, blocks * sizeof(*sums));
	rc = device_status(s->d);
	*sum = squares_total(sums, blocks);
	return rc;
}

int cuda_check_sum(void *self, uint32_t slices, uint64_t *hashes, double *squares)
{
	struct cuda_stage *s = self;
	size_t from, n;
	int rc = 0;

	for (uint32_t j = 0; rc == 0 && j < slices; j++) {
		sum_codec_slice(s->l->parameters, slices, j, &from, &n);
		rc = cuda_hash_array(s, s->sums.array + from, n, &hashes[j]);
	}
	return rc ? rc : cuda_square_array(s, s->sums.array, s->l->parameters, squares);
}
