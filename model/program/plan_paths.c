/* Reads the paths of a plan file. Training needs nothing else from a plan, so the planner is not
 * linked to this program. */
#include "model/program/plan_paths.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/file.h"

enum { PLAN_MOST = 256 << 20, NODES_MOST = 1 << 20, NO_STAGE = -1 };

struct reader {
	const char *file;
	struct error *err;
	int *stage_of; /* (NODES_MOST) stage of each node, or NO_STAGE */
};

static int read_assignment(struct reader *r, struct plan_paths *p, const json_t *assignment)
{
	p->n_stages = (uint32_t)json_array_size(assignment);
	if (p->n_stages == 0)
		return error_set(r->err, -EINVAL, "%s: assignment: expected an array of stages",
				 r->file);
	for (uint32_t s = 0; s < p->n_stages; s++) {
		const json_t *nodes = json_array_get(assignment, s);

		for (size_t i = 0; i < json_array_size(nodes); i++) {
			const json_t *node = json_array_get(nodes, i);
			json_int_t id = json_is_integer(node) ? json_integer_value(node) : -1;

			if (id < 0 || id >= NODES_MOST)
				return error_set(r->err, -EINVAL,
						 "%s: assignment[%" PRIu32 "][%zu]: expected a "
						 "node's id",
						 r->file, s, i);
			r->stage_of[id] = (int)s;
		}
	}
	return 0;
}

static int read_path(struct reader *r, struct plan_paths *p, uint32_t m, const json_t *path)
{
	size_t n = json_array_size(path);

	if (n == 0 || n > p->n_stages)
		return error_set(r->err, -EINVAL,
				 "%s: microbatches[%" PRIu32 "].path: expected 1 to %" PRIu32
				 " nodes",
				 r->file, m, p->n_stages);
	for (size_t i = 0; i < n; i++) {
		const json_t *node = json_array_get(path, i);
		json_int_t id = json_is_integer(node) ? json_integer_value(node) : -1;
		int stage = id < 0 || id >= NODES_MOST ? NO_STAGE : r->stage_of[id];

		if (stage == NO_STAGE || (stage == 0) != (i == 0))
			return error_set(r->err, -EINVAL,
					 "%s: microbatches[%" PRIu32 "].path[%zu]: expected %s",
					 r->file, m, i,
					 i ? "an assigned node of a later stage"
					   : "a node of stage 0");
		if (i > 0)
			p->paths[(size_t)m * p->n_stages + i - 1] = (uint32_t)stage;
	}
	p->lengths[m] = (uint32_t)n - 1;
	return 0;
}

static int read_plan(struct reader *r, struct plan_paths *p, const json_t *root)
{
	const char *format = json_string_value(json_object_get(root, "format"));
	const json_t *microbatches = json_object_get(root, "microbatches");
	int rc;

	if (!format || strcmp(format, "skippipe.plan/1") != 0)
		return error_set(r->err, -EINVAL, "%s: format: expected \"skippipe.plan/1\"",
				 r->file);
	rc = read_assignment(r, p, json_object_get(root, "assignment"));
	if (rc)
		return rc;
	p->n = (uint32_t)json_array_size(microbatches);
	if (p->n == 0)
		return error_set(r->err, -EINVAL, "%s: microbatches: expected at least one",
				 r->file);
	p->lengths = calloc(p->n, sizeof(*p->lengths));
	p->paths = calloc((size_t)p->n * p->n_stages, sizeof(*p->paths));
	if (!p->lengths || !p->paths)
		return error_set(r->err, -ENOMEM, "%s: no memory", r->file);
	for (uint32_t m = 0; m < p->n && !rc; m++)
		rc = read_path(r, p, m,
			       json_object_get(json_array_get(microbatches, m), "path"));
	return rc;
}

int plan_paths_read(struct plan_paths *p, const char *file, struct error *err)
{
	struct plan_paths read = { 0 };
	struct reader r = { .file = file, .err = err };
	json_error_t at;
	json_t *root;
	char *text;
	size_t size;
	int rc = file_read(file, PLAN_MOST, &text, &size, err);

	if (rc)
		return rc;
	root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &at);
	free(text);
	if (!root)
		return error_set(err, -EINVAL, "%s: line %d: %s", file, at.line, at.text);
	r.stage_of = alloc_array(NODES_MOST, sizeof(*r.stage_of));
	for (int i = 0; i < NODES_MOST; i++)
		r.stage_of[i] = NO_STAGE;
	rc = read_plan(&r, &read, root);
	free(r.stage_of);
	json_decref(root);
	if (rc)
		plan_paths_free(&read);
	else
		*p = read;
	return rc;
}

void plan_paths_free(struct plan_paths *p)
{
	free(p->lengths);
	free(p->paths);
	*p = (struct plan_paths){ 0 };
}
