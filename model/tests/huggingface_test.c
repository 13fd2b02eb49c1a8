/* Tests folders in the format of the transformers library that users may have, but that the library
 * itself would not write. tests/parity compares folders that the library writes. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/file.h"
#include "base/tests/test.h"
#include "model/files/huggingface.h"
#include "model/files/json_file.h"
#include "model/tensor.h"
#include "model/trainer.h"

static const char good[] =
	"{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"vocab_size\": 7,"
	" \"hidden_size\": 8, \"intermediate_size\": 6, \"num_hidden_layers\": 2,"
	" \"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"rms_norm_eps\": 1e-5,"
	" \"max_position_embeddings\": 64, \"rope_theta\": 10000.0, \"hidden_act\": \"silu\","
	" \"tie_word_embeddings\": false, \"torch_dtype\": \"float32\"}";

struct fixture {
	char folder[64];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->folder, "/tmp/huggingface_test.XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", f->folder);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

static void put(const struct fixture *f, const char *name, const void *data, size_t size)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", f->folder, name);
	assert_int_equal(file_write(path, data, size, 0644, NULL), 0);
}

static void put_text(const struct fixture *f, const char *name, const char *text)
{
	put(f, name, text, strlen(text));
}

/* Writes the valid configuration with some keys changed. changes: a JSON object. */
static void put_config(const struct fixture *f, const char *changes)
{
	json_t *root = json_loads(good, 0, NULL), *other = json_loads(changes, 0, NULL);
	char path[256];

	if (!other)
		fail_msg("not JSON: %s", changes);
	json_object_update(root, other);
	json_decref(other);
	snprintf(path, sizeof(path), "%s/config.json", f->folder);
	assert_int_equal(json_file_write(path, root, NULL), 0);
}

static void expect_words(const struct error *err, const char *words)
{
	if (!strstr(err->text, words))
		fail_msg("\"%s\" does not say \"%s\"", err->text, words);
}

/* ---- config.json ---- */

static void refuse(const struct fixture *f, const char *changes, const char *words)
{
	struct model_config c = { .dim = 5 };
	struct error err = { "" };

	put_config(f, changes);
	if (huggingface_read_config(f->folder, &c, &err) != -EINVAL)
		fail_msg("%s is accepted", changes);
	expect_words(&err, "config.json: ");
	expect_words(&err, words);
	assert_int_equal(c.dim, 5);
}

static struct model_config accept(const struct fixture *f, const char *changes)
{
	struct model_config c = { .dim = 0 };
	struct error err = { "" };

	put_config(f, changes);
	if (huggingface_read_config(f->folder, &c, &err))
		fail_msg("%s: %s", changes, err.text);
	return c;
}

#define FIXTURE_TEST(name) TEST_WITH(name, setup, teardown)

FIXTURE_TEST(numbers_are_numbers)
{
	const struct fixture *f = *state;

	refuse(f, "{\"hidden_size\": \"8\"}",
	       "hidden_size is \"8\", expected a whole number from 2");
	refuse(f, "{\"hidden_size\": 8.0}", "hidden_size is 8.0, expected a whole number");
	refuse(f, "{\"vocab_size\": null}", "vocab_size is null");
	refuse(f, "{\"vocab_size\": 2097152}", "vocab_size is 2097152");
	refuse(f, "{\"num_hidden_layers\": 0}", "num_hidden_layers is 0");
	refuse(f, "{\"num_hidden_layers\": 4294967298}", "num_hidden_layers is 4294967298");
	refuse(f, "{\"max_position_embeddings\": \"64\"}", "max_position_embeddings is \"64\"");
	refuse(f, "{\"max_position_embeddings\": null}", "max_position_embeddings is null");
	refuse(f, "{\"rms_norm_eps\": \"1e-05\"}", "rms_norm_eps is \"1e-05\", expected a number");
	refuse(f, "{\"rms_norm_eps\": null}", "rms_norm_eps is null");
	refuse(f, "{\"rope_theta\": \"10000\"}", "rope_theta is \"10000\"");
	refuse(f, "{\"rope_theta\": null}", "rope_theta is null");
	refuse(f, "{\"tie_word_embeddings\": \"true\"}", "tie_word_embeddings is \"true\"");
	refuse(f, "{\"tie_word_embeddings\": 1}", "tie_word_embeddings is 1");
	refuse(f, "{\"attention_bias\": \"false\"}", "attention_bias is \"false\"");
	refuse(f, "{\"mlp_bias\": 0}", "mlp_bias is 0");
	refuse(f, "{\"bos_token_id\": \"1\"}", "bos_token_id is \"1\"");
	refuse(f, "{\"eos_token_id\": [1, \"2\"]}", "eos_token_id is [1,\"2\"]");
	assert_true(accept(f, "{\"rope_theta\": 500000}").rope_theta == 500000);
	accept(f, "{\"eos_token_id\": [1, 2], \"pad_token_id\": -1, \"bos_token_id\": null}");
}

FIXTURE_TEST(shapes_that_do_not_fit_are_refused)
{
	const struct fixture *f = *state;

	refuse(f, "{\"num_attention_heads\": 3}", "hidden_size is 8, expected a multiple");
	refuse(f, "{\"num_attention_heads\": 8}", "even hidden_size / num_attention_heads");
	refuse(f, "{\"num_key_value_heads\": 3}", "num_key_value_heads is 3, expected a divisor");
	refuse(f, "{\"head_dim\": 8}", "head_dim is 8, expected hidden_size / num_attention_heads");
	refuse(f, "{\"head_dim\": \"4\"}", "head_dim is \"4\"");
	assert_int_equal(accept(f, "{\"head_dim\": 4}").n_kv_heads, 1);
	assert_int_equal(accept(f, "{\"head_dim\": null}").n_kv_heads, 1);
	assert_int_equal(accept(f, "{\"num_key_value_heads\": null}").n_kv_heads, 2);
}

FIXTURE_TEST(other_arithmetic_is_refused)
{
	const struct fixture *f = *state;

	refuse(f, "{\"model_type\": \"gpt2\"}", "model_type is \"gpt2\"");
	refuse(f, "{\"architectures\": [\"LlamaForSequenceClassification\"]}", "architectures is");
	refuse(f, "{\"architectures\": \"LlamaForCausalLM\"}", "architectures is");
	refuse(f, "{\"hidden_act\": \"gelu\"}", "hidden_act is \"gelu\"");
	refuse(f, "{\"quantization_config\": {\"quant_method\": \"fp8\"}}",
	       "quantization_config is");
	refuse(f, "{\"compression_config\": {\"format\": \"pack\"}}", "compression_config is");
	refuse(f, "{\"auto_map\": {\"AutoModel\": \"m.M\"}}", "auto_map is");
	refuse(f, "{\"sliding_window\": 32}", "sliding_window is 32");
	refuse(f, "{\"use_sliding_window\": true}", "use_sliding_window is true");
	refuse(f, "{\"layer_types\": [\"full_attention\", \"sliding_attention\"]}",
	       "layer_types is");
	refuse(f, "{\"partial_rotary_factor\": 0.5}", "partial_rotary_factor is 0.5");
	refuse(f, "{\"rope_interleaved\": true}", "rope_interleaved is true");
	refuse(f, "{\"pruned_heads\": {\"0\": [1]}}", "pruned_heads is");
	refuse(f, "{\"logit_scale\": 0.5}", "logit_scale is 0.5, expected no such key");
	refuse(f, "{\"num_local_experts\": 8}", "num_local_experts is 8");
	refuse(f, "{\"rope_thetta\": 1000000.0}", "rope_thetta is 1000000.0");
	accept(f, "{\"sliding_window\": 64, \"quantization_config\": null, \"pruned_heads\": {},"
		  " \"layer_types\": [\"full_attention\"], \"hidden_act\": \"swish\","
		  " \"attention_bias\": true, \"some_new_key\": null, \"use_cache\": true,"
		  " \"sliding_window\": 4096, \"attention_dropout\": 0.1}");
	accept(f, "{\"sliding_window\": 32, \"use_sliding_window\": false}");
}

FIXTURE_TEST(bad_files_are_refused)
{
	static const struct {
		const char *text, *words;
	} bad[] = {
		{ "[]", "expected a JSON object" },
		{ "", "is empty" },
		{ "{\"vocab_size\": 7, \"vocab_size\": 8}", "duplicate" },
		{ "{\"rms_norm_eps\": NaN}", "line 1" },
		{ "{\"vocab_size\": 99999999999999999999}", "too big" },
		{ "{\"model_type\": \"llama\"}", "vocab_size is missing" },
		{ "{}", "model_type is missing" },
	};
	const struct fixture *f = *state;
	struct model_config c;
	struct error err;
	char marked[sizeof(good) + 3];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put_text(f, "config.json", bad[i].text);
		assert_int_equal(huggingface_read_config(f->folder, &c, &err), -EINVAL);
		expect_words(&err, "config.json: ");
		expect_words(&err, bad[i].words);
	}
	snprintf(marked, sizeof(marked), "\xef\xbb\xbf%s", good);
	put_text(f, "config.json", marked);
	assert_int_equal(huggingface_read_config(f->folder, &c, &err), 0);
}

#define LLAMA3 "\"factor\": 8, \"low_freq_factor\": 1, \"high_freq_factor\": 4"

FIXTURE_TEST(scaling_is_read_in_every_spelling)
{
	static const char *const llama3[] = {
		"{\"rope_scaling\": {\"rope_type\": \"llama3\", " LLAMA3
		", \"original_max_position_embeddings\": 32}}",
		"{\"rope_scaling\": {\"type\": \"llama3\", " LLAMA3
		"}, \"original_max_position_embeddings\": 32}",
		"{\"rope_scaling\": {\"type\": \"llama3\", \"rope_type\": \"llama3\", " LLAMA3
		"}, \"max_position_embeddings\": 32}",
		"{\"rope_parameters\": {\"rope_type\": \"llama3\", \"rope_theta\": 10000, " LLAMA3
		", \"original_max_position_embeddings\": 32}}",
	};
	static const char *const plain[] = {
		"{\"rope_scaling\": null}",
		"{\"rope_scaling\": {}}",
		"{\"rope_scaling\": {\"rope_type\": \"default\"}}",
		"{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 1}}",
		"{\"rope_scaling\": {\"type\": \"default\", \"factor\": 1.0}}",
		("{\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 1.0,"
		 " \"low_freq_factor\": 1, \"high_freq_factor\": 4}}"),
		"{\"rope_parameters\": {\"rope_theta\": 10000.0, \"rope_type\": \"default\"}}",
		"{\"rope_parameters\": {\"rope_theta\": 10000.0, \"partial_rotary_factor\": 1}}",
	};
	const struct fixture *f = *state;
	struct model_config c;

	for (size_t i = 0; i < sizeof(llama3) / sizeof(llama3[0]); i++) {
		c = accept(f, llama3[i]);
		assert_true(c.rope_factor == 8 && c.rope_low_freq_factor == 1 &&
			    c.rope_high_freq_factor == 4 && c.rope_original_context == 32);
		assert_true(c.rope_theta == 10000);
	}
	c = accept(f, "{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.5}}");
	assert_true(c.rope_factor == 2.5f && c.rope_high_freq_factor == 0);
	assert_int_equal(c.rope_original_context, 0);
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		c = accept(f, plain[i]);
		assert_true(c.rope_factor == 0 && c.rope_original_context == 0);
	}
	put_text(f, "config.json",
		 "{\"model_type\": \"llama\", \"vocab_size\": 7, \"hidden_size\": 8,"
		 " \"intermediate_size\": 6, \"num_hidden_layers\": 2, \"num_attention_heads\": 2,"
		 " \"rope_parameters\": {\"rope_theta\": 500000.0, \"rope_type\": \"default\"}}");
	assert_int_equal(huggingface_read_config(f->folder, &c, NULL), 0);
	assert_true(c.rope_theta == 500000);
}

FIXTURE_TEST(other_scaling_is_refused)
{
	static const struct {
		const char *scaling, *words;
	} bad[] = {
		{ "{\"type\": \"yarn\", \"factor\": 4}", "type is \"yarn\"" },
		{ "{\"rope_type\": \"dynamic\", \"factor\": 2}", "rope_type is \"dynamic\"" },
		{ "{\"rope_type\": \"longrope\"}", "rope_type is \"longrope\"" },
		{ "{\"rope_type\": 3}", "rope_type is 3" },
		{ "{\"rope_type\": null, \"factor\": 2}", "rope_type is null" },
		{ "{\"factor\": 2}", "rope_type is missing" },
		{ "{\"type\": \"linear\", \"rope_type\": \"llama3\", \"factor\": 2}",
		  "type is \"linear\", expected the same as rope_type" },
		{ "{\"type\": \"linear\"}", "factor is missing" },
		{ "{\"type\": \"linear\", \"factor\": \"2\"}", "factor is \"2\"" },
		{ "{\"type\": \"linear\", \"factor\": 0.5}", "factor is 0.5" },
		{ "{\"type\": \"linear\", \"factor\": 0}", "factor is 0" },
		{ "{\"type\": \"default\", \"factor\": 2}", "factor is 2, expected 1" },
		{ "{\"type\": \"linear\", \"factor\": 2, \"low_freq_factor\": 1}",
		  "low_freq_factor is 1" },
		{ "{\"type\": \"llama3\", \"factor\": 2}", "low_freq_factor is missing" },
		{ "{\"type\": \"llama3\", \"factor\": 2, \"low_freq_factor\": 4,"
		  " \"high_freq_factor\": 4}",
		  "high_freq_factor is 4, expected more" },
		{ "{\"type\": \"llama3\", " LLAMA3 ", \"attention_factor\": 1.2}",
		  "attention_factor is 1.2" },
		{ "{\"full_attention\": {\"rope_type\": \"default\"}}", "full_attention is" },
		{ "{\"rope_type\": \"default\", \"partial_rotary_factor\": 0.25}",
		  "partial_rotary_factor is 0.25" },
		{ "{\"rope_type\": \"default\", \"rope_theta\": 500000}", "rope_theta is 500000" },
		{ "\"linear\"", "is \"linear\", expected an object" },
	};
	const struct fixture *f = *state;
	char changes[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(changes, sizeof(changes), "{\"rope_scaling\": %s}", bad[i].scaling);
		refuse(f, changes, bad[i].words);
		snprintf(changes, sizeof(changes), "{\"rope_parameters\": %s}", bad[i].scaling);
		refuse(f, changes, bad[i].words);
	}
	refuse(f,
	       "{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2},"
	       " \"rope_parameters\": {\"rope_type\": \"default\"}}",
	       "rope_parameters is");
	refuse(f,
	       "{\"rope_scaling\": {\"type\": \"llama3\", " LLAMA3
	       ", \"original_max_position_embeddings\": 32},"
	       " \"original_max_position_embeddings\": 16}",
	       "original_max_position_embeddings is 32");
}

/* ---- weights ---- */

/* A tensor that the model lacks: its entry in the header, and its bytes. */
struct extra {
	const char *name, *dtype, *shape;
	size_t bytes;
	unsigned char byte;
};

/* Writes a file with the tensors [from, to) of the model's table, all with the same value, and then
 * with further tensors.
 */
static void put_weights(const struct fixture *f, const char *file, size_t from, size_t to,
			float value, const struct extra *extra, size_t n)
{
	static char header[8192], data[1 << 16], bytes[1 << 17];
	struct tensor_table t;
	struct model_config c;
	size_t size = 0, at = 0;

	assert_int_equal(huggingface_read_config(f->folder, &c, NULL), 0);
	assert_int_equal(tensor_table_new(&t, &c, NULL), 0);
	header[at++] = '{';
	for (size_t i = from; i < t.n && i < to; i++) {
		const struct tensor *one = &t.tensors[i];
		size_t begin = size;

		for (size_t k = 0; k < one->count; k++, size += 4)
			memcpy(data + size, &value, 4);
		at += (size_t)sprintf(header + at,
				      "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%" PRIu32,
				      at > 1 ? "," : "", one->name, one->rows);
		if (one->dims == 2)
			at += (size_t)sprintf(header + at, ",%" PRIu32, one->cols);
		at += (size_t)sprintf(header + at, "],\"data_offsets\":[%zu,%zu]}", begin, size);
	}
	for (size_t i = 0; i < n; i++) {
		memset(data + size, extra[i].byte, extra[i].bytes);
		at += (size_t)sprintf(
			header + at,
			"%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
			at > 1 ? "," : "", extra[i].name, extra[i].dtype, extra[i].shape, size,
			size + extra[i].bytes);
		size += extra[i].bytes;
	}
	header[at++] = '}';
	memset(bytes, 0, 8);
	bytes[0] = (char)(at & 255);
	bytes[1] = (char)(at >> 8);
	memcpy(bytes + 8, header, at);
	memcpy(bytes + 8 + at, data, size);
	put(f, file, bytes, 8 + at + size);
	tensor_table_free(&t);
}

enum { ALL = 1000, SPLIT = 5 };

static void put_index(const struct fixture *f, size_t split, const char *first, const char *second)
{
	struct tensor_table t;
	struct model_config c;
	json_t *map = json_object();
	char path[256];

	assert_int_equal(huggingface_read_config(f->folder, &c, NULL), 0);
	assert_int_equal(tensor_table_new(&t, &c, NULL), 0);
	for (size_t i = 0; i < t.n; i++)
		json_object_set_new(map, t.tensors[i].name,
				    json_string(i < split ? first : second));
	snprintf(path, sizeof(path), "%s/model.safetensors.index.json", f->folder);
	assert_int_equal(json_file_write(path, json_pack("{s:o}", "weight_map", map), NULL), 0);
	tensor_table_free(&t);
}

/* Reads the folder. On success returns 0 if every weight is `value`. */
static int read_folder(const struct fixture *f, float value, struct error *err)
{
	struct stage_options o = { .batch = 1, .sequence = 1, .threads = 1 };
	struct trainer *t;
	struct model_config c;
	struct hyperparameters r;
	uint64_t before;
	int rc;

	model_preset("tiny", NULL, &r, NULL);
	assert_int_equal(huggingface_read_config(f->folder, &c, NULL), 0);
	assert_int_equal(trainer_new(&t, &c, &r, &o, NULL), 0);
	before = stage_hash(trainer_stages(t)[0]);
	rc = huggingface_read_weights(f->folder, trainer_stages(t), err);
	if (rc)
		assert_true(stage_hash(trainer_stages(t)[0]) == before);
	for (size_t i = 0; !rc && i < stage_parameters(trainer_stages(t)[0]); i++)
		assert_true(stage_weights(trainer_stages(t)[0])[i] == value);
	trainer_free(t);
	return rc;
}

static void refuse_weights(const struct fixture *f, const char *words, const char *also)
{
	struct error err = { "" };

	assert_int_equal(read_folder(f, 0, &err), -EINVAL);
	expect_words(&err, words);
	expect_words(&err, also);
}

static void accept_weights(const struct fixture *f, float value)
{
	struct error err = { "" };

	if (read_folder(f, value, &err))
		fail_msg("%s", err.text);
}

FIXTURE_TEST(the_index_decides)
{
	const struct fixture *f = *state;

	put_config(f, "{}");
	put_weights(f, "a.safetensors", 0, ALL, 3, NULL, 0);
	put_weights(f, "b.safetensors", SPLIT, ALL, 2, NULL, 0);
	put_weights(f, "model.safetensors", 0, ALL, 5, NULL, 0);
	put_index(f, 0, "none", "model.safetensors");
	accept_weights(f, 5);
	put_index(f, ALL, "a.safetensors", "none");
	accept_weights(f, 3);
	/* The first file also has an outdated tensor, which the index assigns to the second file.
	 * The index does not name the damaged file. */
	put_weights(f, "a.safetensors", 0, ALL, 2, NULL, 0);
	put_weights(f, "b.safetensors", 0, ALL, 2, NULL, 0);
	put_weights(f, "a.safetensors", 0, SPLIT, 2,
		    (struct extra[]){ { "lm_head.weight", "F32", "[7,8]", 224, 0 } }, 1);
	put_text(f, "model.safetensors", "damaged");
	put_index(f, SPLIT, "a.safetensors", "b.safetensors");
	accept_weights(f, 2);
}

FIXTURE_TEST(a_wrong_index_is_refused)
{
	const struct fixture *f = *state;
	static const char index[] = "model.safetensors.index.json";

	put_config(f, "{}");
	put_weights(f, "a.safetensors", 0, SPLIT, 1, NULL, 0);
	put_weights(f, "b.safetensors", SPLIT, ALL, 1, NULL, 0);
	put_index(f, SPLIT + 1, "a.safetensors", "b.safetensors");
	refuse_weights(f, "is not in ", "a.safetensors");
	put_index(f, SPLIT, "a.safetensors", "missing.safetensors");
	refuse_weights(f, "the folder has no missing.safetensors: download it", index);
	put_index(f, SPLIT, "a.safetensors", "../b.safetensors");
	refuse_weights(f, "the name of a file in the same folder", index);
	put_text(f, index, "{\"weight_map\": {\"lm_head.weight\": 3}}");
	refuse_weights(f, "weight_map: lm_head.weight", index);
	put_text(f, index, "{\"weight_map\": {}}");
	refuse_weights(f, "weight_map: tensor model.embed_tokens.weight is missing", index);
	put_text(f, index, "{\"metadata\": {}}");
	refuse_weights(f, "weight_map: expected an object", index);
	put_text(f, index, "{\"weight_map\": {\"a\": \"x\", \"a\": \"y\"}}");
	refuse_weights(f, "duplicate", index);
}

FIXTURE_TEST(without_an_index_a_tensor_lies_in_one_file)
{
	const struct fixture *f = *state;

	put_config(f, "{}");
	put_weights(f, "a.safetensors", 0, SPLIT, 1, NULL, 0);
	put_weights(f, "b.safetensors", SPLIT, ALL, 1, NULL, 0);
	accept_weights(f, 1);
	put_weights(f, "b.safetensors", SPLIT - 1, ALL, 1, NULL, 0);
	refuse_weights(f, "a.safetensors and in ", "b.safetensors");
	put_weights(f, "b.safetensors", SPLIT + 1, ALL, 1, NULL, 0);
	refuse_weights(f, "is missing", "tensor model.layers.0.");
	put_weights(f, "b.safetensors", SPLIT, ALL - 1, 1,
		    (struct extra[]){ { "extra", "F32", "[2]", 8, 0 } }, 1);
	put_weights(f, "c.safetensors", 0, 0, 1,
		    (struct extra[]){ { "extra", "F32", "[2]", 8, 0 } }, 1);
	accept_weights(f, 1);
}

FIXTURE_TEST(unread_tensors_need_not_be_readable)
{
	const struct fixture *f = *state;

	put_config(f, "{}");
	put_weights(f, "model.safetensors", 0, ALL, 1,
		    (struct extra[]){
			    { "a", "F8_E4M3", "[0]", 0, 0 },
			    { "b", "I64", "[1,4]", 32, 1 },
			    { "c", "BOOL", "[2]", 2, 1 },
			    { "d", "F4", "[3]", 1, 7 },
			    { "e", "SOME_TYPE", "\"?\"", 5, 7 },
			    { "f", "F32", "[1,1,1,1,1,2]", 8, 0 },
			    { "g", "F32", "[2,0]", 0, 0 },
			    { "model.layers.0.self_attn.rotary_emb.inv_freq", "F32", "[2]", 8, 1 },
			    { "model.layers.0.self_attn.bias", "BOOL", "[3]", 3, 1 },
			    { "model.layers.0.self_attn.q_norm.weight", "I8", "[3]", 3, 1 },
			    { "transformer.h.0.weight", "F32", "[1]", 4, 1 },
		    },
		    11);
	accept_weights(f, 1);
	put_weights(f, "model.safetensors", 0, 1, 1, NULL, 0);
	put_weights(f, "more.safetensors", 2, ALL, 1,
		    (struct extra[]){
			    { "model.layers.0.input_layernorm.weight", "F8_E4M3", "[8]", 8, 0 } },
		    1);
	refuse_weights(f, "tensor model.layers.0.input_layernorm.weight: dtype is F8_E4M3",
		       "more.safetensors");
}

FIXTURE_TEST(embeddings_and_norms_of_zeros_are_refused)
{
	const struct fixture *f = *state;

	put_config(f, "{}");
	put_weights(f, "model.safetensors", 0, ALL, 0, NULL, 0);
	refuse_weights(f, "tensor model.embed_tokens.weight: has only zeros", "downloaded");
	put_weights(f, "model.safetensors", 0, SPLIT, 1, NULL, 0);
	put_weights(f, "rest.safetensors", SPLIT, ALL, 0, NULL, 0);
	refuse_weights(f, "norm.weight: has only zeros", "rest.safetensors");
}

FIXTURE_TEST(biases_must_be_zero)
{
	const struct fixture *f = *state;
	struct extra bias = { "model.layers.1.mlp.down_proj.bias", "F32", "[8]", 32, 0 };

	for (int key = 0; key < 2; key++) {
		put_config(f, key ? "{\"mlp_bias\": true}" : "{}");
		bias.byte = 0;
		put_weights(f, "model.safetensors", 0, ALL, 1, &bias, 1);
		accept_weights(f, 1);
		bias.byte = 1;
		put_weights(f, "model.safetensors", 0, ALL, 1, &bias, 1);
		refuse_weights(f, bias.name, "biases are not supported");
	}
	bias = (struct extra){ "model.norm.bias", "F64", "[8]", 64, 0 };
	put_weights(f, "model.safetensors", 0, ALL, 1, &bias, 1);
	accept_weights(f, 1);
	bias.byte = 0x40;
	put_weights(f, "model.safetensors", 0, ALL, 1, &bias, 1);
	refuse_weights(f, "model.norm.bias", "biases are not supported");
	bias = (struct extra){ "lm_head.bias", "BF16", "[1]", 2, 0x80 };
	put_weights(f, "model.safetensors", 0, ALL, 1, &bias, 1);
	refuse_weights(f, "lm_head.bias", "biases are not supported");
}

FIXTURE_TEST(other_weights_of_a_layer_are_refused)
{
	const struct fixture *f = *state;

	put_config(f, "{}");
	put_weights(f, "model.safetensors", 0, ALL, 1,
		    (struct extra[]){
			    { "model.layers.0.self_attn.q_norm.weight", "BF16", "[4]", 8, 0 } },
		    1);
	refuse_weights(f, "self_attn.q_norm.weight", "model.safetensors");
	put_weights(f, "model.safetensors", 0, ALL, 1,
		    (struct extra[]){
			    { "model.layers.2.input_layernorm.weight", "F32", "[8]", 32, 0 } },
		    1);
	refuse_weights(f, "tensor model.layers.2.input_layernorm.weight",
		       "2 layers (num_hidden_layers");
}

FIXTURE_TEST(tied_heads_agree_with_the_embedding)
{
	const struct fixture *f = *state;
	struct extra head = { "lm_head.weight", "F32", "[7,8]", 224, 1 };
	const float ones = 0x1.020202p-125f; /* the float all of whose bytes are 1 */

	put_config(f, "{\"tie_word_embeddings\": true}");
	put_weights(f, "model.safetensors", 0, ALL, ones, &head, 1);
	accept_weights(f, ones);
	put_weights(f, "model.safetensors", 0, ALL, 1, &head, 1);
	refuse_weights(f, "lm_head.weight differs", "set it to false");
	head = (struct extra){ "lm_head.weight", "F32", "[6,8]", 192, 1 };
	put_weights(f, "model.safetensors", 0, ALL, ones, &head, 1);
	refuse_weights(f, "lm_head.weight differs", "tie_word_embeddings");
	put_weights(f, "model.safetensors", 0, ALL, 1, NULL, 0);
	accept_weights(f, 1);
	put_config(f, "{}");
	put_config(f, "{\"tie_word_embeddings\": true}");
	put_weights(f, "model.safetensors", 0, ALL, 1, NULL, 0);
	put_config(f, "{\"tie_word_embeddings\": false}");
	refuse_weights(f, "lm_head.weight is missing", "set tie_word_embeddings to true");
}

FIXTURE_TEST(folders_without_weights_are_explained)
{
	const struct fixture *f = *state;
	struct error err = { "" };

	put_config(f, "{}");
	assert_int_equal(read_folder(f, 0, &err), -ENOENT);
	expect_words(&err, "no *.safetensors file");
	put_text(f, "pytorch_model.bin", "x");
	assert_int_equal(read_folder(f, 0, &err), -ENOENT);
	expect_words(&err, "pytorch_model.bin is not read");
	put_text(f, "model.safetensors",
		 "version https://git-lfs.github.com/spec/v1\noid sha256:1");
	refuse_weights(f, "model.safetensors", "git lfs pull");
	put_weights(f, "model.safetensors", 0, ALL, 1, NULL, 0);
	accept_weights(f, 1);
	put_text(f, "adapter_config.json", "{}");
	refuse_weights(f, "adapter_config.json", "merge it");
}
