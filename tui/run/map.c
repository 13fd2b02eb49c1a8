/* Makes the map's points. When a few more links are measured, the points move by a few steps. When
 * many are measured, all points are placed from the start; then the map is rotated and mirrored so
 * that each point is as near as possible to its former position. Thus the operator finds each node
 * where it was. */
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
	uint64_t h = 14695981039346656037ull; /* start value of the hash FNV-1a */

	for (uint32_t i = 0; i < s->n_nodes; i++) {
		if (!s->nodes[i].known)
			continue;
		h = (h ^ i) * 1099511628211ull;
		for (const char *c = s->nodes[i].see.location; *c; c++)
			h = (h ^ (unsigned char)*c) * 1099511628211ull;
	}
	return h;
}

/* Returns the region of a node's location; a new location becomes a new region. If all MAP_REGIONS
 * are in use, the other locations share the last region. */
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

/* Returns the distance that a link's measurements give, in seconds; 0: unknown. */
static float length_of(const struct msg_link *l, bool by_transfers)
{
	float d = !by_transfers            ? l->latency_s
		  : l->planned_delay_s > 0 ? l->planned_delay_s
					   : l->measured_delay_s;

	return d > 0 && d < 1e4f ? fmaxf(d, 1e-6f) : 0;
}

/* Distances between nodes or regions. distances and count are arrays of (n, n): the distance, and
 * the number of measurements from which it was made. */
struct sums {
	float *distances;
	uint32_t *count, n, known;
	bool by_region;
	bool least; /* a distance is the shortest of its measurements; false: their mean */
};

static void add_distance(struct sums *t, const struct map *m, uint16_t from, uint16_t to, float d)
{
	int a = map_index(m, from), b = map_index(m, to);
	size_t at, mirrored;

	if (a < 0 || b < 0 || !(d > 0))
		return;
	a = t->by_region ? m->region[a] : a;
	b = t->by_region ? m->region[b] : b;
	t->known++;
	if (a == b)
		return;
	at = (size_t)a * t->n + (size_t)b;
	mirrored = (size_t)b * t->n + (size_t)a;
	t->count[at] = ++t->count[mirrored];
	if (!t->least)
		t->distances[at] += (d - t->distances[at]) / (float)t->count[at];
	else if (t->count[at] == 1 || d < t->distances[at])
		t->distances[at] = d;
	t->distances[mirrored] = t->distances[at];
}

/* Adds distances from the transfers of the current iteration, because a replay has no measured
 * links. The shortest transfer between two nodes counts: a longer one may have waited for other
 * transfers. */
static void add_transfers(struct sums *t, const struct map *m, const struct state *s)
{
	t->least = true;
	for (uint32_t i = 0; i < s->n_flights; i++) {
		const struct state_flight *f = &s->flights[i];

		for (uint32_t p = 1; f->known && p <= 2 * f->route.n_hops; p++) {
			const struct state_hop *h = &f->chain[p];

			if (h->arrived_us && h[-1].ended_us && h->arrived_us > h[-1].ended_us)
				add_distance(
					t, m, state_chain_node(f, p - 1), state_chain_node(f, p),
					(float)state_plan_s(s, h->arrived_us - h[-1].ended_us));
		}
	}
}

/* Returns true if no latency is known, so that distances must be transfer times. A replay has no
 * latencies, and an emulated network may be described by delays only. */
static bool has_transfers_only(const struct state *s)
{
	for (size_t k = 0; s->run.emulated && k < s->n_links; k++)
		if (s->links[k].latency_s > 0)
			return false;
	return s->run.emulated || s->n_links == 0;
}

static void add_links(struct sums *t, const struct map *m, const struct state *s)
{
	for (size_t k = 0; k < s->n_links; k++)
		add_distance(t, m, s->links[k].from, s->links[k].to,
			     length_of(&s->links[k], m->by_transfers));
}

float map_times(const struct msg_link *l)
{
	float times = l->measured_delay_s > 0 && l->planned_delay_s > 0
			      ? l->measured_delay_s / l->planned_delay_s
			      : 0;

	return times < 1e6f ? times : 0;
}

/* Lists the links with the largest ratio of measured to planned transfer time, and the cut
 * links. */
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

/* Guesses distances if no link is measured: nodes of the same place are near, and all places are
 * equally far from one another. */
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
	struct sums t = { .by_region = m->n_nodes >= MAP_NODES };

	t.n = t.by_region ? m->n_regions : m->n_nodes;
	t.distances = alloc_array((size_t)t.n * t.n, sizeof(*t.distances));
	t.count = alloc_array((size_t)t.n * t.n, sizeof(*t.count));
	fresh = fresh || m->by_transfers != has_transfers_only(s);
	m->by_transfers = has_transfers_only(s);
	add_links(&t, m, s);
	if (t.known == 0)
		add_transfers(&t, m, s);
	if (t.known == 0)
		guess(m, t.by_region, t.distances, t.n);
	if (fresh || s->n_links > 0 || t.known > m->n_placed) {
		place(m, t.distances, t.by_region ? m->regions : m->nodes, t.n, t.known,
		      fresh || m->measured != (t.known > 0));
		m->measured = t.known > 0;
		if (!t.by_region)
			find_centres(m);
	}
	find_slow(m, s);
	free(t.distances);
	free(t.count);
}

void map_update(struct map *m, const struct state *s, int64_t local_us)
{
	bool fresh, jumped = m->run != s->run.run;
	uint64_t hash;

	if (!jumped && m->n_nodes > 0 && local_us - m->checked_us < CHECK_US)
		return;
	hash = hash_nodes(s);
	fresh = m->nodes_hash != hash;
	m->checked_us = local_us;
	if (!fresh && !jumped &&
	    ((m->link_reports == s->link_reports && s->n_links > 0) ||
	     local_us - m->made_us < EVERY_US + LINK_US * (int64_t)s->n_links))
		return;
	m->run = s->run.run;
	m->nodes_hash = hash;
	m->link_reports = s->link_reports;
	m->made_us = local_us;
	if (fresh)
		list_nodes(m, s);
	make(m, s, fresh);
}

/* ---- slow links and collisions ---- */

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
