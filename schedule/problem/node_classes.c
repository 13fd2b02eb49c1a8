/* Groups of similar nodes, found by comparing each node with one sample of each group of its stage.
 */
#include "schedule/problem/node_classes.h"

#include <string.h>

static bool are_alike(const struct problem *p, int u, int v)
{
	const struct cluster_node *a = &p->c->nodes[u], *b = &p->c->nodes[v];

	return a->forward_s == b->forward_s && a->backward_s == b->backward_s &&
	       a->loss_s == b->loss_s && a->memory == b->memory &&
	       strcmp(a->location, b->location) == 0;
}

void node_classes_init(struct node_classes *a, struct arena *arena, const struct problem *p,
		       const struct solution *s, bool may_join)
{
	size_t nodes = (size_t)p->n_nodes;
	bool joins = may_join && problem_is(p, REGIME_NODE_CLASSES);

	*a = (struct node_classes){ 0 };
	a->of = arena_array(arena, nodes, sizeof(*a->of));
	a->sample = arena_array(arena, nodes, sizeof(*a->sample));
	a->first = arena_array(arena, (size_t)p->n_stages + 1, sizeof(*a->first));
	for (int stage = 0; stage < p->n_stages; stage++) {
		a->first[stage] = a->n;
		for (int i = s->start[stage]; i < s->start[stage + 1]; i++) {
			int v = s->members[i], g = joins ? a->first[stage] : a->n;

			while (g < a->n && !are_alike(p, a->sample[g], v))
				g++;
			if (g == a->n)
				a->sample[a->n++] = v;
			a->of[v] = g;
		}
	}
	a->first[p->n_stages] = a->n;
}
