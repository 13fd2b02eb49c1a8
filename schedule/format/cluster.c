/* Clusters as plain data: allocation, copies and the check of their numbers. Only the matrices of
 * nodes by nodes can be large; their allocation may fail without ending the program. */
#include "schedule/format/cluster.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct cluster *cluster_alloc(int n_nodes, int n_stages, bool with_sync)
{
	size_t n = (size_t)n_nodes, pairs = n * n;
	struct cluster *c = alloc_new(sizeof(*c));

	c->name = alloc_string("");
	c->stages = alloc_array((size_t)n_stages, sizeof(*c->stages));
	c->nodes = alloc_array(n, sizeof(*c->nodes));
	c->n_nodes = n_nodes;
	c->n_stages = n_stages;
	c->microbatches_per_data_node = 1;
	c->always = 1;
	for (int s = 0; s < n_stages; s++)
		c->work[s] = 1;
	for (size_t i = 0; i < n; i++) {
		c->nodes[i].stage = -1;
		c->nodes[i].memory = 1;
		c->nodes[i].location = alloc_string("");
	}
	c->delay_s = malloc(pairs * sizeof(*c->delay_s));
	c->sync_pair_s = with_sync ? malloc(pairs * sizeof(*c->sync_pair_s)) : NULL;
	if (!c->delay_s || (with_sync && !c->sync_pair_s)) {
		cluster_free(c);
		return NULL;
	}
	for (size_t i = 0; i < pairs; i++) {
		c->delay_s[i] = -1;
		if (with_sync)
			c->sync_pair_s[i] = -1;
	}
	return c;
}

void cluster_free(struct cluster *c)
{
	if (!c)
		return;
	for (int i = 0; i < c->n_nodes; i++) {
		free(c->nodes[i].name);
		free(c->nodes[i].location);
		free(c->nodes[i].address);
		free(c->nodes[i].device);
	}
	free(c->name);
	free(c->stages);
	free(c->nodes);
	free(c->delay_s);
	free(c->bytes_s);
	free(c->sync_pair_s);
	free(c);
}

static char *copy_text(const char *from)
{
	return from ? alloc_string(from) : NULL;
}

static void copy_matrix(double *to, const double *from, const int *nodes, int n, int n_from)
{
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++)
			to[i * n + k] = from[nodes[i] * n_from + nodes[k]];
}

struct cluster *cluster_pick(const struct cluster *c, const int *nodes, int n)
{
	struct cluster *to = cluster_alloc(n, c->n_stages, c->sync_pair_s != NULL);
	size_t pairs = (size_t)n * (size_t)n;

	if (!to)
		alloc_failed(pairs, sizeof(*c->delay_s));
	free(to->name);
	to->name = copy_text(c->name);
	memcpy(to->stages, c->stages, (size_t)c->n_stages * sizeof(*c->stages));
	memcpy(to->work, c->work, sizeof(c->work));
	copy_matrix(to->delay_s, c->delay_s, nodes, n, c->n_nodes);
	if (c->bytes_s) {
		to->bytes_s = alloc_array(pairs, sizeof(*c->bytes_s));
		copy_matrix(to->bytes_s, c->bytes_s, nodes, n, c->n_nodes);
	}
	if (c->sync_pair_s)
		copy_matrix(to->sync_pair_s, c->sync_pair_s, nodes, n, c->n_nodes);
	for (int i = 0; i < n; i++) {
		const struct cluster_node *from = &c->nodes[nodes[i]];
		struct cluster_node *node = &to->nodes[i];

		free(node->location);
		*node = *from;
		node->name = copy_text(from->name);
		node->location = copy_text(from->location);
		node->address = copy_text(from->address);
		node->device = copy_text(from->device);
	}
	to->microbatches_per_data_node = c->microbatches_per_data_node;
	to->dispatch_overhead_s = c->dispatch_overhead_s;
	to->always = c->always;
	to->formats = c->formats;
	return to;
}

struct cluster *cluster_copy(const struct cluster *c)
{
	int *all = alloc_array((size_t)c->n_nodes, sizeof(*all));
	struct cluster *to;

	for (int i = 0; i < c->n_nodes; i++)
		all[i] = i;
	to = cluster_pick(c, all, c->n_nodes);
	free(all);
	return to;
}

static void count_nodes(const struct cluster *c, const int *stage_of, int *sizes)
{
	memset(sizes, 0, (size_t)c->n_stages * sizeof(*sizes));
	for (int i = 0; i < c->n_nodes; i++)
		if (stage_of[i] >= 0)
			sizes[stage_of[i]]++;
}

/* Makes room for the nodes without a stage: for each of them, the smallest stage other than stage
 * 0 becomes one node larger. The sizes of the stages then add up to the number of nodes. Stage 0
 * stays the same, because its size determines the batch. */
static void add_spare_places(struct cluster *c, const int *stage_of)
{
	for (int i = 0; i < c->n_nodes && c->n_stages > 1; i++) {
		int least = 1;

		for (int s = 2; s < c->n_stages; s++)
			least = c->stages[s] < c->stages[least] ? s : least;
		c->stages[least] += stage_of[i] < 0;
	}
}

bool cluster_may_have_stages(const struct cluster *c, const int *stage_of)
{
	int sizes[CLUSTER_MOST_STAGES];

	count_nodes(c, stage_of, sizes);
	for (int s = 0; s < c->n_stages; s++)
		if (sizes[s] == 0)
			return false;
	return c->microbatches_per_data_node * c->stages[0] % sizes[0] == 0;
}

void cluster_set_stages(struct cluster *c, const int *stage_of)
{
	int batch = c->microbatches_per_data_node * c->stages[0];

	count_nodes(c, stage_of, c->stages);
	c->microbatches_per_data_node = batch / c->stages[0];
	add_spare_places(c, stage_of);
	for (int i = 0; i < c->n_nodes; i++)
		c->nodes[i].stage = stage_of[i];
}

void cluster_reformat(struct cluster *c, const struct tensor_formats *is)
{
	const struct tensor_formats *was = &c->formats;
	double more = tensor_format_activation_share(is->wire) -
		      tensor_format_activation_share(was->wire);
	double sums =
		tensor_format_sum_share(is->sum_wire) / tensor_format_sum_share(was->sum_wire);

	for (size_t i = 0; i < (size_t)c->n_nodes * (size_t)c->n_nodes; i++) {
		if (c->bytes_s && c->bytes_s[i] > 0 && c->delay_s[i] > 0 && was->wire != is->wire)
			c->delay_s[i] = fmax(0, c->delay_s[i] + more * c->bytes_s[i]);
		if (c->sync_pair_s && c->sync_pair_s[i] > 0 && was->sum_wire != is->sum_wire)
			c->sync_pair_s[i] *= sums;
	}
	c->formats = *is;
}

double cluster_task_s(const struct cluster *c, int node, int stage, enum task_kind kind)
{
	const struct cluster_node *n = &c->nodes[node];

	if (kind == TASK_LOSS)
		return n->loss_s;
	return (kind == TASK_FORWARD ? n->forward_s : n->backward_s) * cluster_work(c, stage);
}

double cluster_occupied_s(const struct cluster *c, int from, int to)
{
	size_t at = (size_t)from * (size_t)c->n_nodes + (size_t)to;

	if (!c->bytes_s || from == to || !(c->bytes_s[at] > 0))
		return 0;
	return fmin(c->bytes_s[at] * tensor_format_activation_share(c->formats.wire),
		    c->delay_s[at]);
}

static bool is_time(double s)
{
	return isfinite(s) && s >= 0;
}

static int validate_nodes(const struct cluster *c, struct error *err)
{
	for (int i = 0; i < c->n_nodes; i++) {
		const struct cluster_node *n = &c->nodes[i];

		if (!n->location)
			return error_set(err, -EINVAL, "nodes[%d].location: expected a text", i);
		if (!is_time(n->forward_s) || !is_time(n->backward_s) || !is_time(n->loss_s))
			return error_set(err, -EINVAL,
					 "nodes[%d]: expected forward_s, backward_s and loss_s "
					 "in seconds, 0 or more", i);
		if (n->memory < 0)
			return error_set(err, -EINVAL, "nodes[%d].memory: expected 0 or more", i);
		if (n->stage >= c->n_stages)
			return error_set(err, -EINVAL,
					 "nodes[%d].stage: expected a stage below %d, found %d", i,
					 c->n_stages, n->stage);
	}
	return 0;
}

static int validate_stages(const struct cluster *c, struct error *err)
{
	long sum = 0;

	for (int s = 0; s < c->n_stages; s++) {
		int pinned = 0;

		if (c->stages[s] < 1)
			return error_set(err, -EINVAL,
					 "stages[%d]: expected at least one node, found %d", s,
					 c->stages[s]);
		if (!(c->work[s] > 0) || !isfinite(c->work[s]))
			return error_set(err, -EINVAL,
					 "stage_work[%d]: expected a number, more than 0", s);
		for (int i = 0; i < c->n_nodes; i++)
			pinned += c->nodes[i].stage == s;
		if (pinned > c->stages[s])
			return error_set(err, -EINVAL,
					 "stages[%d]: %d nodes, but %d nodes are pinned to it", s,
					 c->stages[s], pinned);
		sum += c->stages[s];
	}
	if (sum != c->n_nodes)
		return error_set(err, -EINVAL, "stages: expected %d nodes in all, found %ld",
				 c->n_nodes, sum);
	return 0;
}

int cluster_validate(const struct cluster *c, struct error *err)
{
	size_t pairs = (size_t)c->n_nodes * (size_t)c->n_nodes;
	int rc;

	if (c->n_nodes < 1 || c->n_nodes > CLUSTER_MOST_NODES)
		return error_set(err, -EINVAL, "expected 1 to %d nodes",
				 CLUSTER_MOST_NODES);
	if (c->n_stages < 1 || c->n_stages > CLUSTER_MOST_STAGES)
		return error_set(err, -EINVAL, "expected 1 to %d stages",
				 CLUSTER_MOST_STAGES);
	rc = validate_nodes(c, err);
	if (rc == 0)
		rc = validate_stages(c, err);
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < pairs; i++) {
		if (!isfinite(c->delay_s[i]) || (c->bytes_s && !isfinite(c->bytes_s[i])) ||
		    (c->sync_pair_s && !isfinite(c->sync_pair_s[i])))
			return error_set(err, -EINVAL,
					 "delay_s, bytes_s, sync_pair_s: row %zu, "
					 "column %zu: expected a finite number",
					 i / (size_t)c->n_nodes, i % (size_t)c->n_nodes);
	}
	if (!stage_set_has(c->always, 0) || c->always >> (c->n_stages - 1) > 1)
		return error_set(err, -EINVAL,
				 "always_visited: expected stage 0 and stages below %d",
				 c->n_stages);
	if (c->microbatches_per_data_node < 1 ||
	    c->microbatches_per_data_node > CLUSTER_MOST_MICROBATCHES)
		return error_set(err, -EINVAL, "microbatches_per_data_node: expected 1 to %d",
				 CLUSTER_MOST_MICROBATCHES);
	if (!is_time(c->dispatch_overhead_s))
		return error_set(err, -EINVAL, "dispatch_overhead_s: expected 0 or more");
	return 0;
}
