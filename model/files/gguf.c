/* Writes a model for llama.cpp. */
#include "model/files/gguf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* A file has four parts: magic, version and counts; keys and values; a description of each tensor
 * with its place in the data; the data, with each tensor at a multiple of 32 bytes. Numbers are
 * little-endian. A string follows its length. */
enum { VERSION = 3, ALIGNMENT = 32, BYTES = 256 };

enum value { UINT32 = 4, INT32 = 5, FLOAT32 = 6, BOOL = 7, STRING = 8, ARRAY = 9 };

enum token_type { TOKEN_NORMAL = 1, TOKEN_BYTE = 6 };

struct writer {
	FILE *out;
	uint64_t written;
	int failed; /* errno of the first failure */
};

static void write_bytes(struct writer *w, const void *data, size_t size)
{
	if (!w->failed && fwrite(data, 1, size, w->out) != size)
		w->failed = errno ? errno : EIO;
	w->written += size;
}

static void put_number(struct writer *w, uint64_t v, size_t size)
{
	unsigned char bytes[8];

	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(v >> (8 * i));
	write_bytes(w, bytes, size);
}

static void put_float(struct writer *w, float v)
{
	uint32_t bits;

	memcpy(&bits, &v, sizeof(bits));
	put_number(w, bits, 4);
}

static void put_text(struct writer *w, const char *text)
{
	put_number(w, strlen(text), 8);
	write_bytes(w, text, strlen(text));
}

static void put_key(struct writer *w, const char *key, enum value type)
{
	put_text(w, key);
	put_number(w, type, 4);
}

static void align_file(struct writer *w)
{
	static const char zeros[ALIGNMENT];

	write_bytes(w, zeros, (ALIGNMENT - w->written % ALIGNMENT) % ALIGNMENT);
}

/* ---- keys and values ---- */

static void key_number(struct writer *w, const char *key, uint32_t v)
{
	put_key(w, key, UINT32);
	put_number(w, v, 4);
}

static void key_float(struct writer *w, const char *key, float v)
{
	put_key(w, key, FLOAT32);
	put_float(w, v);
}

static void key_text(struct writer *w, const char *key, const char *v)
{
	put_key(w, key, STRING);
	put_text(w, v);
}

static void key_bool(struct writer *w, const char *key, bool v)
{
	put_key(w, key, BOOL);
	put_number(w, v, 1);
}

static void key_array(struct writer *w, const char *key, enum value of, uint64_t n)
{
	put_key(w, key, ARRAY);
	put_number(w, of, 4);
	put_number(w, n, 8);
}

/* Makes every byte a token. llama.cpp uses byte tokens for text that no other token matches. It
 * first replaces spaces by U+2581, so only the space needs a token under that name. */
static void put_tokenizer(struct writer *w)
{
	key_text(w, "tokenizer.ggml.model", "llama");
	key_array(w, "tokenizer.ggml.tokens", STRING, BYTES);
	for (unsigned i = 0; i < BYTES; i++) {
		char name[8];

		snprintf(name, sizeof(name), "<0x%02X>", i);
		put_text(w, i == ' ' ? "\xe2\x96\x81" : name);
	}
	key_array(w, "tokenizer.ggml.scores", FLOAT32, BYTES);
	for (unsigned i = 0; i < BYTES; i++)
		put_float(w, 0);
	key_array(w, "tokenizer.ggml.token_type", INT32, BYTES);
	for (unsigned i = 0; i < BYTES; i++)
		put_number(w, i == ' ' ? TOKEN_NORMAL : TOKEN_BYTE, 4);
	key_number(w, "tokenizer.ggml.bos_token_id", 0);
	key_number(w, "tokenizer.ggml.eos_token_id", 0);
	key_bool(w, "tokenizer.ggml.add_bos_token", false);
	key_bool(w, "tokenizer.ggml.add_eos_token", false);
	key_bool(w, "tokenizer.ggml.add_space_prefix", false);
}

enum { KEYS = 24, LINEAR_KEYS = 2 };

/* Writes the RoPE scaling: a pair of keys if it is linear, otherwise a tensor. */
static bool is_linear(const struct model_config *c)
{
	return c->rope_factor != 0 && c->rope_high_freq_factor == 0;
}

static bool has_frequencies(const struct model_config *c)
{
	return c->rope_high_freq_factor != 0;
}

static void put_keys(struct writer *w, const struct model_config *c)
{
	key_text(w, "general.architecture", "llama");
	key_text(w, "general.name", "skippipe");
	key_number(w, "general.file_type", 0); /* all F32 */
	key_number(w, "general.alignment", ALIGNMENT);
	key_number(w, "general.quantization_version", 2);
	key_number(w, "llama.vocab_size", c->vocab);
	key_number(w, "llama.context_length", c->context);
	key_number(w, "llama.embedding_length", c->dim);
	key_number(w, "llama.block_count", c->n_layers);
	key_number(w, "llama.feed_forward_length", c->ffn_dim);
	key_number(w, "llama.attention.head_count", c->n_heads);
	key_number(w, "llama.attention.head_count_kv", c->n_kv_heads);
	key_float(w, "llama.attention.layer_norm_rms_epsilon", c->norm_eps);
	key_number(w, "llama.rope.dimension_count", model_head_size(c));
	key_float(w, "llama.rope.freq_base", c->rope_theta);
	if (is_linear(c)) {
		key_text(w, "llama.rope.scaling.type", "linear");
		key_float(w, "llama.rope.scaling.factor", c->rope_factor);
	}
	put_tokenizer(w);
}

/* ---- tensors ---- */

static void tensor_name(const struct tensor *t, char name[64])
{
	static const char *const names[] = {
		[TENSOR_EMBED] = "token_embd",
		[TENSOR_NORM1] = "attn_norm",
		[TENSOR_Q] = "attn_q",
		[TENSOR_K] = "attn_k",
		[TENSOR_V] = "attn_v",
		[TENSOR_O] = "attn_output",
		[TENSOR_NORM2] = "ffn_norm",
		[TENSOR_GATE] = "ffn_gate",
		[TENSOR_UP] = "ffn_up",
		[TENSOR_DOWN] = "ffn_down",
		[TENSOR_LAST_NORM] = "output_norm",
		[TENSOR_HEAD] = "output",
	};
	bool of_layer = t->role != TENSOR_EMBED && t->role != TENSOR_LAST_NORM &&
			t->role != TENSOR_HEAD;

	if (of_layer)
		snprintf(name, 64, "blk.%" PRIu32 ".%s.weight", t->layer, names[t->role]);
	else
		snprintf(name, 64, "%s.weight", names[t->role]);
}

static uint64_t aligned_size(uint64_t size)
{
	return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Writes the dimensions in GGUF's order: columns first. */
static void describe(struct writer *w, const char *name, uint32_t dims, uint64_t rows,
		     uint64_t cols, uint64_t *offset)
{
	put_text(w, name);
	put_number(w, dims, 4);
	if (dims == 2)
		put_number(w, cols, 8);
	put_number(w, rows, 8);
	put_number(w, 0, 4); /* F32 */
	put_number(w, *offset, 8);
	*offset += aligned_size(rows * cols * sizeof(float));
}

static void put_description(struct writer *w, const struct tensor *t, uint64_t *offset)
{
	char name[64];

	tensor_name(t, name);
	describe(w, name, t->dims, t->rows, t->cols, offset);
}

/* llama.cpp divides the plain frequencies by these numbers. */
static void put_frequencies(struct writer *w, const struct model_config *c)
{
	for (size_t i = 0; i < model_head_size(c) / 2; i++)
		put_float(w, (float)(model_plain_frequency(c, i) / model_frequency(c, i)));
	align_file(w);
}

/* llama.cpp rotates neighbours (2i, 2i + 1), not halves (i, i + d/2): the rows of q and k
 * change places within each head. */
static void put_data(struct writer *w, const struct model_config *c, const struct tensor *t,
		     const float *from)
{
	uint32_t d = model_head_size(c);

	if (t->role != TENSOR_Q && t->role != TENSOR_K) {
		write_bytes(w, from, t->count * sizeof(*from));
	} else {
		for (uint32_t r = 0; r < t->rows; r++) {
			uint32_t head = r / d, i = r % d / 2, half = r % 2;

			write_bytes(w, from + (size_t)(head * d + half * (d / 2) + i) * t->cols,
				    t->cols * sizeof(*from));
		}
	}
	align_file(w);
}

/* Writes the parts of the file in their order: header, keys, descriptions of the tensors, their
 * data. */
static void put_model(struct writer *w, struct stage *const *stages)
{
	const struct model_config *c = stage_config(stages[0]);
	uint64_t tensors = 0, offset = 0;
	size_t n;

	for (uint32_t s = 0; s < c->n_stages; s++) {
		stage_tensors(stages[s], &n);
		tensors += n;
	}
	write_bytes(w, "GGUF", 4);
	put_number(w, VERSION, 4);
	put_number(w, tensors + has_frequencies(c), 8);
	put_number(w, KEYS + (is_linear(c) ? LINEAR_KEYS : 0), 8);
	put_keys(w, c);
	for (uint32_t s = 0; s < c->n_stages; s++) {
		const struct tensor *t = stage_tensors(stages[s], &n);

		for (size_t i = 0; i < n; i++)
			put_description(w, &t[i], &offset);
	}
	if (has_frequencies(c))
		describe(w, "rope_freqs.weight", 1, model_head_size(c) / 2, 1, &offset);
	align_file(w);
	for (uint32_t s = 0; s < c->n_stages; s++) {
		const struct tensor *t = stage_tensors(stages[s], &n);
		const float *weights = stage_weights(stages[s]);

		for (size_t i = 0; i < n; i++)
			put_data(w, c, &t[i], weights + t[i].offset);
	}
	if (has_frequencies(c))
		put_frequencies(w, c);
}

int gguf_export(const char *path, struct stage *const *stages, struct error *err)
{
	const struct model_config *c = stage_config(stages[0]);
	struct writer w = { .written = 0 };
	struct file_aside a;
	int rc;

	if (c->vocab != BYTES)
		return error_set(err, -EINVAL,
				 "vocab is %" PRIu32
				 ": only byte-level models (256) go to GGUF",
				 c->vocab);
	rc = file_aside_open(&a, path, FILE_RESULT, err);
	if (rc)
		return rc;
	w.out = fdopen(dup(a.fd), "wb");
	if (!w.out)
		return file_aside_close(
			&a, error_set(err, -errno, "%s: %s", path, strerror(errno)), err);
	put_model(&w, stages);
	if (fclose(w.out) && !w.failed)
		w.failed = errno;
	if (w.failed)
		rc = error_set(err, -w.failed, "%s: %s", path, strerror(w.failed));
	return file_aside_close(&a, rc, err);
}
