/* run_parts.c - the list of a run's parts as JSON (run_parts.h). */
#include "model/files/run_parts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/alloc.h"

enum { SHARDS_MOST = 1 << 20 };

uint64_t run_part_position(const struct run_part *p, uint64_t committed, uint64_t skipped)
{
	uint64_t n = p->n_shards;

	return (n ? (p->position + n - 1) / n : 0) +
	       (committed - p->after + skipped - p->skipped) * p->per_shard;
}

void run_parts_add(struct run_parts *parts, const struct run_part *p)
{
	struct run_part *to;

	parts->list = alloc_resize(parts->list, parts->n + 1, sizeof(*parts->list));
	to = &parts->list[parts->n++];
	*to = *p;
	to->model = alloc_string(p->model);
	to->cluster = p->cluster ? alloc_string(p->cluster) : NULL;
	to->state = p->state ? alloc_string(p->state) : NULL;
}

void run_parts_free(struct run_parts *parts)
{
	for (size_t i = 0; i < parts->n; i++) {
		free(parts->list[i].model);
		free(parts->list[i].cluster);
		free(parts->list[i].state);
	}
	free(parts->list);
	*parts = (struct run_parts){ NULL, 0 };
}

char *run_parts_print(const struct run_parts *parts)
{
	json_t *list = json_array();
	char *text = NULL;
	bool whole = list != NULL;

	for (size_t i = 0; whole && i < parts->n; i++) {
		const struct run_part *p = &parts->list[i];

		whole = json_array_append_new(
				list,
				json_pack("{s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:s, s:s*, s:s*}",
					  "after", (json_int_t)p->after, "skipped",
					  (json_int_t)p->skipped, "position",
					  (json_int_t)p->position, "writer", (json_int_t)p->writer,
					  "n_shards", (int)p->n_shards, "per_shard",
					  (int)p->per_shard, "n_restores", (int)p->n_restores,
					  "model", p->model, "cluster", p->cluster, "state",
					  p->state)) == 0;
	}
	if (whole)
		text = json_dumps(list, JSON_COMPACT);
	json_decref(list);
	return text;
}

/* Reads one part and adds it to the list. `before`: the preceding part; NULL: this is the first.
 * Returns false if a value is missing or out of range. */
static bool read_part(struct run_parts *out, json_t *o, const struct run_part *before)
{
	json_int_t after, skipped, position, writer;
	int n_shards, per_shard, n_restores;
	const char *model, *cluster = NULL, *state = NULL;
	struct run_part p;

	if (json_unpack(o, "{s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:s, s?s, s?s}", "after", &after,
			"skipped", &skipped, "position", &position, "writer", &writer, "n_shards",
			&n_shards, "per_shard", &per_shard, "n_restores", &n_restores, "model",
			&model, "cluster", &cluster, "state", &state) != 0 ||
	    after < 0 || skipped < 0 || position < 0 || writer < 0 || n_restores < 0 ||
	    n_shards < 1 || n_shards > SHARDS_MOST || per_shard < 1 || per_shard > SHARDS_MOST ||
	    (before ? (uint64_t)after < before->after || (uint64_t)skipped < before->skipped ||
			      (uint32_t)n_restores < before->n_restores
		    : after != 0 || skipped != 0 || n_restores != 0))
		return false;
	p = (struct run_part){ .after = (uint64_t)after,
			       .skipped = (uint64_t)skipped,
			       .position = (uint64_t)position,
			       .writer = (uint64_t)writer,
			       .n_shards = (uint32_t)n_shards,
			       .per_shard = (uint32_t)per_shard,
			       .n_restores = (uint32_t)n_restores,
			       .model = (char *)model,
			       .cluster = (char *)cluster,
			       .state = (char *)state };
	run_parts_add(out, &p);
	return true;
}

int run_parts_parse(struct run_parts *out, const char *text, struct error *err)
{
	json_t *list = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	struct run_parts read = { NULL, 0 };
	size_t n = json_array_size(list);
	bool good = n > 0;

	for (size_t i = 0; good && i < n; i++)
		good = read_part(&read, json_array_get(list, i), i ? &read.list[i - 1] : NULL);
	json_decref(list);
	if (!good) {
		run_parts_free(&read);
		return error_set(err, -EINVAL, "the record of the run's parts is damaged");
	}
	*out = read;
	return 0;
}
