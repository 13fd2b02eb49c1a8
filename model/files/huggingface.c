/* Names and shapes are those of tensor.h, so a model is read by looking each tensor up in
 * whichever file holds it. Configs that mean another arithmetic than ours are refused by
 * name. */
#include "model/files/huggingface.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/file.h"
#include "model/files/safetensors.h"

enum { PATH = 4096, JSON_MOST = 64 << 20, FILES_MOST = 1024 };

/* Writing. */

static json_t *config_json(const struct model_config *c)
{
	double theta = (double)c->rope_theta;
	char eps[32];

	/* The fewest digits that read back as the same float: 1e-05, not 9.99999975e-06. */
	for (int digits = 1; digits <= 9; digits++) {
		snprintf(eps, sizeof(eps), "%.*g", digits, (double)c->norm_eps);
		if (strtof(eps, NULL) == c->norm_eps)
			break;
	}
	return json_pack(
		"{s:[s], s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:{s:s, s:f}, "
		"s:b, s:s, s:b, s:b, s:f, s:s, s:s, s:n, s:n}",
		"architectures", "LlamaForCausalLM", "model_type", "llama", "vocab_size",
		(int)c->vocab, "hidden_size", (int)c->dim, "intermediate_size", (int)c->ffn_dim,
		"num_hidden_layers", (int)c->n_layers, "num_attention_heads", (int)c->n_heads,
		"num_key_value_heads", (int)c->n_kv_heads, "head_dim", (int)model_head_size(c),
		"max_position_embeddings", (int)c->context, "rms_norm_eps", strtod(eps, NULL),
		"rope_theta", theta, "rope_parameters", "rope_type", "default", "rope_theta",
		theta, "tie_word_embeddings", (int)c->tied, "hidden_act", "silu",
		"attention_bias", 0, "mlp_bias", 0, "attention_dropout", 0.0, "torch_dtype",
		"float32", "dtype", "float32", "bos_token_id", "eos_token_id");
}

static int write_config(const char *folder, const struct model_config *c, struct error *err)
{
	json_t *json = config_json(c);
	char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL,
	     path[PATH];
	int rc;

	json_decref(json);
	snprintf(path, sizeof(path), "%s/config.json", folder);
	if (!text)
		return error_set(err, -ENOMEM, "%s: no memory", path);
	rc = file_write(path, text, strlen(text), 0644, err);
	free(text);
	return rc;
}

/* Both files of the format: the config in the library's words, the weights under its names. */
int huggingface_export(const char *folder, struct stage *const *stages, struct error *err)
{
	const struct model_config *c = stage_config(stages[0]);
	struct safetensors_entry *entries;
	size_t n = 0, all = 0;
	char path[PATH];
	int rc = file_make_folder(folder, err);

	if (rc)
		return rc;
	for (uint32_t s = 0; s < c->n_stages; s++) {
		stage_tensors(stages[s], &n);
		all += n;
	}
	assert(all > 0);
	entries = calloc(all, sizeof(*entries));
	if (!entries)
		return error_set(err, -ENOMEM, "no memory to export %zu tensors", all);
	all = 0;
	for (uint32_t s = 0; s < c->n_stages; s++) {
		const struct tensor *t = stage_tensors(stages[s], &n);
		const float *w = stage_weights(stages[s]);

		for (size_t i = 0; i < n; i++)
			entries[all++] = (struct safetensors_entry){
				.name = t[i].name,
				.type = SAFETENSORS_F32,
				.dims = t[i].dims,
				.shape = { t[i].rows, t[i].cols },
				.count = t[i].count,
				.data = w + t[i].offset,
			};
	}
	snprintf(path, sizeof(path), "%s/model.safetensors", folder);
	rc = safetensors_write(path, entries, all, NULL, err);
	free(entries);
	return rc ? rc : write_config(folder, c, err);
}

/* Reading the configuration. Unknown keys are ignored, because other tools add some; keys that
 * would change the arithmetic are refused. */

struct reader {
	const char *path;
	const json_t *root;
	struct error *err;
	int rc; /* of the first failure */
};

static uint32_t read_whole(struct reader *r, const char *key, uint32_t otherwise)
{
	const json_t *v = json_object_get(r->root, key);

	if ((!v || json_is_null(v)) && otherwise)
		return otherwise;
	if (json_is_integer(v) && json_integer_value(v) > 0 &&
	    json_integer_value(v) < INT32_MAX)
		return (uint32_t)json_integer_value(v);
	if (!r->rc)
		r->rc = error_set(r->err, -EINVAL, "%s: %s: expected a whole number", r->path,
				  key);
	return 0;
}

static float read_real(const json_t *root, const char *key, float otherwise)
{
	const json_t *v = json_object_get(root, key);

	return json_is_number(v) ? (float)json_number_value(v) : otherwise;
}

static void refuse_when(struct reader *r, bool when, const char *key, const char *expected)
{
	if (when && !r->rc)
		r->rc = error_set(r->err, -EINVAL, "%s: %s: expected %s", r->path, key,
				  expected);
}

static void check_arithmetic(struct reader *r, const struct model_config *c)
{
	const char *type = json_string_value(json_object_get(r->root, "model_type"));
	const char *act = json_string_value(json_object_get(r->root, "hidden_act"));
	const json_t *scaling = json_object_get(r->root, "rope_scaling");
	const json_t *rope = json_object_get(r->root, "rope_parameters");
	const char *kind = json_string_value(json_object_get(rope, "rope_type"));

	refuse_when(r, !type || strcmp(type, "llama") != 0, "model_type", "\"llama\"");
	refuse_when(r, act && strcmp(act, "silu") != 0, "hidden_act", "\"silu\"");
	refuse_when(r, scaling && !json_is_null(scaling), "rope_scaling", "null");
	refuse_when(r, kind && strcmp(kind, "default") != 0, "rope_parameters.rope_type",
		    "\"default\"");
	refuse_when(r, json_is_true(json_object_get(r->root, "attention_bias")),
		    "attention_bias", "false");
	refuse_when(r, json_is_true(json_object_get(r->root, "mlp_bias")), "mlp_bias", "false");
	refuse_when(r,
		    c->n_heads && read_whole(r, "head_dim", c->dim / c->n_heads) !=
					  c->dim / c->n_heads,
		    "head_dim", "hidden_size / num_attention_heads");
}

/* Missing keys have the library's defaults. Another arithmetic is refused, because it would
 * silently give other numbers. */
int huggingface_read_config(const char *folder, struct model_config *c, struct error *err)
{
	char path[PATH], *text;
	struct reader r = { .path = path, .err = err };
	struct model_config read = { .n_stages = 1, .init_std = 0.02f };
	json_error_t at;
	json_t *root;
	size_t size;
	int rc;

	snprintf(path, sizeof(path), "%s/config.json", folder);
	rc = file_read(path, JSON_MOST, &text, &size, err);
	if (rc)
		return rc;
	root = json_loadb(text, size, 0, &at);
	free(text);
	if (!json_is_object(root)) {
		json_decref(root);
		return error_set(err, -EINVAL, "%s: expected a JSON object", path);
	}
	r.root = root;
	read.vocab = read_whole(&r, "vocab_size", 0);
	read.dim = read_whole(&r, "hidden_size", 0);
	read.ffn_dim = read_whole(&r, "intermediate_size", 0);
	read.n_layers = read_whole(&r, "num_hidden_layers", 0);
	read.n_heads = read_whole(&r, "num_attention_heads", 0);
	read.n_kv_heads = read_whole(&r, "num_key_value_heads", read.n_heads);
	read.context = read_whole(&r, "max_position_embeddings", 2048);
	read.norm_eps = read_real(root, "rms_norm_eps", 1e-6f);
	read.rope_theta = read_real(json_object_get(root, "rope_parameters"), "rope_theta",
				    read_real(root, "rope_theta", 10000));
	read.tied = json_is_true(json_object_get(root, "tie_word_embeddings"));
	check_arithmetic(&r, &read);
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

/* Reading the weights. */

struct files {
	struct safetensors *open[FILES_MOST];
	char *names[FILES_MOST];
	size_t n;
};

struct huggingface {
	char folder[PATH];
	struct files files;
};

static void files_close(struct files *f)
{
	for (size_t i = 0; i < f->n; i++) {
		safetensors_close(f->open[i]);
		free(f->names[i]);
	}
}

static int files_add(struct files *f, const char *folder, const char *name, struct error *err)
{
	char path[PATH];
	int rc;

	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->names[i], name) == 0)
			return 0;
	if (f->n == FILES_MOST || strchr(name, '/'))
		return error_set(err, -EINVAL, "%s: index: unexpected file %s", folder, name);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	rc = safetensors_open(&f->open[f->n], path, err);
	if (rc)
		return rc;
	f->names[f->n++] = alloc_string(name);
	return 0;
}

static int files_open(struct files *f, const char *folder, struct error *err)
{
	char path[PATH], *text;
	const char *key;
	json_t *root, *file, *map;
	size_t size;
	int rc;

	snprintf(path, sizeof(path), "%s/model.safetensors.index.json", folder);
	if (file_read(path, JSON_MOST, &text, &size, NULL))
		return files_add(f, folder, "model.safetensors", err);
	root = json_loadb(text, size, 0, NULL);
	free(text);
	map = json_object_get(root, "weight_map");
	rc = map ? 0 : error_set(err, -EINVAL, "%s: weight_map: expected an object", path);
	json_object_foreach(map, key, file)
	{
		if (rc)
			break;
		rc = json_is_string(file)
			     ? files_add(f, folder, json_string_value(file), err)
			     : error_set(err, -EINVAL, "%s: weight_map: expected file names",
					 path);
	}
	json_decref(root);
	return rc;
}

static int find_file_of(const struct files *f, const char *folder, const struct tensor *t,
			const struct safetensors **file, const struct safetensors_entry **out,
			struct error *err)
{
	char path[2 * PATH];

	for (size_t i = 0; i < f->n; i++) {
		const struct safetensors_entry *e = safetensors_find(f->open[i], t->name);

		if (!e)
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, f->names[i]);
		*file = f->open[i];
		*out = e;
		return tensor_check_shape(t, path, t->name, e->dims, e->shape, err);
	}
	return error_set(err, -EINVAL, "%s: tensor %s is missing", folder, t->name);
}

int huggingface_open(struct huggingface **out, const char *folder, struct error *err)
{
	struct huggingface *h = alloc_new(sizeof(*h));
	int rc;

	snprintf(h->folder, sizeof(h->folder), "%s", folder);
	rc = files_open(&h->files, folder, err);
	if (rc)
		huggingface_close(h);
	else
		*out = h;
	return rc;
}

void huggingface_close(struct huggingface *h)
{
	if (h)
		files_close(&h->files);
	free(h);
}

int huggingface_check_tensor(const struct huggingface *h, const struct tensor *t, struct error *err)
{
	const struct safetensors_entry *e = NULL;
	const struct safetensors *file = NULL;
	int rc = find_file_of(&h->files, h->folder, t, &file, &e, err);

	return rc ? rc : safetensors_check_finite(file, e, err);
}

int huggingface_read_tensor(const struct huggingface *h, const struct tensor *t, float *to,
			    struct error *err)
{
	const struct safetensors_entry *e = NULL;
	const struct safetensors *file = NULL;
	int rc = find_file_of(&h->files, h->folder, t, &file, &e, err);

	return rc ? rc : safetensors_read(file, e, to, err);
}

int huggingface_read_weights(const char *folder, struct stage *const *stages, struct error *err)
{
	const struct model_config *c = stage_config(stages[0]);
	struct huggingface *h = NULL;
	int rc = huggingface_open(&h, folder, err);

	for (int write = 0; write < 2; write++)
		for (uint32_t s = 0; s < c->n_stages && !rc; s++) {
			size_t n;
			const struct tensor *t = stage_tensors(stages[s], &n);
			float *w = stage_weights(stages[s]);

			for (size_t i = 0; i < n && !rc; i++)
				rc = write ? huggingface_read_tensor(h, &t[i], w + t[i].offset, err)
					   : huggingface_check_tensor(h, &t[i], err);
			if (!rc && write)
				stage_changed(stages[s]);
		}
	huggingface_close(h);
	return rc;
}
