/* Reads config.json of a LLaMA. A key that this model doesn't know may change the arithmetic, and
 * would silently give other numbers. Therefore every key is read here, or is in the table of keys
 * that change nothing, or is refused. */
#include "model/files/huggingface.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/json.h"
#include "model/config_fields.h"

enum { PATH = 4096, CONFIG_MOST = 16 << 20, SHOWN = 48 /* limit of the bytes of a value that a
	 * message shows */ };

struct reader {
	const char *path;
	json_t *root;
	struct model_config *config;
	struct error *err;
	int rc; /* error code of the first failure */
};

/* Refuses a key of an object because of its value. in: name of the object in the file, such as
 * "rope_scaling.", or "". */
static void refuse(struct reader *r, const char *in, const char *key, const json_t *value,
		   const char *expected)
{
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9));

	if (!r->rc)
		r->rc = error_set(r->err, -EINVAL, "%s: %s%s is %.*s%s, expected %s", r->path, in,
				  key, SHOWN, value && text ? text : "missing",
				  text && strlen(text) > SHOWN ? "..." : "", expected);
	free(text);
}

static void refuse_root(struct reader *r, const char *key, const char *expected)
{
	refuse(r, "", key, json_object_get(r->root, key), expected);
}

static bool is_one(const json_t *value)
{
	return json_is_number(value) && json_number_value(value) == 1;
}

static bool is_text(const json_t *value, const char *text)
{
	return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

/* ---- numbers, which must be within the limits of the field of model_config ---- */

static const struct field *field_at(size_t offset)
{
	size_t i = 0;

	while (model_fields.of[i].offset != offset)
		i++;
	return &model_fields.of[i];
}

static void take_number(struct reader *r, const char *in, const json_t *object, const char *key,
			size_t offset)
{
	const struct field *f = field_at(offset);
	const json_t *value = json_object_get(object, key);
	double v = json_number_value(value), low = f->optional ? 1e-6 : f->low;
	bool whole = f->kind == KIND_U32;
	void *at = (char *)r->config + offset;
	char expected[80];

	snprintf(expected, sizeof(expected), "a %s from %.9g to %.9g",
		 whole ? "whole number" : "number", whole ? ceil(low) : low, f->high);
	if ((whole ? !json_is_integer(value) : !json_is_number(value)) || !(v >= low) ||
	    !(v <= f->high))
		refuse(r, in, key, value, expected);
	else if (whole)
		*(uint32_t *)at = (uint32_t)v;
	else
		*(float *)at = (float)v;
}

/* Returns true if the key is present; a missing key has the library's default. null_is_none: null
 * counts as missing, because the library itself writes null for this key. */
static bool has_key(struct reader *r, const char *key, bool null_is_none)
{
	const json_t *value = json_object_get(r->root, key);

	return value && !(null_is_none && json_is_null(value));
}

#define AT(member) offsetof(struct model_config, member)

static void read_shape(struct reader *r)
{
	struct model_config *c = r->config;
	uint32_t head;

	take_number(r, "", r->root, "vocab_size", AT(vocab));
	take_number(r, "", r->root, "hidden_size", AT(dim));
	take_number(r, "", r->root, "intermediate_size", AT(ffn_dim));
	take_number(r, "", r->root, "num_hidden_layers", AT(n_layers));
	take_number(r, "", r->root, "num_attention_heads", AT(n_heads));
	c->n_kv_heads = c->n_heads;
	if (has_key(r, "num_key_value_heads", true))
		take_number(r, "", r->root, "num_key_value_heads", AT(n_kv_heads));
	if (has_key(r, "max_position_embeddings", false))
		take_number(r, "", r->root, "max_position_embeddings", AT(context));
	if (has_key(r, "rms_norm_eps", false))
		take_number(r, "", r->root, "rms_norm_eps", AT(norm_eps));
	if (r->rc)
		return;
	if (c->dim % c->n_heads)
		refuse_root(r, "hidden_size", "a multiple of num_attention_heads");
	if (c->n_heads % c->n_kv_heads)
		refuse_root(r, "num_key_value_heads", "a divisor of num_attention_heads");
	head = c->dim / c->n_heads;
	if (head % 2)
		refuse_root(r, "num_attention_heads", "an even hidden_size / num_attention_heads");
	if (has_key(r, "head_dim", true) &&
	    !(json_is_integer(json_object_get(r->root, "head_dim")) &&
	      json_integer_value(json_object_get(r->root, "head_dim")) == head))
		refuse_root(r, "head_dim", "hidden_size / num_attention_heads");
}

/* ---- rotary positions ----
 * Files have rotary positions in one of two forms: rope_theta beside rope_scaling, or both inside
 * rope_parameters, as version 5 of the library writes them. The kind of scaling is in rope_type, or
 * in `type` in old files. */

struct rope {
	const char *in; /* place of the object in messages: "rope_scaling." or "rope_parameters." */
	const json_t *object;
	struct model_config scaling; /* a config of which only the RoPE fields are used */
};

static void take_theta(struct reader *r, const char *in, const json_t *object)
{
	float before = r->config->rope_theta;

	if (!json_object_get(object, "rope_theta"))
		return;
	take_number(r, in, object, "rope_theta", AT(rope_theta));
	if (before != 0 && r->config->rope_theta != before)
		refuse(r, in, "rope_theta", json_object_get(object, "rope_theta"),
		       "the rope_theta that the file has elsewhere");
}

/* Refuses keys that this kind of scaling does not have. */
static void check_rope_keys(struct reader *r, const char *in, json_t *object, bool llama3,
			    bool has_factor)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		bool of_llama3 = strcmp(key, "low_freq_factor") == 0 ||
				 strcmp(key, "high_freq_factor") == 0;
		bool known = strcmp(key, "rope_type") == 0 || strcmp(key, "type") == 0 ||
			     strcmp(key, "rope_theta") == 0 ||
			     strcmp(key, "original_max_position_embeddings") == 0;

		if (known || (of_llama3 && llama3))
			continue;
		if (strcmp(key, "factor") == 0) {
			if (!has_factor && !is_one(value))
				refuse(r, in, key, value, "1 (rope_type is default)");
		} else if (strcmp(key, "partial_rotary_factor") == 0) {
			if (!is_one(value))
				refuse(r, in, key, value, "1");
		} else if (of_llama3) {
			refuse(r, in, key, value, "no such key unless rope_type is llama3");
		} else if (!json_is_null(value)) {
			refuse(r, in, key, value, "no such key: this scaling is not supported");
		}
	}
}

static const char *rope_kind(struct reader *r, const char *in, const json_t *object)
{
	const json_t *now = json_object_get(object, "rope_type"),
		     *old = json_object_get(object, "type"), *value = now ? now : old;
	const char *kind = json_string_value(value);

	if (!value) {
		if (json_object_get(object, "factor"))
			refuse(r, in, "rope_type", NULL, "default, linear or llama3");
		return "default";
	}
	if (now && old && !json_equal(now, old))
		refuse(r, in, "type", old, "the same as rope_type");
	if (!kind || (strcmp(kind, "default") != 0 && strcmp(kind, "linear") != 0 &&
		      strcmp(kind, "llama3") != 0)) {
		refuse(r, in, now ? "rope_type" : "type", value, "default, linear or llama3");
		return "default";
	}
	return kind;
}

/* Reads the context length that the model had before RoPE was scaled. Its key is inside the RoPE
 * object or beside it. Without the key, the library uses the model's context. */
static void take_original_context(struct reader *r, const char *in, const json_t *object)
{
	static const char key[] = "original_max_position_embeddings";
	const json_t *inside = json_object_get(object, key);
	const json_t *beside = json_object_get(r->root, key);

	r->config->rope_original_context = r->config->context;
	if (inside && beside && !json_equal(inside, beside))
		refuse(r, in, key, inside, "the same number beside the object and in it");
	if (inside || beside)
		take_number(r, inside ? in : "", inside ? object : r->root, key,
			    AT(rope_original_context));
}

static void read_scaling(struct reader *r, const char *in, json_t *object)
{
	const char *kind = rope_kind(r, in, object);
	bool llama3 = strcmp(kind, "llama3") == 0, plain = strcmp(kind, "default") == 0;
	struct model_config *c = r->config;

	check_rope_keys(r, in, object, llama3, !plain);
	if (plain || r->rc)
		return;
	take_number(r, in, object, "factor", AT(rope_factor));
	if (!r->rc && c->rope_factor < 1)
		refuse(r, in, "factor", json_object_get(object, "factor"), "1 or more");
	if (llama3) {
		take_number(r, in, object, "low_freq_factor", AT(rope_low_freq_factor));
		take_number(r, in, object, "high_freq_factor", AT(rope_high_freq_factor));
		take_original_context(r, in, object);
		if (!r->rc && c->rope_high_freq_factor <= c->rope_low_freq_factor)
			refuse(r, in, "high_freq_factor",
			       json_object_get(object, "high_freq_factor"),
			       "more than low_freq_factor");
	}
	if (c->rope_factor == 1) {
		c->rope_factor = c->rope_low_freq_factor = c->rope_high_freq_factor = 0;
		c->rope_original_context = 0;
	}
}

static bool same_scaling(const struct model_config *a, const struct model_config *b)
{
	return a->rope_factor == b->rope_factor &&
	       a->rope_low_freq_factor == b->rope_low_freq_factor &&
	       a->rope_high_freq_factor == b->rope_high_freq_factor &&
	       a->rope_original_context == b->rope_original_context;
}

/* Reads the rotary positions in both forms. If a file has both forms, their values must agree. */
static void read_positions(struct reader *r)
{
	static const struct {
		const char *key, *in;
	} spellings[] = { { "rope_scaling", "rope_scaling." },
			  { "rope_parameters", "rope_parameters." } };
	struct model_config before = *r->config;
	bool any = false;

	take_theta(r, "", r->root);
	for (size_t i = 0; i < 2; i++) {
		json_t *object = json_object_get(r->root, spellings[i].key);
		struct model_config first = *r->config;

		if (!object || json_is_null(object))
			continue;
		if (!json_is_object(object)) {
			refuse_root(r, spellings[i].key, "an object or null");
			continue;
		}
		take_theta(r, spellings[i].in, object);
		before.rope_theta = r->config->rope_theta;
		*r->config = before;
		read_scaling(r, spellings[i].in, object);
		if (any && !same_scaling(&first, r->config))
			refuse_root(r, spellings[i].key, "the same scaling as rope_scaling");
		any = true;
	}
	if (r->config->rope_theta == 0)
		r->config->rope_theta = 10000;
}

/* ---- keys whose value must not change the arithmetic ---- */

enum rule {
	READ,   /* another function reads the value of this key */
	ANY,    /* the value has no effect on this program */
	TOKENS, /* the value is null, a token or a list of tokens */
	BOOL,   /* the value is any boolean, because the biases are checked when weights are read */
	NOT,    /* the value must be false or null */
	NONE,   /* the value must be null, or an empty object or array */
	ONE,    /* the value must be 1 */
	SILU,
	MODEL_CLASS,
	ATTENTION_KINDS,
	WINDOW,
};

static const struct known {
	const char *key;
	enum rule rule;
} known[] = {
	{ "vocab_size", READ },
	{ "hidden_size", READ },
	{ "intermediate_size", READ },
	{ "num_hidden_layers", READ },
	{ "num_attention_heads", READ },
	{ "num_key_value_heads", READ },
	{ "head_dim", READ },
	{ "max_position_embeddings", READ },
	{ "rms_norm_eps", READ },
	{ "rope_theta", READ },
	{ "rope_scaling", READ },
	{ "rope_parameters", READ },
	{ "original_max_position_embeddings", READ },
	{ "tie_word_embeddings", BOOL },
	{ "attention_bias", BOOL },
	{ "mlp_bias", BOOL },
	{ "model_type", READ },
	{ "architectures", MODEL_CLASS },
	{ "hidden_act", SILU },
	{ "partial_rotary_factor", ONE },
	{ "sliding_window", WINDOW },
	{ "use_sliding_window", NOT },
	{ "layer_types", ATTENTION_KINDS },
	{ "quantization_config", NONE },
	{ "compression_config", NONE },
	{ "auto_map", NONE },
	{ "pruned_heads", NONE },
	{ "rope_interleaved", NOT },
	{ "is_encoder_decoder", NOT },
	{ "add_cross_attention", NOT },
	{ "tie_encoder_decoder", NOT },
	{ "bos_token_id", TOKENS },
	{ "eos_token_id", TOKENS },
	{ "pad_token_id", TOKENS },
	{ "sep_token_id", TOKENS },
	{ "decoder_start_token_id", TOKENS },
	/* Keys that concern training, precision and speed in other programs. */
	{ "attention_dropout", ANY },
	{ "initializer_range", ANY },
	{ "pretraining_tp", ANY },
	{ "torch_dtype", ANY },
	{ "dtype", ANY },
	{ "use_cache", ANY },
	{ "use_bfloat16", ANY },
	{ "gradient_checkpointing", ANY },
	{ "_attn_implementation", ANY },
	{ "attn_implementation", ANY },
	{ "_attn_implementation_autoset", ANY },
	{ "_flash_attn_2_enabled", ANY },
	{ "chunk_size_feed_forward", ANY },
	{ "torchscript", ANY },
	{ "tf_legacy_loss", ANY },
	{ "max_window_layers", ANY },
	/* Keys that only describe the model. */
	{ "_name_or_path", ANY },
	{ "name_or_path", ANY },
	{ "_commit_hash", ANY },
	{ "transformers_version", ANY },
	{ "unsloth_version", ANY },
	{ "unsloth_fixed", ANY },
	{ "finetuning_task", ANY },
	{ "task_specific_params", ANY },
	{ "problem_type", ANY },
	{ "id2label", ANY },
	{ "label2id", ANY },
	{ "num_labels", ANY },
	{ "tokenizer_class", ANY },
	{ "prefix", ANY },
	{ "is_decoder", ANY },
	{ "return_dict", ANY },
	{ "output_attentions", ANY },
	{ "output_hidden_states", ANY },
	{ "output_scores", ANY },
	{ "return_dict_in_generate", ANY },
	{ "model_max_length", ANY },
	{ "max_sequence_length", ANY },
	{ "is_llama_config", ANY },
	{ "transformers.js_config", ANY },
	/* Keys of text generation, which old versions of the library write to this file. */
	{ "bad_words_ids", ANY },
	{ "begin_suppress_tokens", ANY },
	{ "cross_attention_hidden_size", ANY },
	{ "diversity_penalty", ANY },
	{ "do_sample", ANY },
	{ "early_stopping", ANY },
	{ "encoder_no_repeat_ngram_size", ANY },
	{ "exponential_decay_length_penalty", ANY },
	{ "forced_bos_token_id", ANY },
	{ "forced_eos_token_id", ANY },
	{ "length_penalty", ANY },
	{ "max_length", ANY },
	{ "max_new_tokens", ANY },
	{ "min_length", ANY },
	{ "no_repeat_ngram_size", ANY },
	{ "num_beam_groups", ANY },
	{ "num_beams", ANY },
	{ "num_return_sequences", ANY },
	{ "remove_invalid_values", ANY },
	{ "repetition_penalty", ANY },
	{ "suppress_tokens", ANY },
	{ "temperature", ANY },
	{ "top_k", ANY },
	{ "top_p", ANY },
	{ "typical_p", ANY },
};

/* Returns true if the value is an array, and `of` is true for every element. */
static bool is_array_of(const json_t *value, bool (*of)(const json_t *))
{
	for (size_t i = 0; i < json_array_size(value); i++)
		if (!of(json_array_get(value, i)))
			return false;
	return json_is_array(value) && json_array_size(value) > 0;
}

static bool is_whole(const json_t *value)
{
	return json_is_integer(value);
}

static bool is_full_attention(const json_t *value)
{
	return is_text(value, "full_attention");
}

static bool is_llama_class(const json_t *value)
{
	return is_text(value, "LlamaForCausalLM") || is_text(value, "LLaMAForCausalLM");
}

/* A sliding window at least as long as the context changes nothing. */
static bool is_no_window(const struct reader *r, const json_t *value)
{
	return json_is_null(value) ||
	       json_is_false(json_object_get(r->root, "use_sliding_window")) ||
	       (json_is_integer(value) && json_integer_value(value) >= r->config->context);
}

/* Refuses a known key's value if it asks for arithmetic that this model does not have. */
static void check_value(struct reader *r, const struct known *k, const json_t *value)
{
	bool ok = true;
	const char *expected = "";

	switch (k->rule) {
	case READ:
	case ANY:
		return;
	case TOKENS:
		ok = json_is_null(value) || is_whole(value) || is_array_of(value, is_whole);
		expected = "a token's number, several, or null";
		break;
	case BOOL:
		ok = json_is_boolean(value);
		expected = "true or false";
		break;
	case NOT:
		ok = json_is_false(value) || json_is_null(value);
		expected = "false: the model has no such part";
		break;
	case NONE:
		ok = json_is_null(value) || (json_is_object(value) && !json_object_size(value)) ||
		     (json_is_array(value) && !json_array_size(value));
		expected = "null: only plain weights (F32, F16, BF16) of the library's own "
			   "LlamaForCausalLM are read";
		break;
	case ONE:
		ok = is_one(value);
		expected = "1";
		break;
	case SILU:
		ok = is_text(value, "silu") || is_text(value, "swish");
		expected = "\"silu\"";
		break;
	case MODEL_CLASS:
		ok = json_is_null(value) || is_array_of(value, is_llama_class);
		expected = "[\"LlamaForCausalLM\"]";
		break;
	case ATTENTION_KINDS:
		ok = json_is_null(value) || is_array_of(value, is_full_attention);
		expected = "\"full_attention\" for every layer";
		break;
	case WINDOW:
		ok = is_no_window(r, value);
		expected = "null, or at least max_position_embeddings";
		break;
	}
	if (!ok)
		refuse(r, "", k->key, value, expected);
}

static void check_keys(struct reader *r)
{
	const char *key;
	json_t *value;

	json_object_foreach(r->root, key, value)
	{
		size_t i = 0;

		while (i < sizeof(known) / sizeof(known[0]) && strcmp(known[i].key, key) != 0)
			i++;
		if (i < sizeof(known) / sizeof(known[0]))
			check_value(r, &known[i], value);
		else if (!json_is_null(value))
			refuse(r, "", key, value,
			       "no such key: it may change the arithmetic; remove it if it does "
			       "not");
	}
}

int huggingface_read_config(const char *folder, struct model_config *c, struct error *err)
{
	char path[PATH];
	struct model_config read = {
		.n_stages = 1, .init_std = 0.02f, .context = 2048, .norm_eps = 1e-6f
	};
	struct reader r = { .path = path, .config = &read, .err = err };
	json_t *root;
	int rc;

	snprintf(path, sizeof(path), "%s/config.json", folder);
	rc = json_read_object(path, CONFIG_MOST, &root, err);
	if (rc)
		return rc;
	r.root = root;
	/* The model's type is checked first, because a model of another type also lacks keys of a
	 * LLaMA. */
	if (!is_text(json_object_get(root, "model_type"), "llama"))
		refuse_root(&r, "model_type", "\"llama\"");
	read_shape(&r);
	if (!r.rc)
		read_positions(&r);
	check_keys(&r);
	read.tied = json_is_true(json_object_get(root, "tie_word_embeddings"));
	rc = r.rc;
	json_decref(root);
	if (!rc) {
		rc = model_config_check(&read, err);
		if (rc)
			error_prefix(err, rc, "%s", path);
	}
	if (!rc)
		*c = read;
	return rc;
}
