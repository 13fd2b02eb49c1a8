/* Plans as plain data: allocation, copies and look-ups. The sizes of a plan that is read are
 * limited by the size of its file (plan_json.c). */
#include "schedule/format/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct plan *plan_alloc(int n_stages, int n_assigned, int n_microbatches, int path_length)
{
	struct plan *p = alloc_new(sizeof(*p));
	size_t n = (size_t)n_microbatches, length = (size_t)path_length;

	p->stage_start = alloc_array((size_t)n_stages + 1, sizeof(*p->stage_start));
	p->assigned = alloc_array((size_t)n_assigned, sizeof(*p->assigned));
	p->microbatches = alloc_array(n, sizeof(*p->microbatches));
	p->visits = alloc_array(n * length, sizeof(*p->visits));
	p->n_stages = n_stages;
	p->stage_start[n_stages] = n_assigned;
	p->path_length = path_length;
	p->always = 1;
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
	for (int i = 0; i < p->n_orders; i++)
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

/* A copy of NULL is NULL. */
static void *copy_bytes(const void *from, size_t size)
{
	return from ? alloc_copy(from, size) : NULL;
}

static void copy_orders(struct plan *to, const struct plan *from)
{
	to->n_orders = from->n_orders;
	to->orders = copy_bytes(from->orders, (size_t)from->n_orders * sizeof(*from->orders));
	for (int i = 0; i < from->n_orders; i++) {
		const struct plan_order *o = &from->orders[i];

		to->orders[i].tasks =
			copy_bytes(o->tasks, (size_t)o->n_tasks * sizeof(*o->tasks));
	}
}

static void copy_paths(struct plan *to, const struct plan *from)
{
	size_t visits = 0;

	for (int i = 0; i < from->n_microbatches; i++)
		visits += (size_t)from->microbatches[i].length;
	free(to->visits);
	to->visits = alloc_array(visits, sizeof(*to->visits));
	visits = 0;
	for (int i = 0; i < from->n_microbatches; i++) {
		to->microbatches[i] = from->microbatches[i];
		to->microbatches[i].path = to->visits + visits;
		visits += (size_t)from->microbatches[i].length;
		memcpy(to->microbatches[i].path, from->microbatches[i].path,
		       (size_t)from->microbatches[i].length * sizeof(int));
	}
}

struct plan *plan_copy(const struct plan *p)
{
	int assigned = p->stage_start[p->n_stages];
	struct plan *to = plan_alloc(p->n_stages, assigned, p->n_microbatches, 0);

	to->path_length = p->path_length;
	to->skip_share = p->skip_share;
	to->always = p->always;
	to->overlap_sync = p->overlap_sync;
	memcpy(to->stage_start, p->stage_start, ((size_t)p->n_stages + 1) * sizeof(int));
	memcpy(to->assigned, p->assigned, (size_t)assigned * sizeof(int));
	copy_paths(to, p);
	copy_orders(to, p);
	to->predicted = p->predicted;
	to->predicted.exposure = copy_bytes(p->predicted.exposure,
					    (size_t)p->n_stages * sizeof(int));
	to->search = p->search;
	to->search.algorithm = p->search.algorithm ? alloc_string(p->search.algorithm) : NULL;
	to->search.history = copy_bytes(p->search.history,
					(size_t)p->search.n_history * sizeof(*p->search.history));
	return to;
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
