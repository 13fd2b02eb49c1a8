/* attention.h - causal attention with grouped key/value heads, in tiles.
 *
 * No more than TILE x TILE scores are in memory at a time, one for each pair of a query and a key.
 * The forward pass has a running softmax over tiles of keys (Milakov and Gimelshein, 2018). The
 * backward pass computes the scores again from the saved log-sum-exp (FlashAttention, Dao et al.,
 * 2022).
 */
#ifndef MODEL_CPU_ATTENTION_H
#define MODEL_CPU_ATTENTION_H

#include <stddef.h>
#include <stdint.h>

#include "model/vector/vector.h"

struct attention_shape {
	uint32_t batch, sequence; /* number of sequences B, and length T of each */
	uint32_t heads, kv_heads; /* numbers of query heads H and of key/value heads K */
	uint32_t head_size;       /* size D of a head, in floats */
};

/* Returns the floats of scratch memory that one thread needs. */
size_t attention_scratch(const struct attention_shape *s);
/* Returns the number of independent pieces of work (items): one for each sequence and key/value
 * head. */
size_t attention_items(const struct attention_shape *s);

/* qkv (B, T, (H + 2K) D): queries, keys, values, rotated. Writes out (B, T, H D) and
 * lse (B, H, T) of items [from, to). */
void attention_forward(const struct vector_ops *v, const struct attention_shape *s,
		       const float *qkv, float *out, float *lse, size_t from, size_t to,
		       float *scratch);
/* Writes dqkv (like qkv) of items [from, to) from dout (like out). */
void attention_backward(const struct vector_ops *v, const struct attention_shape *s,
			const float *qkv, const float *out, const float *lse, const float *dout,
			float *dqkv, size_t from, size_t to, float *scratch);

#endif
