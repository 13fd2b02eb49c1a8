/* Reads skippipe.fleet/1. Every message names the entry of the file that is wrong. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "schedule/fleet/fleet_parts.h"
#include "schedule/fleet/stage_cost.h"
#include "base/json.h"

#define FORMAT "skippipe.fleet/1"
#define CLUSTER_FORMAT "skippipe.cluster/1"
#define MOST_BYTES ((size_t)1 << 30)
#define MEGABIT (1e6 / 8)
#define GIGA 1e9
/* Latency and bandwidth between two cards of one machine, whose messages pass through the machine's
 * memory. */
#define INSIDE_LATENCY_S 1e-4
#define INSIDE_BYTES_PER_S 2e9

static const char *const keys[] = {
	"format", "name", "machines", "links", "transfer_overhead_s", "dispatch_overhead_s", NULL
};
static const char *const machine_keys[] = { "name",      "count",        "cards",
					    "place",     "device",       "memory_gb",
					    "up_mbit_s", "down_mbit_s",  "price_per_hour",
					    "spot",      "tokens_per_s", NULL };
static const char *const link_keys[] = { "a", "b", "latency_ms", "bandwidth_mbit_s", NULL };

/* A link that the file gives between two places, or within a place */
struct place_link {
	const char *a, *b; /* names of the places, borrowed from the JSON */
	double latency_s, bandwidth;
};

struct place_links {
	struct place_link *of;
	int n;
};

static bool is_between(const struct place_link *l, const char *a, const char *b)
{
	return (strcmp(l->a, a) == 0 && strcmp(l->b, b) == 0) ||
	       (strcmp(l->a, b) == 0 && strcmp(l->b, a) == 0);
}

/* ---- machines ---- */

/* Reads an optional number above 0. */
static int read_rate(const json_t *v, const char *where, const char *key, double unit,
		     double fallback, double *out, struct error *err)
{
	int rc;

	*out = fallback;
	if (!json_object_get(v, key))
		return 0;
	rc = json_number(v, where, key, 1e-9, NULL, out, err);
	*out *= unit;
	return rc;
}

/* Takes the speed and the memory of the machine's cards from the table of cards, unless the entry
 * gives them. tokens_per_s is the speed of one such card that trains the whole model alone. */
static int read_card(const json_t *v, const char *where, const struct fleet_facts *facts,
		     struct fleet_machines *e, struct error *err)
{
	const struct model_shape *m = facts->shape;
	struct card card = { .memory_bytes = NAN, .bytes_per_s = INFINITY };
	double tokens_per_s;
	int rc = json_text(v, where, "device", false, &e->device, err);
	struct error unknown;

	if (rc == 0)
		rc = read_rate(v, where, "tokens_per_s", 1, 0, &tokens_per_s, err);
	if (rc != 0)
		return rc;
	if (!e->device && tokens_per_s == 0)
		return error_set(err, -EINVAL, "%s: expected a device or tokens_per_s", where);
	if (e->device && cards_find(facts->cards, e->device, &card, &unknown) != 0 &&
	    tokens_per_s == 0)
		return error_set(err, -EINVAL,
				 "%s.device: %s. For another card give tokens_per_s and memory_gb",
				 where, unknown.text);
	e->bytes_per_s = card.bytes_per_s;
	e->flop_per_s = card.flop_per_s * cards_share(facts->cards, m->width);
	e->speed = card.has_measured_share ? FLEET_SHARE_MEASURED : FLEET_SHARE_ASSUMED;
	if (tokens_per_s > 0) {
		e->speed = FLEET_SPEED_MEASURED;
		e->flop_per_s =
			tokens_per_s * 3 * (m->n_layers * m->layer_flop + m->head_flop) / m->tokens;
	}
	rc = read_rate(v, where, "memory_gb", GIGA, card.memory_bytes, &e->memory_bytes, err);
	if (rc == 0 && isnan(e->memory_bytes))
		return error_set(err, -EINVAL,
				 "%s.memory_gb: missing, and the table has no such card", where);
	return rc;
}

static int read_machines(const json_t *list, int i, const struct fleet_facts *facts,
			 struct fleet *f, struct error *err)
{
	const json_t *v = json_array_get(list, (size_t)i);
	struct fleet_machines *e = &f->entries[i];
	const int one = 1;
	char where[96];
	int rc;

	e->price_per_hour = NAN;
	snprintf(where, sizeof(where), "machines[%d]", i);
	if (!json_is_object(v))
		return json_expected(v, where, "", "an object", err);
	rc = json_text(v, where, "name", true, &e->name, err);
	if (rc != 0)
		return rc;
	snprintf(where, sizeof(where), "machines[%d] (\"%.40s\")", i, e->name);
	for (int k = 0; k < i; k++)
		if (strcmp(f->entries[k].name, e->name) == 0)
			return error_set(err, -EINVAL, "%s.name: machines[%d] has it too", where,
					 k);
	rc = json_known_keys(v, where, machine_keys, err);
	if (rc == 0)
		rc = json_text(v, where, "place", true, &e->place, err);
	if (rc == 0)
		rc = json_int(v, where, "count", 1, FLEET_MOST_NODES, &one, &e->count, err);
	if (rc == 0)
		rc = json_int(v, where, "cards", 1, 64, &one, &e->cards, err);
	if (rc == 0)
		rc = read_card(v, where, facts, e, err);
	if (rc == 0)
		rc = read_rate(v, where, "up_mbit_s", MEGABIT, INFINITY, &e->up, err);
	if (rc == 0)
		rc = read_rate(v, where, "down_mbit_s", MEGABIT, INFINITY, &e->down, err);
	if (rc == 0 && json_object_get(v, "price_per_hour"))
		rc = json_number(v, where, "price_per_hour", 0, NULL, &e->price_per_hour, err);
	if (rc == 0)
		rc = json_bool(v, where, "spot", false, &e->is_spot, err);
	return rc;
}

/* ---- links ---- */

static bool has_place(const struct fleet *f, const char *place)
{
	for (int e = 0; e < f->n_entries; e++)
		if (strcmp(f->entries[e].place, place) == 0)
			return true;
	return false;
}

static int read_link(const json_t *list, int i, const struct fleet *f, struct place_links *links,
		     struct error *err)
{
	const json_t *v = json_array_get(list, (size_t)i);
	struct place_link *l = &links->of[i];
	const char *ends[2];
	double ms, mbit;
	char where[32];
	int rc;

	snprintf(where, sizeof(where), "links[%d]", i);
	l->a = ends[0] = json_string_value(json_object_get(v, "a"));
	l->b = ends[1] = json_string_value(json_object_get(v, "b"));
	if (!l->a || !l->b)
		return json_expected(v, where, "", "an object with two places, a and b", err);
	for (int k = 0; k < 2; k++)
		if (!has_place(f, ends[k]))
			return error_set(err, -EINVAL, "%s.%c: no machine is in \"%.60s\"", where,
					 'a' + k, ends[k]);
	for (int k = 0; k < i; k++)
		if (is_between(&links->of[k], l->a, l->b))
			return error_set(err, -EINVAL,
					 "%s: links[%d] is between \"%.60s\" and \"%.60s\" too; "
					 "keep one of the two",
					 where, k, l->a, l->b);
	rc = json_known_keys(v, where, link_keys, err);
	if (rc == 0)
		rc = json_number(v, where, "latency_ms", 0, NULL, &ms, err);
	if (rc == 0)
		rc = json_number(v, where, "bandwidth_mbit_s", 1e-6, NULL, &mbit, err);
	if (rc != 0)
		return rc;
	l->latency_s = ms / 1000;
	l->bandwidth = mbit * MEGABIT;
	return 0;
}

/* Gives the link between two places: the link in the file, otherwise the link between the measured
 * regions. */
static int find_link(const struct place_links *links, const struct regions *regions, const char *a,
		     const char *b, double *latency_s, double *bandwidth)
{
	for (int i = 0; i < links->n; i++) {
		if (is_between(&links->of[i], a, b)) {
			*latency_s = links->of[i].latency_s;
			*bandwidth = links->of[i].bandwidth;
			return 0;
		}
	}
	return regions ? regions_link(regions, a, b, latency_s, bandwidth, NULL) : -ENOENT;
}

/* Sets the links from the machines of entry a to the machines of entry b. first: array of
 * n_entries + 1, the first node of each entry, followed by the number of nodes. */
static void set_links(struct fleet *f, const int *first, int a, int b, double latency_s,
		      double bandwidth)
{
	double least = fmin(bandwidth, fmin(f->entries[a].up, f->entries[b].down));

	for (int i = first[a]; i < first[a + 1]; i++) {
		for (int j = first[b]; j < first[b + 1]; j++) {
			size_t at = (size_t)i * (size_t)f->n_nodes + (size_t)j;
			bool inside = f->nodes[i].machine == f->nodes[j].machine;

			f->latency_s[at] = inside ? INSIDE_LATENCY_S : latency_s;
			f->bandwidth[at] = inside ? INSIDE_BYTES_PER_S : least;
		}
	}
}

static int fill_links(struct fleet *f, const struct place_links *links,
		      const struct regions *regions, struct error *err)
{
	int *first = alloc_array((size_t)f->n_entries + 1, sizeof(*first)), rc = 0;

	first[0] = 0;
	for (int e = 0; e < f->n_entries; e++)
		first[e + 1] = first[e] + f->entries[e].count * f->entries[e].cards;
	for (int i = 0; rc == 0 && i < f->n_entries * f->n_entries; i++) {
		const int a = i / f->n_entries, b = i % f->n_entries;
		const struct fleet_machines *x = &f->entries[a], *y = &f->entries[b];
		double latency_s = 0, bandwidth = 1;

		if (find_link(links, regions, x->place, y->place, &latency_s, &bandwidth) != 0)
			rc = error_set(err, -EINVAL,
				       "links: none between \"%.60s\" (machines[%d]) and "
				       "\"%.60s\" (machines[%d]), and the measured regions have "
				       "none; add one",
				       x->place, a, y->place, b);
		else
			set_links(f, first, a, b, latency_s, bandwidth);
	}
	free(first);
	return rc;
}

/* Takes the links of a measured cluster, whose nodes must be those of the fleet in the same
 * order. */
static int take_measured(struct fleet *f, const char *path, const struct model_shape *shape,
			 struct error *err)
{
	size_t bytes = (size_t)f->n_nodes * (size_t)f->n_nodes * sizeof(double);
	struct cluster *c;
	struct fleet *measured = NULL;
	int rc = cluster_read(path, &c, err);

	if (rc != 0)
		return error_prefix(err, rc, "links");
	if (c->n_nodes != f->n_nodes)
		rc = error_set(err, -EINVAL,
			       "links: %s has %d nodes, and the machines have %d "
			       "cards",
			       path, c->n_nodes, f->n_nodes);
	if (rc == 0)
		rc = fleet_of_cluster(c, shape, &measured, err);
	if (rc == 0) {
		memcpy(f->latency_s, measured->latency_s, bytes);
		memcpy(f->bandwidth, measured->bandwidth, bytes);
	}
	fleet_free(measured);
	cluster_free(c);
	return rc;
}

static int read_links(const json_t *root, const struct fleet_facts *facts, struct fleet *f,
		      struct error *err)
{
	const json_t *v = json_object_get(root, "links");
	struct place_links links = { 0 };
	int rc = 0;

	if (json_is_string(v))
		return take_measured(f, json_string_value(v), facts->shape, err);
	if (v && !json_is_array(v))
		return json_expected(v, "", "links", "an array, or the name of a measured cluster",
				     err);
	links.n = (int)json_array_size(v);
	links.of = alloc_array((size_t)links.n, sizeof(*links.of));
	for (int i = 0; rc == 0 && i < links.n; i++)
		rc = read_link(v, i, f, &links, err);
	if (rc == 0)
		rc = fill_links(f, &links, facts->regions, err);
	free(links.of);
	return rc;
}

/* ---- the file ---- */

static int read_fleet(const json_t *root, const struct fleet_facts *facts, struct fleet *f,
		      struct error *err)
{
	const double zero = 0;
	const json_t *list;
	int rc = json_text(root, "", "name", true, &f->name, err);

	if (rc == 0)
		rc = json_list(root, "", "machines", -1, &list, err);
	if (rc != 0)
		return rc;
	if (json_array_size(list) > FLEET_MOST_NODES)
		return error_set(err, -EINVAL, "machines: expected at most %d entries",
				 FLEET_MOST_NODES);
	f->n_entries = (int)json_array_size(list);
	f->entries = alloc_array((size_t)f->n_entries, sizeof(*f->entries));
	for (int i = 0; rc == 0 && i < f->n_entries; i++)
		rc = read_machines(list, i, facts, f, err);
	if (rc == 0)
		rc = fleet_allocate_nodes(f, err);
	if (rc == 0)
		rc = read_links(root, facts, f, err);
	if (rc == 0)
		rc = json_number(root, "", "transfer_overhead_s", 0, &zero, &f->transfer_overhead_s,
				 err);
	if (rc == 0)
		rc = json_number(root, "", "dispatch_overhead_s", 0, &zero, &f->dispatch_overhead_s,
				 err);
	return rc;
}

int fleet_parse(const char *text, size_t size, const struct fleet_facts *facts, struct fleet **out,
		struct error *err)
{
	json_t *root;
	struct fleet *f;
	int rc = json_parse(text, size, FORMAT, keys, &root, err);

	if (rc != 0)
		return rc;
	f = alloc_new(sizeof(*f));
	rc = read_fleet(root, facts, f, err);
	json_decref(root);
	if (rc != 0) {
		fleet_free(f);
		return rc;
	}
	*out = f;
	return 0;
}

/* Returns true if the text is an object whose "format" is that of a cluster. */
static bool is_cluster(const char *text, size_t size)
{
	json_t *root = json_loadb(text, size, 0, NULL);
	const char *format = json_string_value(json_object_get(root, "format"));
	bool is = format && strcmp(format, CLUSTER_FORMAT) == 0;

	json_decref(root);
	return is;
}

int fleet_read(const char *path, const struct fleet_facts *facts, struct fleet **out,
	       struct error *err)
{
	struct cluster *c = NULL;
	char *text;
	size_t size;
	int rc = file_read_text(path, MOST_BYTES, &text, &size, err);

	if (rc != 0)
		return rc;
	if (is_cluster(text, size)) {
		rc = cluster_parse(text, size, &c, err);
		if (rc == 0)
			rc = fleet_of_cluster(c, facts->shape, out, err);
		cluster_free(c);
	} else {
		rc = fleet_parse(text, size, facts, out, err);
	}
	free(text);
	return rc == 0 ? 0 : error_prefix(err, rc, "%s", path);
}
