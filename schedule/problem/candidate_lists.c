/* Candidates for the next hop. In stages of a thousand nodes a move or a beam search cannot try all
 * nodes; the nearest ones are nearly always enough. */
#include "schedule/problem/candidate_lists.h"

#include <math.h>

#define SCATTER 2654435761u /* 2^32 divided by the golden ratio, as in multiplicative hashing */

void candidate_lists_init(struct candidate_lists *n, struct arena *a, const struct problem *p,
			  int most)
{
	int largest = 1;
	size_t cells;

	for (int s = 1; s < p->n_stages; s++)
		largest = p->sizes[s] > largest ? p->sizes[s] : largest;
	*n = (struct candidate_lists){ .n_stages = p->n_stages,
				       .most = most < largest ? most : largest };
	cells = (size_t)p->n_nodes * (size_t)p->n_stages * (size_t)n->most;
	n->list = arena_array(a, cells, sizeof(*n->list));
	n->round_s = arena_array(a, cells, sizeof(*n->round_s));
}

/* Lists the nearest nodes of the stage, nearest first. In a stage with more nodes than the list
 * has room for, the scan begins at a different node for each `node`. Without this, if many nodes
 * are equally near, all nodes would list the same few of them. */
static void fill_one_list(struct candidate_lists *n, const struct problem *p,
			  const struct solution *s, int node, int stage)
{
	const double *round = p->round + (size_t)node * (size_t)p->n_nodes;
	int *list = n->list + candidate_lists_at(n, node, stage), count = 0;
	double *round_s = n->round_s + candidate_lists_at(n, node, stage);
	const int *members = s->members + s->start[stage];
	int size = s->start[stage + 1] - s->start[stage];
	int first = size > n->most ? (int)((unsigned)node * SCATTER % (unsigned)size) : 0;

	for (int i = 0; i < size; i++) {
		int v = members[first + i < size ? first + i : first + i - size], at;

		if (count == n->most && round[v] >= round_s[count - 1])
			continue; /* tested first, because nearly all nodes are skipped here */
		if (v == node || isinf(round[v]) || p->c->nodes[v].memory < 1)
			continue;
		at = count < n->most ? count++ : count - 1;
		for (; at > 0 && round_s[at - 1] > round[v]; at--) {
			list[at] = list[at - 1];
			round_s[at] = round_s[at - 1];
		}
		list[at] = v;
		round_s[at] = round[v];
	}
	for (; count < n->most; count++)
		list[count] = -1;
}

void candidate_lists_fill(struct candidate_lists *n, const struct problem *p,
			  const struct solution *s)
{
	for (int i = 0; i < p->n_nodes; i++) {
		for (int stage = 1; s->stage_of[i] >= 0 && stage < p->n_stages; stage++)
			fill_one_list(n, p, s, i, stage);
	}
}
