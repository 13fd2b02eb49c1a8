/* Checks the record of a committed iteration before the replay uses it. The replay alone would not
 * find every error. For example, if a gradient is missing both in the record and in the nodes' sum,
 * the replay gives the recorded weights. The audit finds the missing gradient. */
#include "verify/audit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

struct audit {
	const struct run_part *part;
	const struct store_commit *c;
	uint32_t n_stages;
	/* The following arrays have booleans of one byte each. Shape (n_shards, per_shard): true
	 * if a microbatch read this wave of the shard. A wave is a microbatch's index in its
	 * shard. */
	uint8_t *data_read;
	/* Shape (n_routes, n_stages): true if the route visits the stage. */
	uint8_t *visited;
	/* Shape (n_routes, n_stages): true if a node counted the gradient of the backward pass
	 * ('B'). */
	uint8_t *counted;
	/* For each of the n_routes routes, true if a node counted the gradient of the loss
	 * ('L'). */
	uint8_t *losses_counted;
};

/* Finds a microbatch's route by bisection. This works because the routes are in ascending order
 * of microbatch. Returns NULL if the microbatch has no route. */
static const struct route *find_route(const struct store_commit *c, uint32_t microbatch,
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

static int check_data(struct audit *a, const struct route *r, struct error *err)
{
	const struct run_part *part = a->part;
	uint8_t *data_read;

	if (r->shard >= part->n_shards || r->wave >= part->per_shard)
		return error_set(err, -EPROTO,
				 "microbatch %u reads wave %u of shard %u: the run has %u shards "
				 "of %u waves",
				 r->microbatch, r->wave, r->shard, part->n_shards, part->per_shard);
	data_read = &a->data_read[r->shard * part->per_shard + r->wave];
	if (*data_read)
		return error_set(err, -EPROTO,
				 "microbatch %u reads wave %u of shard %u, which another "
				 "microbatch has read",
				 r->microbatch, r->wave, r->shard);
	*data_read = 1;
	return 0;
}

static int check_route(struct audit *a, size_t index, struct error *err)
{
	const struct route *r = &a->c->routes[index];
	int rc = check_data(a, r, err);

	if (rc != 0)
		return rc;
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

static int check_all_data(const struct audit *a, struct error *err)
{
	for (uint32_t s = 0; s < a->part->n_shards; s++)
		for (uint32_t w = 0; w < a->part->per_shard; w++)
			if (!a->data_read[s * a->part->per_shard + w])
				return error_set(err, -EPROTO,
						 "no microbatch has read wave %u of shard %u", w,
						 s);
	return 0;
}

/* Marks a gradient as counted by a node. Returns -EPROTO if the microbatch did not visit the node's
 * stage, or if a node has counted the gradient already. */
static int count_once(struct audit *a, const struct store_order *o,
		      const struct store_counted *item, struct error *err)
{
	bool loss = item->kind == 'L';
	uint8_t *counted;
	size_t index;

	if (!find_route(a->c, item->microbatch, &index))
		return error_set(err, -EPROTO, "node %u counted microbatch %u, which has no route",
				 o->node, item->microbatch);
	if (loss && o->stage != 0)
		return error_set(err, -EPROTO,
				 "node %u counted the loss of microbatch %u, but holds stage %u",
				 o->node, item->microbatch, o->stage);
	if (!a->visited[index * a->n_stages + o->stage])
		return error_set(err, -EPROTO,
				 "node %u counted microbatch %u in stage %u, which the microbatch "
				 "did not visit",
				 o->node, item->microbatch, o->stage);
	counted = loss ? &a->losses_counted[index] : &a->counted[index * a->n_stages + o->stage];
	if (*counted)
		return error_set(err, -EPROTO, "microbatch %u was counted twice in stage %u%s",
				 item->microbatch, o->stage, loss ? " (loss)" : "");
	*counted = 1;
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
				 "node %u counted %u gradients in stage %u, but took no part in "
				 "the sum",
				 o->node, o->n_counted, o->stage);
	return 0;
}

/* Checks that a node counted the gradient of every visit. count_once has already checked that no
 * gradient was counted twice. */
static int check_counted(const struct audit *a, struct error *err)
{
	for (size_t i = 0; i < a->c->n_routes; i++) {
		const struct route *r = &a->c->routes[i];

		if (!a->losses_counted[i])
			return error_set(err, -EPROTO,
					 "the loss of microbatch %u was counted nowhere",
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
		return error_set(err, -EPROTO, "the sum of stage %u (of %u) is over %u nodes",
				 r->stage, a->n_stages, r->n_nodes);
	for (uint32_t i = 1; i < r->n_nodes; i++)
		if (r->nodes[i] <= r->nodes[i - 1])
			return error_set(err, -EPROTO,
					 "the nodes of stage %u's sum are not in ascending order",
					 r->stage);
	return 0;
}

/* Checks the recorded number of visits of each stage. The run divided the stage's gradient by
 * this number. */
static int check_visits(const struct audit *a, struct error *err)
{
	const struct stage_visits *visits = &a->c->visits;

	if (visits->n == 0)
		return 0;
	if (visits->n != a->n_stages)
		return error_set(err, -EPROTO, "gradients are divided by the visits of %u stages",
				 visits->n);
	for (uint32_t s = 0; s < a->n_stages; s++) {
		uint32_t n = 0;

		for (size_t i = 0; i < a->c->n_routes; i++)
			n += a->visited[i * a->n_stages + s];
		if (n != visits->of[s])
			return error_set(err, -EPROTO,
					 "stage %u's gradient is divided by %u visits, but %u "
					 "microbatches visited it",
					 s, visits->of[s], n);
	}
	return 0;
}

static int check_all(struct audit *a, struct error *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < a->c->n_routes; i++)
		rc = check_route(a, i, err);
	if (rc == 0)
		rc = check_all_data(a, err);
	for (size_t i = 0; rc == 0 && i < a->c->n_reductions; i++)
		rc = check_reduction(a, &a->c->reductions[i], err);
	for (size_t i = 0; rc == 0 && i < a->c->n_orders; i++)
		rc = check_order(a, &a->c->orders[i], err);
	if (rc == 0)
		rc = check_counted(a, err);
	return rc == 0 ? check_visits(a, err) : rc;
}

int audit_commit(const struct run_part *part, const struct store_commit *c, uint32_t n_stages,
		 struct error *err)
{
	struct audit a = { .part = part, .c = c, .n_stages = n_stages };
	size_t visits = c->n_routes * n_stages + 1;
	int rc;

	a.data_read = calloc((size_t)part->n_shards * part->per_shard + 1, 1);
	a.visited = calloc(visits, 1);
	a.counted = calloc(visits, 1);
	a.losses_counted = calloc(c->n_routes + 1, 1);
	if (a.data_read && a.visited && a.counted && a.losses_counted)
		rc = check_all(&a, err);
	else
		rc = error_set(err, -ENOMEM, "out of memory");
	free(a.losses_counted);
	free(a.counted);
	free(a.visited);
	free(a.data_read);
	return rc == 0 ? 0 : error_prefix(err, rc, "iteration %" PRIu64, c->iteration);
}
