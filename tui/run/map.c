/* The map's points. New links correct the points by a few steps from where they are; if many have
 * been added, all points are placed again and turned to lie as near as possible to the former
 * ones. The eye then finds each node where it was. */
#include "tui/run/map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { CHECK_US = 500000, EVERY_US = 2000000, LINK_US = 20, STEPS = 10 };

int map_index(const struct map *m, uint16_t node)
{
	return node < MSG_NODES ? m->index[node] - 1 : -1;
}

const char *map_region_name(const struct map *m, const struct state *s, uint32_t region)
{
	const char *name = s->nodes[m->named[region]].see.location;

	return region == MAP_REGIONS - 1 ? "other places" : *name ? name : "no place";
}

/* ---- nodes and regions ---- */

static uint64_t hash_nodes(const struct state *s)
{
	uint64_t h = 14695981039346656037ull; /* FNV-1a */

	for (uint32_t i = 0; i < s->n_nodes; i++) {
		if (!s->nodes[i].known)
			continue;
		h = (h ^ i) * 1099511628211ull;
		for (const char *c = s->nodes[i].see.location; *c; c++)
			h = (h ^ (unsigned char)*c) * 1099511628211ull;
	}
	return h;
}

/* Returns the region of a location. Locations beyond the last region share it. */
static uint8_t find_region(struct map *m, const struct state *s, uint16_t node)
{
	for (uint32_t r = 0; r < m->n_regions; r++)
		if (strcmp(s->nodes[m->named[r]].see.location, s->nodes[node].see.location) == 0)
			return (uint8_t)r;
	if (m->n_regions == MAP_REGIONS)
		return MAP_REGIONS - 1;
	m->named[m->n_regions] = node;
	return (uint8_t)m->n_regions++;
}

static void list_nodes(struct map *m, const struct state *s)
{
	m->n_nodes = m->n_regions = 0;
	memset(m->sizes, 0, sizeof(m->sizes));
	memset(m->index, 0, sizeof(m->index));
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		if (!s->nodes[i].known)
			continue;
		m->ids[m->n_nodes] = (uint16_t)i;
		m->region[m->n_nodes] = find_region(m, s, (uint16_t)i);
		m->sizes[m->region[m->n_nodes]]++;
		m->index[i] = (uint16_t)++m->n_nodes;
	}
}

/* ---- distances ---- */

/* Returns the distance that a link measures; 0: none. Real latencies say nothing about an emulated
 * network. */
static float length_of(const struct state *s, const struct msg_link *l)
{
	float d = !s->run.emulated         ? l->latency_s
		  : l->planned_delay_s > 0 ? l->planned_delay_s
					   : l->measured_delay_s;

	return d > 0 && d < 1e4f ? fmaxf(d, 1e-6f) : 0;
}

/* Fills the mean distances (n, n) of nodes, or of regions. Returns the number of known links. */
static uint32_t measure(const struct map *m, const struct state *s, bool by_region,
			float *distances, uint32_t n)
{
	uint32_t *count = alloc_array((size_t)n * n, sizeof(*count)), known = 0;

	for (size_t k = 0; k < s->n_links; k++) {
		const struct msg_link *l = &s->links[k];
		int a = map_index(m, l->from), b = map_index(m, l->to);
		float d = length_of(s, l);
		size_t at, mirrored;

		if (a < 0 || b < 0 || !(d > 0))
			continue;
		a = by_region ? m->region[a] : a;
		b = by_region ? m->region[b] : b;
		known++;
		if (a == b)
			continue;
		at = (size_t)a * n + (size_t)b;
		mirrored = (size_t)b * n + (size_t)a;
		count[at] = ++count[mirrored];
		distances[at] += (d - distances[at]) / (float)count[at];
		distances[mirrored] = distances[at];
	}
	free(count);
	return known;
}

float map_times(const struct msg_link *l)
{
	float times = l->measured_delay_s > 0 && l->planned_delay_s > 0
			      ? l->measured_delay_s / l->planned_delay_s
			      : 0;

	return times < 1e6f ? times : 0;
}

/* Lists the links that are slowest against the plan, and cut ones. */
static void find_slow(struct map *m, const struct state *s)
{
	m->n_slow = m->n_cut = 0;
	for (size_t k = 0; k < s->n_links; k++) {
		const struct msg_link *l = &s->links[k];
		struct map_link link = { l->from, l->to, map_times(l) };
		uint32_t at = m->n_slow;

		if (l->latency_s < 0 && m->n_cut < MAP_CUT)
			m->cut[m->n_cut++] = link;
		while (at > 0 && link.times > m->slow[at - 1].times)
			at--;
		if (!(link.times > 0) || l->latency_s < 0 || at == MAP_SLOW)
			continue;
		m->n_slow += m->n_slow < MAP_SLOW;
		memmove(&m->slow[at + 1], &m->slow[at], (m->n_slow - 1 - at) * sizeof(link));
		m->slow[at] = link;
	}
}

/* Without a measured link: nodes of one place are near each other, and all places equally far. */
static void guess(const struct map *m, bool by_region, float *distances, uint32_t n)
{
	for (uint32_t a = 0; a < n; a++)
		for (uint32_t b = 0; b < n; b++)
			distances[(size_t)a * n + b] =
				!by_region && m->region[a] == m->region[b] ? 1 : 4;
}

/* ---- the map ---- */

static void place(struct map *m, const float *distances, struct point *points, uint32_t n,
		  uint32_t known, bool fresh)
{
	struct point old[MAP_NODES];

	if (!fresh && known < m->n_placed + m->n_placed / 4 + 1) {
		embedding_refine(points, distances, n, STEPS);
		return;
	}
	memcpy(old, points, n * sizeof(*old));
	embedding_place(points, distances, n);
	if (!fresh)
		embedding_align(points, old, n);
	m->n_placed = known;
}

static void find_centres(struct map *m)
{
	memset(m->regions, 0, sizeof(m->regions));
	for (uint32_t i = 0; i < m->n_nodes; i++) {
		struct point *to = &m->regions[m->region[i]];
		float n = m->sizes[m->region[i]];

		to->x += m->nodes[i].x / n;
		to->y += m->nodes[i].y / n;
	}
}

static void make(struct map *m, const struct state *s, bool fresh)
{
	bool by_region;
	float *distances;
	uint32_t n, known;

	if (fresh)
		list_nodes(m, s);
	by_region = m->n_nodes >= MAP_NODES;
	n = by_region ? m->n_regions : m->n_nodes;
	distances = alloc_array((size_t)n * n, sizeof(*distances));
	known = measure(m, s, by_region, distances, n);
	if (known == 0)
		guess(m, by_region, distances, n);
	place(m, distances, by_region ? m->regions : m->nodes, n, known,
	      fresh || m->measured != (known > 0));
	m->measured = known > 0;
	if (!by_region)
		find_centres(m);
	find_slow(m, s);
	free(distances);
}

void map_update(struct map *m, const struct state *s, int64_t local_us)
{
	uint64_t hash;
	bool fresh;

	if (m->run == s->run.run && m->n_nodes > 0 && local_us - m->checked_us < CHECK_US)
		return;
	hash = hash_nodes(s);
	fresh = m->run != s->run.run || m->nodes_hash != hash;
	m->checked_us = local_us;
	if (!fresh && (m->link_reports == s->link_reports ||
		       local_us - m->made_us < EVERY_US + LINK_US * (int64_t)s->n_links))
		return;
	m->run = s->run.run;
	m->nodes_hash = hash;
	m->link_reports = s->link_reports;
	m->made_us = local_us;
	make(m, s, fresh);
}

/* ---- remarkable things ---- */

bool map_is_slow(const struct msg_link *l)
{
	return map_times(l) >= 2;
}

const struct state_wait *map_newest_wait(const struct state_node *n)
{
	for (uint32_t q = n->n_queue; q-- > 0;)
		if (!n->queue[q].first)
			return &n->queue[q];
	return NULL;
}

const struct state_wait *map_last_collision(const struct state *s)
{
	const struct state_wait *last = state_collision_back(s, 0);

	for (uint32_t i = 0; i < s->n_nodes; i++) {
		const struct state_wait *w = map_newest_wait(&s->nodes[i]);

		if (w && (!last || w->from_us > last->from_us))
			last = w;
	}
	return last;
}
