/* Names and shapes of tensors are as in tensor.h, so the reader looks each tensor up in the file
 * that has it. Tensors that this model does not have are skipped, unless they would change the
 * arithmetic. huggingface_config.c reads config.json. */
#include "model/files/huggingface.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/file.h"
#include "model/config_fields.h"
#include "model/files/json_file.h"
#include "model/files/safetensors.h"
#include "model/files/weight_files.h"

enum { PATH = 4096 };

/* ---- writing ---- */

/* Returns the settings of RoPE as an object, which contains rope_theta for version 5 of the
 * library. */
static json_t *rope_json(const struct model_config *c)
{
	double theta = model_shortest(c->rope_theta), factor = model_shortest(c->rope_factor);

	if (c->rope_factor == 0)
		return json_pack("{s:s, s:f}", "rope_type", "default", "rope_theta", theta);
	if (c->rope_high_freq_factor == 0)
		return json_pack("{s:s, s:f, s:f}", "rope_type", "linear", "rope_theta", theta,
				 "factor", factor);
	return json_pack("{s:s, s:f, s:f, s:f, s:f, s:i}", "rope_type", "llama3", "rope_theta",
			 theta, "factor", factor, "low_freq_factor",
			 model_shortest(c->rope_low_freq_factor), "high_freq_factor",
			 model_shortest(c->rope_high_freq_factor),
			 "original_max_position_embeddings", (int)c->rope_original_context);
}

static int write_config(const char *folder, const struct model_config *c, const json_t *tokens,
			struct error *err)
{
	char path[PATH];
	json_t *json = json_pack(
		"{s:[s], s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:o, "
		"s:b, s:s, s:b, s:b, s:f, s:s, s:s, s:n, s:n}",
		"architectures", "LlamaForCausalLM", "model_type", "llama", "vocab_size",
		(int)c->vocab, "hidden_size", (int)c->dim, "intermediate_size", (int)c->ffn_dim,
		"num_hidden_layers", (int)c->n_layers, "num_attention_heads", (int)c->n_heads,
		"num_key_value_heads", (int)c->n_kv_heads, "head_dim", (int)model_head_size(c),
		"max_position_embeddings", (int)c->context, "rms_norm_eps",
		model_shortest(c->norm_eps), "rope_theta", model_shortest(c->rope_theta),
		"rope_parameters", rope_json(c), "tie_word_embeddings", (int)c->tied, "hidden_act",
		"silu", "attention_bias", 0, "mlp_bias", 0, "attention_dropout", 0.0,
		"torch_dtype", "float32", "dtype", "float32", "bos_token_id", "eos_token_id");

	/* Version 4 of the library reads the scaling from this key. */
	if (json && c->rope_factor != 0 &&
	    json_object_set_new(json, "rope_scaling", rope_json(c)) < 0) {
		json_decref(json);
		json = NULL;
	}
	if (json && tokens && json_object_update(json, (json_t *)tokens) < 0) {
		json_decref(json);
		json = NULL;
	}
	snprintf(path, sizeof(path), "%s/config.json", folder);
	return json_file_write(path, json, err);
}

/* Writes the two files of the format: the config with the library's keys, and the weights under the
 * library's names. */
int huggingface_export(const char *folder, struct stage *const *stages, const json_t *tokens,
		       struct error *err)
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
	return rc ? rc : write_config(folder, c, tokens, err);
}

/* State of reading the weights. */
struct huggingface {
	char folder[PATH];
	struct weight_files *files;
	uint32_t n_layers;
	json_t *has; /* set of the names of the tensors that the model has */
};

/* ---- tensors that the model lacks ---- */

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n >= m && strcmp(name + n - m, end) == 0;
}

/* Returns true for a bias of a projection, norm or head of this model. */
static bool is_bias(const struct huggingface *h, const char *name)
{
	char weight[128];
	size_t n = strlen(name);

	if (!ends_with(name, ".bias") || n + 3 > sizeof(weight))
		return false;
	snprintf(weight, sizeof(weight), "%.*s.weight", (int)(n - 5), name);
	return json_object_get(h->has, weight) || strcmp(weight, "lm_head.weight") == 0;
}

static int check_bias(const struct weight *w, struct error *err)
{
	bool zero = true;
	int rc = safetensors_all_zero(w->file, w->entry, &zero, err);

	if (rc || zero)
		return rc;
	return error_set(err, -EINVAL,
			 "%s: tensor %s: is not zero: biases are not supported", w->path,
			 w->entry->name);
}

/* Checks the separate head of a model with "tie_word_embeddings": true. The head must equal the
 * embedding, because versions of the library differ in which of the two they use. */
static int check_head(const struct huggingface *h, const struct weight *head,
		      struct error *err)
{
	enum { SOME = 4096 };
	float a[SOME], b[SOME];
	struct weight embed;
	int rc = weight_files_find(h->files, "model.embed_tokens.weight", &embed, err);

	if (!rc)
		rc = safetensors_check_type(head->file, head->entry, err);
	if (!rc)
		rc = safetensors_check_type(embed.file, embed.entry, err);
	for (size_t i = 0; i < head->entry->count && !rc; i += SOME) {
		size_t n = head->entry->count - i < SOME ? head->entry->count - i : SOME;

		if (head->entry->count == embed.entry->count) {
			rc = safetensors_read_some(head->file, head->entry, i, n, a, err);
			if (!rc)
				rc = safetensors_read_some(embed.file, embed.entry, i, n, b, err);
			if (rc || memcmp(a, b, n * sizeof(*a)) == 0)
				continue;
		}
		rc = error_set(err, -EINVAL,
			       "%s: tensor lm_head.weight differs from model.embed_tokens.weight, "
			       "and tie_word_embeddings is true in config.json: set it to false, "
			       "or remove the tensor",
			       head->path);
	}
	return rc;
}

/* Refuses an unknown weight inside a layer. Such a weight takes part in the layer's arithmetic, for
 * example as a norm of the queries, or belongs to a layer beyond those in config.json. */
static int check_unread(const struct huggingface *h, const char *name, struct error *err)
{
	bool bias = is_bias(h, name), head = strcmp(name, "lm_head.weight") == 0;
	bool of_layer = strncmp(name, "model.layers.", 13) == 0 && ends_with(name, ".weight");
	struct weight w;
	int rc;

	if (json_object_get(h->has, name) || !(bias || head || of_layer))
		return 0;
	rc = weight_files_find(h->files, name, &w, err);
	if (rc)
		return rc;
	if (bias)
		return check_bias(&w, err);
	if (head)
		return check_head(h, &w, err);
	if (w.entry->type == SAFETENSORS_OTHER || w.entry->count == 0)
		return 0;
	return error_set(err, -EINVAL,
			 "%s: tensor %s: a LLaMA of %" PRIu32
			 " layers (num_hidden_layers in config.json) has no such tensor",
			 w.path, name, h->n_layers);
}

/* Refuses an adapter in the folder, because the library would apply the adapter to the weights. */
static int check_adapter(const char *folder, struct error *err)
{
	char path[PATH + 32];

	snprintf(path, sizeof(path), "%s/adapter_config.json", folder);
	return access(path, F_OK) == 0
		       ? error_set(err, -EINVAL,
				   "%s: adapters are not supported: merge it into the weights, or "
				   "remove it",
				   path)
		       : 0;
}

static int note_tensors(struct huggingface *h, struct error *err)
{
	struct model_config c;
	struct tensor_table table = { 0 };
	int rc = huggingface_read_config(h->folder, &c, err);

	if (!rc)
		rc = tensor_table_new(&table, &c, err);
	if (rc)
		return rc;
	h->n_layers = c.n_layers;
	h->has = json_object();
	for (size_t i = 0; i < table.n && !rc; i++)
		if (json_object_set_new(h->has, table.tensors[i].name, json_true()) < 0)
			rc = error_set(err, -ENOMEM, "%s: no memory for its tensors", h->folder);
	tensor_table_free(&table);
	return rc;
}

int huggingface_open(struct huggingface **out, const char *folder, struct error *err)
{
	struct huggingface *h = alloc_new(sizeof(*h));
	const char *const *names;
	size_t n = 0;
	int rc;

	snprintf(h->folder, sizeof(h->folder), "%s", folder);
	rc = check_adapter(folder, err);
	if (!rc)
		rc = note_tensors(h, err);
	if (!rc)
		rc = weight_files_open(&h->files, folder, err);
	names = rc ? NULL : weight_files_names(h->files, &n);
	for (size_t i = 0; i < n && !rc; i++)
		rc = check_unread(h, names[i], err);
	if (rc)
		huggingface_close(h);
	else
		*out = h;
	return rc;
}

void huggingface_close(struct huggingface *h)
{
	if (!h)
		return;
	weight_files_close(h->files);
	json_decref(h->has);
	free(h);
}

/* ---- tensors that the model has ---- */

static int find_weight(const struct huggingface *h, const struct tensor *t, struct weight *w,
		       struct error *err)
{
	int rc = weight_files_find(h->files, t->name, w, err);

	if (rc == -ENOENT && t->role == TENSOR_HEAD)
		return error_set(err, -EINVAL,
				 "%s: tensor %s is missing: set tie_word_embeddings to true in "
				 "config.json if the head is the embedding",
				 h->folder, t->name);
	if (!rc)
		rc = safetensors_check_type(w->file, w->entry, err);
	if (!rc)
		rc = tensor_check_shape(t, w->path, t->name, w->entry->dims, w->entry->shape, err);
	return rc == -ENOENT ? -EINVAL : rc;
}

/* Refuses an embedding or a norm that is all zeros, because no trained model has such a tensor.
 * Some download tools first allocate the whole file, and if such a tool is interrupted, the rest of
 * the file is zeros. Other weights may be zero, for example in layers that were added to a trained
 * model. */
static int check_not_zero(const struct tensor *t, const struct weight *w, struct error *err)
{
	bool zero = t->role == TENSOR_EMBED || t->role == TENSOR_NORM1 || t->role == TENSOR_NORM2 ||
		    t->role == TENSOR_LAST_NORM;
	int rc = zero ? safetensors_all_zero(w->file, w->entry, &zero, err) : 0;

	if (rc || !zero)
		return rc;
	return error_set(err, -EINVAL,
			 "%s: tensor %s: has only zeros, as in a file that was not downloaded to "
			 "its end",
			 w->path, t->name);
}

int huggingface_check_tensor(const struct huggingface *h, const struct tensor *t, struct error *err)
{
	struct weight w;
	int rc = find_weight(h, t, &w, err);

	if (!rc)
		rc = safetensors_check_finite(w.file, w.entry, err);
	return rc ? rc : check_not_zero(t, &w, err);
}

int huggingface_read_tensor(const struct huggingface *h, const struct tensor *t, float *to,
			    struct error *err)
{
	struct weight w;
	int rc = find_weight(h, t, &w, err);

	return rc ? rc : safetensors_read(w.file, w.entry, to, err);
}

/* Reads a tensor into the stage, whose device may have memory of its own. */
static int read_into(const struct huggingface *h, const struct tensor *t, struct stage *s,
		     struct error *err)
{
	float *numbers = malloc((t->count + 1) * sizeof(*numbers));
	const float *const state[] = { numbers, NULL, NULL };
	int rc = numbers ? huggingface_read_tensor(h, t, numbers, err)
			 : error_set(err, -ENOMEM, "no memory to read tensor %s", t->name);

	if (!rc)
		stage_put_state(s, t->offset, t->count, state);
	free(numbers);
	return rc;
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

			for (size_t i = 0; i < n && !rc; i++)
				rc = write ? read_into(h, &t[i], stages[s], err)
					   : huggingface_check_tensor(h, &t[i], err);
		}
	huggingface_close(h);
	return rc;
}
