#include "verify/audit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct audit {
	const struct store_run *run;
	const struct store_commit *c;
	uint32_t n_stages;
	uint8_t *data;    /* (n_shards, per_shard) routes that read it */
	uint8_t *visited; /* (n_routes, n_stages) */
	uint8_t *counted; /* (n_routes, n_stages) times B was counted */
	uint8_t *heads;   /* (n_routes) times L was counted */
};

/* Routes are in order of microbatch. */
static const struct store_route *find_route(const struct store_commit *c, uint32_t microbatch,
					    size_t *index)
{
	size_t low = 0, high = c->n_routes;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->routes[middle].microbatch < microbatch)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == c->n_routes || c->routes[low].microbatch != microbatch)
		return NULL;
	*index = low;
	return &c->routes[low];
}

/* Each microbatch reads a piece of data nobody else reads, and visits every stage of its path
 * once, the first first. */
static int check_route(struct audit *a, size_t index, struct error *err)
{
	const struct store_route *r = &a->c->routes[index];
	uint8_t *data;

	if (r->shard >= a->run->n_shards || r->wave >= a->run->per_shard)
		return error_set(err, -EPROTO,
				 "microbatch %u reads wave %u of shard %u: the run has %u shards of %u",
				 r->microbatch, r->wave, r->shard, a->run->n_shards,
				 a->run->per_shard);
	data = &a->data[r->shard * a->run->per_shard + r->wave];
	if (*data)
		return error_set(err, -EPROTO,
				 "microbatch %u reads wave %u of shard %u, which another one has read",
				 r->microbatch, r->wave, r->shard);
	*data = 1;
	if (r->n_hops == 0 || r->stages[0] != 0)
		return error_set(err, -EPROTO, "microbatch %u does not start in stage 0",
				 r->microbatch);
	for (uint32_t h = 0; h < r->n_hops; h++) {
		uint8_t *visited;

		if (r->stages[h] >= a->n_stages)
			return error_set(err, -EPROTO, "microbatch %u visits stage %u of %u",
					 r->microbatch, r->stages[h], a->n_stages);
		visited = &a->visited[index * a->n_stages + r->stages[h]];
		if (*visited)
			return error_set(err, -EPROTO, "microbatch %u visits stage %u twice",
					 r->microbatch, r->stages[h]);
		*visited = 1;
	}
	return 0;
}

static int check_data(const struct audit *a, struct error *err)
{
	for (uint32_t s = 0; s < a->run->n_shards; s++)
		for (uint32_t w = 0; w < a->run->per_shard; w++)
			if (!a->data[s * a->run->per_shard + w])
				return error_set(err, -EPROTO,
						 "wave %u of shard %u was read by no microbatch", w, s);
	return 0;
}

static int count_once(struct audit *a, const struct store_order *o,
		      const struct store_counted *what, struct error *err)
{
	size_t index;
	uint8_t *times;

	if (!find_route(a->c, what->microbatch, &index))
		return error_set(err, -EPROTO, "node %u counted microbatch %u, which has no route",
				 o->node, what->microbatch);
	if (what->kind == 'L' && o->stage != 0)
		return error_set(err, -EPROTO,
				 "node %u counted the loss of microbatch %u, but holds stage %u",
				 o->node, what->microbatch, o->stage);
	if (!a->visited[index * a->n_stages + o->stage])
		return error_set(err, -EPROTO,
				 "node %u counted microbatch %u in stage %u, which it did not visit",
				 o->node, what->microbatch, o->stage);
	times = what->kind == 'L' ? &a->heads[index] : &a->counted[index * a->n_stages + o->stage];
	if (*times)
		return error_set(err, -EPROTO, "microbatch %u was counted twice in stage %u%s",
				 what->microbatch, o->stage, what->kind == 'L' ? " (loss)" : "");
	*times = 1;
	return 0;
}

static const struct store_reduction *find_reduction(const struct store_commit *c, uint8_t stage)
{
	for (size_t i = 0; i < c->n_reductions; i++)
		if (c->reductions[i].stage == stage)
			return &c->reductions[i];
	return NULL;
}

static int check_order(struct audit *a, const struct store_order *o, struct error *err)
{
	const struct store_reduction *r;
	uint32_t i = 0;
	int rc = 0;

	if (o->n_counted == 0)
		return 0;
	if (o->stage >= a->n_stages)
		return error_set(err, -EPROTO, "node %u holds stage %u of %u", o->node, o->stage,
				 a->n_stages);
	for (uint32_t k = 0; rc == 0 && k < o->n_counted; k++)
		rc = count_once(a, o, &o->counted[k], err);
	if (rc != 0)
		return rc;
	r = find_reduction(a->c, o->stage);
	while (r && i < r->n_nodes && r->nodes[i] != o->node)
		i++;
	if (!r || i == r->n_nodes)
		return error_set(err, -EPROTO,
				 "node %u counted %u gradients in stage %u and took no part in its sum",
				 o->node, o->n_counted, o->stage);
	return 0;
}

/* Every visit is counted: with check_order, exactly once. */
static int check_counted(const struct audit *a, struct error *err)
{
	for (size_t i = 0; i < a->c->n_routes; i++) {
		const struct store_route *r = &a->c->routes[i];

		if (!a->heads[i])
			return error_set(err, -EPROTO, "the loss of microbatch %u was counted nowhere",
					 r->microbatch);
		for (uint32_t h = 0; h < r->n_hops; h++)
			if (!a->counted[i * a->n_stages + r->stages[h]])
				return error_set(err, -EPROTO,
						 "microbatch %u was counted nowhere in stage %u",
						 r->microbatch, r->stages[h]);
	}
	return 0;
}

static int check_reduction(const struct audit *a, const struct store_reduction *r,
			   struct error *err)
{
	if (r->stage >= a->n_stages || r->n_nodes == 0)
		return error_set(err, -EPROTO, "the sum of stage %u (of %u) is over %u nodes", r->stage,
				 a->n_stages, r->n_nodes);
	for (uint32_t i = 1; i < r->n_nodes; i++)
		if (r->nodes[i] <= r->nodes[i - 1])
			return error_set(err, -EPROTO, "the nodes of stage %u's sum do not ascend",
					 r->stage);
	return 0;
}

static int check_all(struct audit *a, struct error *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < a->c->n_routes; i++)
		rc = check_route(a, i, err);
	if (rc == 0)
		rc = check_data(a, err);
	for (size_t i = 0; rc == 0 && i < a->c->n_reductions; i++)
		rc = check_reduction(a, &a->c->reductions[i], err);
	for (size_t i = 0; rc == 0 && i < a->c->n_orders; i++)
		rc = check_order(a, &a->c->orders[i], err);
	return rc == 0 ? check_counted(a, err) : rc;
}

int audit_commit(const struct store_run *run, const struct store_commit *c, uint32_t n_stages,
		 struct error *err)
{
	struct audit a = { .run = run, .c = c, .n_stages = n_stages };
	size_t visits = c->n_routes * n_stages + 1;
	int rc;

	a.data = calloc((size_t)run->n_shards * run->per_shard + 1, 1);
	a.visited = calloc(visits, 1);
	a.counted = calloc(visits, 1);
	a.heads = calloc(c->n_routes + 1, 1);
	if (a.data && a.visited && a.counted && a.heads)
		rc = check_all(&a, err);
	else
		rc = error_set(err, -ENOMEM, "out of memory");
	free(a.heads);
	free(a.counted);
	free(a.visited);
	free(a.data);
	return rc == 0 ? 0 : error_prefix(err, rc, "iteration %" PRIu64, c->iteration);
}
