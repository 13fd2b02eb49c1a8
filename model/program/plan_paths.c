/* Reads the paths of a plan file. Training needs nothing else from a plan, so the planner is not
 * linked to this program. This module also checks rules for paths, except for rules that depend on
 * the cluster. A user may have edited the file, and training itself would not notice a broken
 * rule. */
#include "model/program/plan_paths.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/json.h"

enum { PLAN_MOST = 256 << 20, NODES_MOST = 1 << 20, STAGES_MOST = 64, NO_STAGE = -1 };

struct reader {
	const char *file;
	struct error *err;
	int *stage_of; /* (NODES_MOST) stage of each node, or NO_STAGE */
};

static int read_assignment(struct reader *r, struct plan_paths *p, const json_t *assignment)
{
	p->n_stages = (uint32_t)json_array_size(assignment);
	if (p->n_stages == 0 || p->n_stages > STAGES_MOST)
		return error_set(r->err, -EINVAL,
				 "%s: assignment: expected an array of 1 to %d stages", r->file,
				 STAGES_MOST);
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
			if (r->stage_of[id] != NO_STAGE)
				return error_set(r->err, -EINVAL,
						 "%s: assignment[%" PRIu32 "][%zu]: node %d is in "
						 "stage %d too",
						 r->file, s, i, (int)id, r->stage_of[id]);
			r->stage_of[id] = (int)s;
		}
	}
	return 0;
}

static int read_path(struct reader *r, struct plan_paths *p, uint32_t m, const json_t *path)
{
	size_t n = json_array_size(path);
	int stages[STAGES_MOST], at, after;

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
		stages[i] = stage;
		if (i > 0)
			p->paths[(size_t)m * p->n_stages + i - 1] = (uint32_t)stage;
	}
	at = stage_path_misplaced(stages, (int)n, &after);
	if (at >= 0)
		return error_set(r->err, -EINVAL,
				 "%s: microbatches[%" PRIu32
				 "].path[%d]: stage %d does not follow stage %d (rule CC2)",
				 r->file, m, at, stages[at], after);
	p->lengths[m] = (uint32_t)n - 1;
	return 0;
}

/* Reads the stages that no microbatch skips. */
static int read_always(struct reader *r, stage_set *always, const json_t *plan)
{
	const json_t *list = json_object_get(plan, "always_visited");

	*always = 1;
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_int_t stage = json_integer_value(json_array_get(list, i));

		if (stage < 0 || stage >= 64)
			return error_set(r->err, -EINVAL,
					 "%s: always_visited[%zu]: expected a stage", r->file, i);
		*always |= (stage_set)1 << stage;
	}
	return 0;
}

/* Checks that all stages that may be skipped are visited equally often. */
static int check_exposure(struct reader *r, const struct plan_paths *p, stage_set always)
{
	long visits = 0, of[STAGES_MOST] = { 0 };

	for (uint32_t m = 0; m < p->n; m++) {
		visits += 1 + p->lengths[m];
		for (uint32_t i = 0; i < p->lengths[m]; i++)
			of[p->paths[(size_t)m * p->n_stages + i]]++;
	}
	for (uint32_t s = 1; s < p->n_stages; s++) {
		int low, high;

		stage_set_exposure(always, (int)s, (int)p->n_stages, p->n, visits, &low, &high);
		if (of[s] < low || of[s] > high)
			return error_set(r->err, -EINVAL,
					 "%s: microbatches: %ld visit stage %" PRIu32
					 ", expected %d to %d (rule CC3)",
					 r->file, of[s], s, low, high);
	}
	return 0;
}

static int read_plan(struct reader *r, struct plan_paths *p, const json_t *root)
{
	const json_t *microbatches = json_object_get(root, "microbatches");
	stage_set always;
	int rc;

	for (int i = 0; i < NODES_MOST; i++)
		r->stage_of[i] = NO_STAGE;
	rc = read_assignment(r, p, json_object_get(root, "assignment"));
	if (rc)
		return rc;
	p->n = (uint32_t)json_array_size(microbatches);
	if (p->n == 0)
		return error_set(r->err, -EINVAL, "%s: microbatches: expected at least one",
				 r->file);
	p->lengths = alloc_array(p->n, sizeof(*p->lengths));
	p->paths = alloc_array((size_t)p->n * p->n_stages, sizeof(*p->paths));
	for (uint32_t m = 0; m < p->n && !rc; m++)
		rc = read_path(r, p, m,
			       json_object_get(json_array_get(microbatches, m), "path"));
	if (!rc)
		rc = read_always(r, &always, root);
	return rc ? rc : check_exposure(r, p, always);
}

/* Reads a phase's plan and adds it to the plans of the training. */
static int add_plan(struct reader *r, struct planned_paths *p, const json_t *root)
{
	struct plan_paths *plan = &p->plans[p->n++];
	int rc = read_plan(r, plan, root);

	if (!rc && (plan->n_stages != p->plans[0].n_stages || plan->n != p->plans[0].n))
		rc = error_set(r->err, -EINVAL,
			       "%s: the phases' plans differ in stages or microbatches", r->file);
	return rc;
}

/* Reads the plans of a run's phases. */
static int read_phases(struct reader *r, struct planned_paths *p, const json_t *root)
{
	const json_t *list = json_object_get(json_object_get(root, "with_moves"), "phases");
	struct skip_schedule *s = &p->phases;
	int rc;

	s->n = (uint32_t)json_array_size(list);
	if (s->n == 0 || s->n > SKIP_SCHEDULE_MOST)
		return error_set(r->err, -EINVAL, "%s: with_moves.phases: expected 1 to %d phases",
				 r->file, SKIP_SCHEDULE_MOST);
	p->plans = alloc_array(s->n, sizeof(*p->plans));
	rc = read_always(r, &p->always, json_object_get(json_array_get(list, 0), "plan"));
	for (uint32_t k = 0; k < s->n && !rc; k++) {
		const json_t *phase = json_array_get(list, k);
		json_int_t from = json_integer_value(json_object_get(phase, "from"));
		json_int_t skip = json_integer_value(json_object_get(phase, "skip"));
		json_int_t share = json_integer_value(json_object_get(phase, "skip_share"));

		if ((k == 0 && from != 1) || (k > 0 && from <= (json_int_t)s->phases[k - 1].from) ||
		    skip < 0 || skip >= 64 || share < 0 || share > 99)
			return error_set(r->err, -EINVAL,
					 "%s: with_moves.phases[%" PRIu32
					 "]: expected from, skip and skip_share of a phase",
					 r->file, k);
		s->phases[k] = (struct skip_phase){ .from = (uint64_t)from,
						    .skip = (uint32_t)skip,
						    .share = (uint32_t)share };
		rc = add_plan(r, p, json_object_get(phase, "plan"));
	}
	return rc;
}

static int read_root(struct reader *r, struct planned_paths *p, const json_t *root)
{
	const char *format = json_string_value(json_object_get(root, "format"));

	if (format && strcmp(format, "skippipe.phases/1") == 0)
		return read_phases(r, p, root);
	if (!format || strcmp(format, "skippipe.plan/1") != 0)
		return error_set(r->err, -EINVAL,
				 "%s: format: expected \"skippipe.plan/1\" or "
				 "\"skippipe.phases/1\"",
				 r->file);
	p->plans = alloc_new(sizeof(*p->plans));
	return add_plan(r, p, root);
}

int planned_paths_read(struct planned_paths *p, const char *file, struct error *err)
{
	struct planned_paths read = { 0 };
	struct reader r = { .file = file, .err = err };
	json_t *root;
	int rc = json_read_object(file, PLAN_MOST, &root, err);

	if (rc)
		return rc;
	r.stage_of = alloc_array(NODES_MOST, sizeof(*r.stage_of));
	rc = read_root(&r, &read, root);
	free(r.stage_of);
	json_decref(root);
	if (rc)
		planned_paths_free(&read);
	else
		*p = read;
	return rc;
}

void planned_paths_free(struct planned_paths *p)
{
	for (uint32_t k = 0; k < p->n; k++) {
		free(p->plans[k].lengths);
		free(p->plans[k].paths);
	}
	free(p->plans);
	*p = (struct planned_paths){ 0 };
}

const struct plan_paths *planned_paths_at(const struct planned_paths *p, uint64_t iteration)
{
	return &p->plans[p->phases.n > 0 ? skip_schedule_at(&p->phases, iteration + 1) : 0];
}
