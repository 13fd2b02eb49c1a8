#include "schedule/format/plan.h"

#include <stdlib.h>
#include <string.h>

struct plan *plan_alloc(int n_stages, int n_assigned, int n_microbatches, int path_length)
{
	struct plan *p = calloc(1, sizeof(*p));
	size_t n = (size_t)n_microbatches, length = (size_t)path_length;

	if (!p)
		return NULL;
	p->stage_start = calloc((size_t)n_stages + 1, sizeof(*p->stage_start));
	p->assigned = calloc((size_t)n_assigned + 1, sizeof(*p->assigned));
	p->microbatches = calloc(n + 1, sizeof(*p->microbatches));
	p->visits = calloc(n * length + 1, sizeof(*p->visits));
	if (!p->stage_start || !p->assigned || !p->microbatches || !p->visits) {
		plan_free(p);
		return NULL;
	}
	p->n_stages = n_stages;
	p->stage_start[n_stages] = n_assigned;
	p->path_length = path_length;
	p->n_microbatches = n_microbatches;
	for (size_t i = 0; i < n; i++) {
		p->microbatches[i].id = (int)i;
		p->microbatches[i].length = path_length;
		p->microbatches[i].path = p->visits + i * length;
	}
	return p;
}

void plan_free(struct plan *p)
{
	if (!p)
		return;
	for (int i = 0; p->orders && i < p->n_orders; i++)
		free(p->orders[i].tasks);
	free(p->orders);
	free(p->stage_start);
	free(p->assigned);
	free(p->microbatches);
	free(p->visits);
	free(p->predicted.exposure);
	free(p->search.algorithm);
	free(p->search.history);
	free(p);
}

/* memdup: NULL stays NULL; *ok becomes false when memory runs out. */
static void *duplicate_bytes(const void *from, size_t size, bool *ok)
{
	void *to;

	if (!from)
		return NULL;
	to = malloc(size ? size : 1);
	if (to)
		memcpy(to, from, size);
	else
		*ok = false;
	return to;
}

static bool copy_orders(struct plan *to, const struct plan *from)
{
	bool ok = true;

	if (from->n_orders == 0)
		return true;
	to->orders = calloc((size_t)from->n_orders, sizeof(*to->orders));
	if (!to->orders)
		return false;
	for (to->n_orders = 0; ok && to->n_orders < from->n_orders; to->n_orders++) {
		const struct plan_order *o = &from->orders[to->n_orders];

		to->orders[to->n_orders] = *o;
		to->orders[to->n_orders].tasks =
			duplicate_bytes(o->tasks, (size_t)o->n_tasks * sizeof(*o->tasks), &ok);
	}
	return ok;
}

/* The flat arrays first, with paths that point into the copy; then what is owned apart. */
struct plan *plan_copy(const struct plan *p)
{
	size_t visits = 0;
	struct plan *to;
	bool ok = true;

	for (int i = 0; i < p->n_microbatches; i++)
		visits += (size_t)p->microbatches[i].length;
	to = plan_alloc(p->n_stages, p->stage_start[p->n_stages], p->n_microbatches, 0);
	if (!to)
		return NULL;
	free(to->visits);
	to->path_length = p->path_length;
	to->overlap_sync = p->overlap_sync;
	to->visits = calloc(visits + 1, sizeof(*to->visits));
	if (!to->visits)
		goto free_copy;
	memcpy(to->stage_start, p->stage_start, ((size_t)p->n_stages + 1) * sizeof(int));
	memcpy(to->assigned, p->assigned, (size_t)p->stage_start[p->n_stages] * sizeof(int));
	visits = 0;
	for (int i = 0; i < p->n_microbatches; i++) {
		to->microbatches[i] = p->microbatches[i];
		to->microbatches[i].path = to->visits + visits;
		visits += (size_t)p->microbatches[i].length;
		memcpy(to->microbatches[i].path, p->microbatches[i].path,
		       (size_t)p->microbatches[i].length * sizeof(int));
	}
	to->predicted = p->predicted;
	to->search = p->search;
	to->search.algorithm = NULL;
	to->search.history = NULL;
	to->predicted.exposure = duplicate_bytes(p->predicted.exposure,
					   (size_t)p->n_stages * sizeof(int), &ok);
	if (p->search.algorithm)
		to->search.algorithm = duplicate_bytes(p->search.algorithm,
						 strlen(p->search.algorithm) + 1, &ok);
	to->search.history = duplicate_bytes(p->search.history,
				       (size_t)p->search.n_history * sizeof(*p->search.history),
				       &ok);
	if (!ok || !copy_orders(to, p))
		goto free_copy;
	return to;

free_copy:
	plan_free(to);
	return NULL;
}

double plan_visible_sync_s(const struct plan *p)
{
	const struct plan_predicted *d = &p->predicted;

	return p->overlap_sync ? d->total_s - d->iteration_s : d->sync_s;
}

void plan_stages(const struct plan *p, int n_nodes, int *stage_of)
{
	for (int i = 0; i < n_nodes; i++)
		stage_of[i] = -1;
	for (int s = 0; s < p->n_stages; s++) {
		for (int i = p->stage_start[s]; i < p->stage_start[s + 1]; i++) {
			int node = p->assigned[i];

			if (node >= 0 && node < n_nodes)
				stage_of[node] = s;
		}
	}
}
