/* origin.c - cuts a model on disk into the stages of a run, one tensor at a time.
 *
 * Tensors are found by name, so the number of stages of the source does not matter. A skippipe
 * checkpoint also has the moments of AdamW; for a model of another tool they are zeros. */
#include "model/files/origin.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/alloc.h"
#include "model/files/checkpoint.h"
#include "model/files/huggingface.h"
#include "model/files/model_folder.h"
#include "model/files/safetensors.h"
#include "model/tensor.h"

enum { KINDS = 3, STAGES_MOST = 1024 };

static const char *const moment_prefixes[KINDS] = { "", "optimizer.moment1.",
						     "optimizer.moment2." };

/* An opened source, which is a checkpoint or a folder of the transformers library. */
struct source {
	const char *folder;
	struct huggingface *other;
	struct safetensors *ours[STAGES_MOST];
	uint32_t n_ours;
};

int origin_read(struct origin *o, const char *folder, struct model_config *c,
		struct hyperparameters *r, bool *trained, struct error *err)
{
	struct origin read = { .steps = 0 };
	struct checkpoint k;
	enum model_kind kind;
	char path[PATH_MAX];
	int rc;

	if (!realpath(folder, path))
		return error_set(err, -errno, "%s: %s", folder, strerror(errno));
	if (snprintf(read.folder, sizeof(read.folder), "%s", path) >= (int)sizeof(read.folder))
		return error_set(err, -ENAMETOOLONG, "%s: the path is too long", path);
	rc = model_folder_find(&kind, folder, err);
	if (rc)
		return rc;
	*trained = kind == MODEL_CHECKPOINT;
	if (*trained) {
		rc = checkpoint_read(folder, &k, err);
		if (rc)
			return rc;
		*c = k.config;
		*r = k.hyper;
		read.steps = k.iteration;
		read.position = k.position;
		read.corpus = k.corpus;
		read.seed = k.seed;
	} else {
		rc = huggingface_read_config(folder, c, err);
		if (rc)
			return rc;
	}
	*o = read;
	return 0;
}

/* ---- cutting ---- */

static void close_source(struct source *s)
{
	huggingface_close(s->other);
	for (uint32_t i = 0; i < s->n_ours; i++)
		safetensors_close(s->ours[i]);
}

static int open_source(struct source *s, const char *folder, struct error *err)
{
	struct checkpoint k;
	enum model_kind kind;
	int rc = model_folder_kind(&kind, folder, err);

	*s = (struct source){ .folder = folder };
	if (rc)
		return rc;
	if (kind != MODEL_CHECKPOINT)
		return huggingface_open(&s->other, folder, err);
	rc = checkpoint_read(folder, &k, err);
	while (!rc && s->n_ours < k.config.n_stages) {
		rc = checkpoint_open_stage(folder, s->n_ours, &s->ours[s->n_ours], err);
		s->n_ours += rc == 0;
	}
	return rc;
}

/* Reads one tensor of a skippipe checkpoint: its weights, or a moment. Moments that the file lacks
 * are zeros. */
static int read_ours(const struct source *s, const struct tensor *t, int kind, float *to,
		     struct error *err)
{
	char name[96];

	snprintf(name, sizeof(name), "%s%s", moment_prefixes[kind], t->name);
	for (uint32_t i = 0; i < s->n_ours; i++) {
		const struct safetensors_entry *e = safetensors_find(s->ours[i], name);
		int rc;

		if (!e)
			continue;
		rc = tensor_check_shape(t, s->folder, name, e->dims, e->shape, err);
		return rc ? rc : safetensors_read(s->ours[i], e, to, err);
	}
	if (kind > 0) {
		memset(to, 0, t->count * sizeof(*to));
		return 0;
	}
	return error_set(err, -EINVAL, "%s: tensor %s is missing", s->folder, name);
}

static int read_tensor(const struct source *s, const struct tensor *t, size_t parameters,
		       float *state, struct error *err)
{
	int rc = 0;

	if (s->other) {
		rc = huggingface_check_tensor(s->other, t, err);
		return rc ? rc
			  : huggingface_read_tensor(s->other, t, state + t->offset, err);
	}
	for (int k = 0; k < KINDS && !rc; k++)
		rc = read_ours(s, t, k, state + (size_t)k * parameters + t->offset, err);
	return rc;
}

static int cut_stage(const struct source *s, const struct tensor_table *table,
		     const struct model_config *c, uint32_t stage, const struct origin_cut_to *to,
		     struct error *err)
{
	size_t n = tensor_table_parameters(table, stage);
	float *state = malloc((s->other ? 1 : KINDS) * n * sizeof(*state));
	int rc = state ? 0
		       : error_set(err, -ENOMEM, "%s: no memory for stage %" PRIu32, s->folder,
				   stage);

	for (size_t i = 0; i < table->n && !rc; i++)
		if (table->tensors[i].stage == stage)
			rc = read_tensor(s, &table->tensors[i], n, state, err);
	if (!rc)
		rc = checkpoint_save_stage(to->run, c, stage, to->iteration, state, !s->other,
					   &to->hashes[stage], &to->bytes[stage], err);
	free(state);
	return rc;
}

int origin_cut_folder(const char *folder, const struct model_config *c,
		      const struct origin_cut_to *to, struct error *err)
{
	struct tensor_table table = { 0 };
	struct source s;
	int rc;

	if (c->n_stages > ROUTE_HOPS)
		return error_set(err, -E2BIG, "%" PRIu32 " stages: at most %d", c->n_stages,
				 ROUTE_HOPS);
	rc = open_source(&s, folder, err);
	if (!rc)
		rc = tensor_table_new(&table, c, err);
	for (uint32_t i = 0; i < c->n_stages && !rc; i++)
		rc = cut_stage(&s, &table, c, i, to, err);
	tensor_table_free(&table);
	close_source(&s);
	return rc;
}

int origin_cut(struct origin *o, const struct model_config *c, const char *run, struct error *err)
{
	uint64_t bytes[ROUTE_HOPS];
	const struct origin_cut_to to = { run, 0, o->hashes, bytes };
	int rc = origin_cut_folder(o->folder, c, &to, err);

	if (!rc)
		o->n_stages = c->n_stages;
	return rc;
}

int origin_cut_again(const struct origin *o, const struct model_config *c, const char *run,
		     struct error *err)
{
	struct origin again = *o;
	int rc = origin_cut(&again, c, run, err);

	for (uint32_t i = 0; i < o->n_stages && rc == 0; i++)
		if (again.hashes[i] != o->hashes[i])
			rc = error_set(err, -ESTALE,
				       "%s has changed since the run began: stage %" PRIu32
				       " has hash %016" PRIx64 ", the record says %016" PRIx64,
				       o->folder, i, again.hashes[i], o->hashes[i]);
	return rc;
}

/* ---- the description in a run's record ---- */

static json_t *pack_hex(uint64_t v)
{
	char text[20];

	snprintf(text, sizeof(text), "%016" PRIx64, v);
	return json_string(text);
}

static bool unpack_hex(const json_t *v, uint64_t *out)
{
	const char *text = json_string_value(v);
	char *end;

	if (!text)
		return false;
	*out = strtoull(text, &end, 16);
	return *text && !*end;
}

char *origin_print(const struct origin *o)
{
	json_t *hashes = json_array(), *all;
	char *text;

	for (uint32_t i = 0; i < o->n_stages; i++)
		json_array_append_new(hashes, pack_hex(o->hashes[i]));
	all = json_pack("{s:s, s:I, s:I, s:o, s:I, s:o}", "folder", o->folder, "steps",
			(json_int_t)o->steps, "position", (json_int_t)o->position, "corpus",
			pack_hex(o->corpus), "seed", (json_int_t)o->seed, "hashes", hashes);
	text = all ? json_dumps(all, JSON_COMPACT) : NULL;
	json_decref(all);
	return text;
}

int origin_parse(struct origin *o, const char *text, struct error *err)
{
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *hashes = NULL,
	       *corpus = NULL;
	json_int_t steps = -1, position = -1, seed = -1;
	const char *folder = "";
	struct origin read = { .steps = 0 };
	bool good = root && json_unpack(root, "{s:s, s:I, s:I, s:o, s:I, s:o}", "folder", &folder,
					"steps", &steps, "position", &position, "corpus", &corpus,
					"seed", &seed, "hashes", &hashes) == 0 &&
		    steps >= 0 && position >= 0 && seed >= 0 && unpack_hex(corpus, &read.corpus) &&
		    json_array_size(hashes) <= ROUTE_HOPS && strlen(folder) < sizeof(read.folder);

	for (size_t i = 0; good && i < json_array_size(hashes); i++)
		good = unpack_hex(json_array_get(hashes, i), &read.hashes[i]);
	if (good) {
		snprintf(read.folder, sizeof(read.folder), "%s", folder);
		read.steps = (uint64_t)steps;
		read.position = (uint64_t)position;
		read.seed = (uint64_t)seed;
		read.n_stages = (uint32_t)json_array_size(hashes);
		*o = read;
	}
	json_decref(root);
	return good ? 0
		    : error_set(err, -EINVAL,
				"the record of the weights with which the run began is damaged");
}
