#include "schedule/published/conflict_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int conflict_tree_init(struct conflict_tree *t, int n_agents, int length, int n_nodes)
{
	*t = (struct conflict_tree){ .n_agents = n_agents, .length = length, .n_nodes = n_nodes };
	t->barred = calloc((size_t)n_nodes, sizeof(*t->barred));
	return t->barred ? 0 : -ENOMEM;
}

static void branch_free(struct branch *b)
{
	if (!b)
		return;
	free(b->own);
	free(b->paths);
	free(b->home_s);
	free(b);
}

void conflict_tree_fini(struct conflict_tree *t)
{
	while (t->all) {
		struct branch *b = t->all;

		t->all = b->older;
		branch_free(b);
	}
	free(t->open);
	free(t->barred);
	free(t->taken);
	*t = (struct conflict_tree){ 0 };
}

struct branch *branch_new(struct conflict_tree *t, struct branch *parent, int n_own)
{
	struct branch *b = calloc(1, sizeof(*b));
	size_t n = (size_t)t->n_agents, visits = n * (size_t)t->length;

	if (!b)
		return NULL;
	b->parent = parent;
	b->n_own = n_own;
	b->own = calloc((size_t)n_own + 1, sizeof(*b->own));
	b->paths = calloc(visits, sizeof(*b->paths));
	b->home_s = calloc(n, sizeof(*b->home_s));
	if (!b->own || !b->paths || !b->home_s) {
		branch_free(b);
		return NULL;
	}
	if (parent) {
		memcpy(b->paths, parent->paths, visits * sizeof(*b->paths));
		memcpy(b->home_s, parent->home_s, n * sizeof(*b->home_s));
	}
	b->older = t->all;
	t->all = b;
	return b;
}

static bool comes_before(const struct branch *a, const struct branch *b)
{
	return a->cost_s != b->cost_s ? a->cost_s < b->cost_s : a->conflicts < b->conflicts;
}

int conflict_tree_push(struct conflict_tree *t, struct branch *b)
{
	int i = t->n_open;

	if (t->n_open == t->room) {
		int room = t->room ? 2 * t->room : 256;
		struct branch **more = realloc(t->open, (size_t)room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		t->open = more;
		t->room = room;
	}
	t->n_open++;
	for (; i > 0 && comes_before(b, t->open[(i - 1) / 2]); i = (i - 1) / 2)
		t->open[i] = t->open[(i - 1) / 2];
	t->open[i] = b;
	return 0;
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

static int add_taken(struct conflict_tree *t, const struct constraint *k)
{
	if (t->n_taken == t->taken_room) {
		int room = 2 * t->taken_room + 16;
		struct taken *more = realloc(t->taken, (size_t)room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		t->taken = more;
		t->taken_room = room;
	}
	t->taken[t->n_taken++] = (struct taken){ k->what, k->from_s, k->to_s };
	return 0;
}

int conflict_tree_gather(struct conflict_tree *t, const struct branch *b, int agent)
{
	int rc = 0;

	t->barred_stages = 0;
	t->n_taken = 0;
	memset(t->barred, 0, (size_t)t->n_nodes * sizeof(*t->barred));
	for (; b; b = b->parent) {
		for (int i = 0; i < b->n_own && rc == 0; i++) {
			const struct constraint *k = &b->own[i];

			if (k->agent != agent)
				continue;
			if (k->kind == FORBIDS_STAGE)
				t->barred_stages |= (uint64_t)1 << k->what;
			else if (k->kind == FORBIDS_NODE)
				t->barred[k->what] = true;
			else
				rc = add_taken(t, k);
		}
	}
	return rc;
}
