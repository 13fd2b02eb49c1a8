/* Finds the groups of a fleet, and the links between them. */
#include "schedule/fleet/groups.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* First relative tolerance of speed, memory and price within a group. */
#define FIRST_TOLERANCE 0.02
/* From this tolerance on, a group may have nodes of different places. */
#define PLACELESS 1.0

static bool is_near(double a, double b, double tolerance)
{
	return (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * fmax(fabs(a), fabs(b));
}

static bool are_alike(const struct fleet_machines *a, const struct fleet_machines *b,
		      double tolerance)
{
	if (tolerance < PLACELESS && strcmp(a->place, b->place) != 0)
		return false;
	return is_near(a->flop_per_s, b->flop_per_s, tolerance) &&
	       is_near(a->memory_bytes, b->memory_bytes, tolerance) &&
	       a->most_slots == b->most_slots &&
	       is_near(a->price_per_hour / a->cards, b->price_per_hour / b->cards, tolerance);
}

/* Puts the nodes into groups with this tolerance. Returns false if there are more than GROUPS_MOST
 * groups. */
static bool group_nodes(struct groups *g, const struct fleet *f, double tolerance)
{
	memset(g->size, 0, sizeof(g->size));
	g->n = 0;
	for (int i = 0; i < f->n_nodes; i++) {
		int k = 0;

		while (k < g->n && !are_alike(fleet_machines_of(f, g->first[k]),
					      fleet_machines_of(f, i), tolerance))
			k++;
		if (k == GROUPS_MOST)
			return false;
		if (k == g->n)
			g->first[g->n++] = i;
		g->of_node[i] = k;
		g->size[k]++;
	}
	return true;
}

/* Returns a node of group b other than the first node of group a, if possible on another machine.
 * -1: there is none. */
static int find_other(const struct groups *g, const struct fleet *f, int a, int b)
{
	int from = g->first[a], found = -1;

	for (int i = f->n_nodes - 1; i >= 0; i--) {
		if (g->of_node[i] != b || i == from)
			continue;
		if (f->nodes[i].machine != f->nodes[from].machine)
			return i;
		found = i;
	}
	return found;
}

void groups_init(struct groups *g, const struct fleet *f)
{
	double tolerance = FIRST_TOLERANCE;

	g->of_node = alloc_array((size_t)f->n_nodes, sizeof(int));
	while (!group_nodes(g, f, tolerance))
		tolerance *= 2;
	for (int a = 0; a < g->n; a++) {
		for (int b = 0; b < g->n; b++) {
			int to = find_other(g, f, a, b);
			size_t at = (size_t)g->first[a] * (size_t)f->n_nodes + (size_t)to;
			bool none = to >= 0 && f->latency_s[at] < 0;

			g->latency_s[a][b] = to < 0 ? 0 : none ? INFINITY : f->latency_s[at];
			g->bandwidth[a][b] = to < 0 || none ? INFINITY : f->bandwidth[at];
		}
	}
}

void groups_fini(struct groups *g)
{
	free(g->of_node);
}
