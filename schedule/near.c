#include "schedule/near.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int near_init(struct near *n, const struct problem *p, int most)
{
	int largest = 1;

	for (int s = 1; s < p->n_stages; s++)
		largest = p->sizes[s] > largest ? p->sizes[s] : largest;
	*n = (struct near){ .n_stages = p->n_stages, .most = most < largest ? most : largest };
	n->list = malloc((size_t)p->n_nodes * (size_t)p->n_stages * (size_t)n->most *
			 sizeof(*n->list));
	return n->list ? 0 : -ENOMEM;
}

void near_fini(struct near *n)
{
	free(n->list);
	*n = (struct near){ 0 };
}

/* Insertion into a short sorted list. */
static void fill_one(struct near *n, const struct problem *p, const struct solution *s, int node,
		     int stage)
{
	const double *round = p->round + (size_t)node * (size_t)p->n_nodes;
	int *list = (int *)near_list(n, node, stage), count = 0;

	for (int i = s->start[stage]; i < s->start[stage + 1]; i++) {
		int v = s->members[i], at;

		if (v == node || isinf(round[v]) || p->c->nodes[v].memory < 1)
			continue;
		if (count == n->most && round[v] >= round[list[count - 1]])
			continue;
		at = count < n->most ? count++ : count - 1;
		for (; at > 0 && round[list[at - 1]] > round[v]; at--)
			list[at] = list[at - 1];
		list[at] = v;
	}
	for (; count < n->most; count++)
		list[count] = -1;
}

void near_fill(struct near *n, const struct problem *p, const struct solution *s)
{
	for (int i = 0; i < p->n_nodes; i++) {
		for (int stage = 1; s->stage_of[i] >= 0 && stage < p->n_stages; stage++)
			fill_one(n, p, s, i, stage);
	}
}
