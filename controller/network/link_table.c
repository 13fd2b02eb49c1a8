/* link_table.c - stores measured links, and derives the planner's delays from them (link_table.h).
 *
 * A cluster of 200 nodes has 40,000 links, too many to measure all of them. Links that were not
 * measured are estimated. */
#include "controller/network/link_table.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/array.h"

/* Assumed bandwidth, in bytes per second, of a working link that was not measured. A loopback has
 * about this bandwidth. */
static const double usual_bandwidth = 1e9;

struct link_table *link_table_new(uint32_t n)
{
	struct link_table *t = alloc_new(sizeof(*t));

	t->n = n;
	t->replicas = 2;
	t->links = alloc_array((size_t)n * n, sizeof(*t->links));
	return t;
}

void link_table_free(struct link_table *t)
{
	if (t)
		free(t->links);
	free(t);
}

struct link_seen *link_table_at(const struct link_table *t, uint32_t from, uint32_t to)
{
	return &t->links[(size_t)from * t->n + to];
}

bool link_table_isolates(const struct link_table *t, uint32_t node)
{
	uint32_t tried[2] = { 0, 0 }, failed[2] = { 0, 0 };

	for (uint32_t i = 0; i < t->n; i++) {
		const struct link_seen *links[2] = { link_table_at(t, i, node),
						     link_table_at(t, node, i) };

		for (int k = 0; i != node && k < 2; k++) {
			tried[k] += links[k]->known && !links[k]->estimated;
			failed[k] += links[k]->known && links[k]->unreachable;
		}
	}
	return (tried[0] > 1 && failed[0] == tried[0]) || (tried[1] > 1 && failed[1] == tried[1]);
}

void link_table_reached(struct link_table *t, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < t->n; i++) {
		struct link_seen *links[2] = { link_table_at(t, i, to), link_table_at(t, from, i) };

		for (int k = 0; k < 2; k++)
			if (links[k]->unreachable)
				*links[k] = (struct link_seen){ .known = false };
	}
}

double link_table_transfer_s(const struct link_table *t, uint32_t from, uint32_t to, double bytes)
{
	const struct link_seen *l = link_table_at(t, from, to);

	if (from == to)
		return 0;
	if (!l->known || l->unreachable)
		return -1;
	return (double)l->latency_s + bytes / (l->bandwidth > 0 ? l->bandwidth : usual_bandwidth);
}

double link_table_sum_s(const struct link_table *t, uint32_t from, uint32_t to, double bytes)
{
	return link_table_transfer_s(t, from, to, bytes / LINK_TABLE_SUM_PART);
}

double link_table_sync_pair_s(const struct link_table *t, uint32_t from, uint32_t to)
{
	double r = t->replicas > 1 ? t->replicas : 2;
	double exchange_s = link_table_sum_s(t, from, to, t->sum_bytes / r);

	return exchange_s < 0 ? -1 : from == to ? 0 : exchange_s * r / (r - 1);
}

uint32_t link_table_replicas(size_t nodes, size_t stages)
{
	size_t r = stages ? (nodes + stages / 2) / stages : 0;

	return r > 2 ? (uint32_t)r : 2;
}

/* ---- estimates ---- */

static int place_of(int *parent, int i)
{
	while (parent[i] != i)
		i = parent[i] = parent[parent[i]];
	return i;
}

static double median_latency(const struct link_table *t, double *bandwidth)
{
	size_t pairs = (size_t)t->n * t->n, n = 0;
	double *latencies = alloc_array(pairs, sizeof(double)),
	       *speeds = alloc_array(pairs, sizeof(double));
	double latency_s = 0;

	*bandwidth = 0;
	for (size_t i = 0; i < pairs; i++) {
		const struct link_seen *l = &t->links[i];

		if (!l->known || l->unreachable || l->bandwidth <= 0)
			continue;
		latencies[n] = (double)l->latency_s;
		speeds[n++] = l->bandwidth;
	}
	if (n > 0) {
		latency_s = array_median(latencies, n);
		*bandwidth = array_median(speeds, n);
	}
	free(latencies);
	free(speeds);
	return latency_s;
}

struct between {
	double latency_s, bandwidth;
	uint32_t n;
};

/* Groups nodes into places: two nodes are in one place if a link with a latency below near_s
 * connects them (union and find). */
void link_table_estimate(struct link_table *t, double near_s)
{
	int *parent = alloc_array(t->n, sizeof(*parent));
	struct between *sums = alloc_array((size_t)t->n * t->n, sizeof(*sums));
	double bandwidth, latency_s = median_latency(t, &bandwidth);

	for (uint32_t i = 0; i < t->n; i++)
		parent[i] = (int)i;
	for (uint32_t i = 0; i < t->n; i++)
		for (uint32_t j = 0; j < t->n; j++) {
			const struct link_seen *l = link_table_at(t, i, j);

			if (i != j && l->known && !l->unreachable && (double)l->latency_s < near_s)
				parent[place_of(parent, (int)i)] = place_of(parent, (int)j);
		}
	for (uint32_t i = 0; i < t->n; i++)
		for (uint32_t j = 0; j < t->n; j++) {
			const struct link_seen *l = link_table_at(t, i, j);
			struct between *b = &sums[(size_t)place_of(parent, (int)i) * t->n +
						  (size_t)place_of(parent, (int)j)];

			if (i == j || !l->known || l->unreachable)
				continue;
			b->latency_s += (double)l->latency_s;
			b->bandwidth += l->bandwidth;
			b->n++;
		}
	for (uint32_t i = 0; i < t->n; i++)
		for (uint32_t j = 0; j < t->n; j++) {
			struct link_seen *l = link_table_at(t, i, j);
			const struct between *b = &sums[(size_t)place_of(parent, (int)i) * t->n +
							(size_t)place_of(parent, (int)j)];

			if (i == j || l->known)
				continue;
			l->known = l->estimated = true;
			l->latency_s = (float)(b->n ? b->latency_s / b->n : latency_s);
			l->bandwidth = b->n ? b->bandwidth / b->n : bandwidth;
		}
	free(parent);
	free(sums);
}

/* ---- into the cluster ---- */

void link_table_apply(const struct link_table *t, struct cluster *c, uint32_t from, uint32_t to,
		      double delay_s)
{
	size_t at = (size_t)from * t->n + to;
	double share = tensor_format_activation_share(c->formats.wire);
	double bytes_s = delay_s - (double)link_table_at(t, from, to)->latency_s;

	c->delay_s[at] = delay_s;
	if (c->bytes_s)
		c->bytes_s[at] = from == to || bytes_s < 0 ? 0 : bytes_s / share;
	if (c->sync_pair_s)
		c->sync_pair_s[at] = link_table_sync_pair_s(t, from, to);
}

void link_table_apply_all(const struct link_table *t, struct cluster *c)
{
	for (uint32_t i = 0; i < t->n; i++)
		for (uint32_t j = 0; j < t->n; j++)
			link_table_apply(t, c, i, j,
					 link_table_transfer_s(t, i, j, t->activation_bytes));
}

/* ---- as JSON ---- */

/* Unknown links are null. Links that were tried and failed have latency -1 and bandwidth 0. */
static json_t *matrix(const struct link_table *t, bool latency)
{
	json_t *rows = json_array();

	for (uint32_t i = 0; i < t->n; i++) {
		json_t *row = json_array();

		for (uint32_t j = 0; j < t->n; j++) {
			const struct link_seen *l = link_table_at(t, i, j);
			double speed = l->bandwidth > 0 ? l->bandwidth : usual_bandwidth;
			double x = latency ? (double)l->latency_s : speed;

			if (l->unreachable)
				x = latency ? -1 : 0;
			json_array_append_new(row, i == j     ? json_real(0)
						   : l->known ? json_real(x)
							      : json_null());
		}
		json_array_append_new(rows, row);
	}
	return rows;
}

char *link_table_json(const struct link_table *t, const struct cluster *c)
{
	char *plain = cluster_format(c), *text = NULL;
	json_t *o = plain ? json_loads(plain, 0, NULL) : NULL;
	json_t *links = json_object();

	if (o && links) {
		json_object_del(o, "delay_s");
		json_object_del(o, "bytes_s");
		json_object_del(o, "wire");
		json_object_set_new(links, "latency_s", matrix(t, true));
		json_object_set_new(links, "bandwidth_bytes_per_s", matrix(t, false));
		json_object_set(o, "links", links);
		json_object_set_new(o, "activation_bytes", json_real(t->activation_bytes));
		json_object_set_new(o, "weights_bytes_per_stage", json_real(t->sum_bytes));
		text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(9));
	}
	json_decref(links);
	json_decref(o);
	free(plain);
	return text;
}

/* Returns -1 if the entry is null. */
static double entry(const json_t *rows, uint32_t i, uint32_t j)
{
	const json_t *v = json_array_get(json_array_get(rows, i), j);

	return json_is_number(v) ? json_number_value(v) : -1;
}

struct link_table *link_table_parse(const char *text)
{
	json_t *o = json_loads(text, 0, NULL), *links = json_object_get(o, "links");
	json_t *latencies = json_object_get(links, "latency_s");
	json_t *speeds = json_object_get(links, "bandwidth_bytes_per_s");
	struct link_table *t = links ? link_table_new((uint32_t)json_array_size(latencies)) : NULL;
	size_t stages = json_array_size(json_object_get(o, "stages"));

	for (uint32_t i = 0; t && i < t->n; i++)
		for (uint32_t j = 0; j < t->n; j++) {
			double s = entry(latencies, i, j), speed = entry(speeds, i, j);

			if (i != j && (s >= 0 || speed >= 0))
				*link_table_at(t, i, j) = (struct link_seen){
					.known = true,
					.unreachable = s < 0,
					.latency_s = (float)s,
					.bandwidth = speed,
				};
		}
	if (t) {
		t->activation_bytes = json_number_value(json_object_get(o, "activation_bytes"));
		t->sum_bytes = json_number_value(json_object_get(o, "weights_bytes_per_stage"));
		t->replicas = link_table_replicas(t->n, stages);
	}
	json_decref(o);
	return t;
}
