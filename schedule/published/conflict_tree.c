/* Branches and their heap. Branches are small and all live until the end of the search, so they are
 * allocated from one arena. */
#include "schedule/published/conflict_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void conflict_tree_init(struct conflict_tree *t, int n_agents, int length, int n_nodes)
{
	*t = (struct conflict_tree){ .n_agents = n_agents, .length = length, .n_nodes = n_nodes };
	t->barred = arena_array(&t->arena, (size_t)n_nodes, sizeof(*t->barred));
}

void conflict_tree_fini(struct conflict_tree *t)
{
	arena_free(&t->arena);
	free(t->open);
	free(t->taken);
	*t = (struct conflict_tree){ 0 };
}

struct branch *branch_new(struct conflict_tree *t, struct branch *parent, int n_own)
{
	struct branch *b = arena_array(&t->arena, 1, sizeof(*b));
	size_t n = (size_t)t->n_agents, visits = n * (size_t)t->length;

	b->parent = parent;
	b->n_own = n_own;
	b->own = arena_array(&t->arena, (size_t)n_own + 1, sizeof(*b->own));
	b->paths = arena_array(&t->arena, visits, sizeof(*b->paths));
	b->home_s = arena_array(&t->arena, n, sizeof(*b->home_s));
	if (parent) {
		memcpy(b->paths, parent->paths, visits * sizeof(*b->paths));
		memcpy(b->home_s, parent->home_s, n * sizeof(*b->home_s));
	}
	return b;
}

static bool comes_before(const struct branch *a, const struct branch *b)
{
	return a->cost_s != b->cost_s ? a->cost_s < b->cost_s : a->conflicts < b->conflicts;
}

void conflict_tree_push(struct conflict_tree *t, struct branch *b)
{
	int i = t->n_open++;

	array_reserve(&t->open, &t->room, (size_t)t->n_open, sizeof(t->open[0]));
	for (; i > 0 && comes_before(b, t->open[(i - 1) / 2]); i = (i - 1) / 2)
		t->open[i] = t->open[(i - 1) / 2];
	t->open[i] = b;
}

struct branch *conflict_tree_pop(struct conflict_tree *t)
{
	struct branch *top = t->open[0], *last = t->open[--t->n_open];
	int i = 0;

	for (int child; (child = 2 * i + 1) < t->n_open; i = child) {
		if (child + 1 < t->n_open && comes_before(t->open[child + 1], t->open[child]))
			child++;
		if (!comes_before(t->open[child], last))
			break;
		t->open[i] = t->open[child];
	}
	t->open[i] = last;
	return top;
}

static void add_taken(struct conflict_tree *t, const struct constraint *k)
{
	array_reserve(&t->taken, &t->taken_room, (size_t)t->n_taken + 1, sizeof(t->taken[0]));
	t->taken[t->n_taken++] = (struct taken){ k->what, k->from_s, k->to_s };
}

void conflict_tree_gather(struct conflict_tree *t, const struct branch *b, int agent)
{
	t->barred_stages = 0;
	t->n_taken = 0;
	memset(t->barred, 0, (size_t)t->n_nodes * sizeof(*t->barred));
	for (; b; b = b->parent) {
		for (int i = 0; i < b->n_own; i++) {
			const struct constraint *k = &b->own[i];

			if (k->agent != agent)
				continue;
			if (k->kind == FORBIDS_STAGE)
				t->barred_stages |= (uint64_t)1 << k->what;
			else if (k->kind == FORBIDS_NODE)
				t->barred[k->what] = true;
			else
				add_taken(t, k);
		}
	}
}
