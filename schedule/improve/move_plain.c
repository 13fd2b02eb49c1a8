/* Moves that need only the paths, not the times of the run. */
#include "schedule/improve/move_kinds.h"

#include <string.h>

/* Returns the position of a stage in a path. 0: the path does not visit the stage (position 0 is
 * always stage 0). */
static int place_of(const struct moves *m, const int *path, int stage)
{
	for (int h = 1; h < problem_path_length(m->p, path); h++) {
		if (m->s->stage_of[path[h]] == stage)
			return h;
	}
	return 0;
}

static int place_of_node(const struct moves *m, const int *path, int node)
{
	for (int h = 1; h < problem_path_length(m->p, path); h++) {
		if (path[h] == node)
			return h;
	}
	return 0;
}

static void sort_path(const struct moves *m, int *path)
{
	const int *stage_of = m->s->stage_of;

	for (int i = 2; i < problem_path_length(m->p, path); i++) {
		int v = path[i], j = i;

		for (; j > 1 && stage_of[path[j - 1]] > stage_of[v]; j--)
			path[j] = path[j - 1];
		path[j] = v;
	}
}

static bool keeps_cc2(const struct moves *m, const int *path)
{
	int length = problem_path_length(m->p, path), last = 0;

	for (int h = 1; h < length;) {
		int a = m->s->stage_of[path[h]];
		int b = h + 1 < length ? m->s->stage_of[path[h + 1]] : -1;

		if (b > 0 && b == a - 1) {
			if (b <= last || m->p->q->ascending)
				return false;
			h += 2;
		} else {
			if (a <= last)
				return false;
			h++;
		}
		last = a;
	}
	return true;
}

static bool any_memory(const struct moves *m, int node)
{
	return m->p->c->nodes[node].memory > 0;
}

/* Picks a node of the stage, mostly one that is near to node `by`. */
static int pick_node(struct moves *m, int stage, int by)
{
	int first = m->s->start[stage], size = m->s->start[stage + 1] - first;

	if (size > m->candidates.most && draw_below(m, 8) > 0) {
		const int *near = candidate_lists_of(&m->candidates, by, stage);
		int v = near[draw_below(m, m->candidates.most)];

		if (v >= 0 && m->s->stage_of[v] == stage)
			return v;
	}
	return m->s->members[first + draw_below(m, size)];
}

bool move_node(struct moves *m, int mb)
{
	int *path = path_of(m, mb), length = length_of(m, mb), h, by, v;

	if (length < 2)
		return false;
	h = 1 + draw_below(m, length - 1);
	by = path[draw_below(m, 2) ? h - 1 : h + 1 < length ? h + 1 : 0];
	v = pick_node(m, m->s->stage_of[path[h]], by);

	if (v == path[h] || !any_memory(m, v))
		return false;
	moves_touch(m, mb);
	path[h] = v;
	return true;
}

/* Replaces the stage at position h of the path by `stage`, if exposure allows it. */
static bool move_stage_alone(struct moves *m, int mb, int h, int stage)
{
	const struct problem *p = m->p;
	int *path = path_of(m, mb), was = m->s->stage_of[path[h]], v;

	if (m->visits[was] <= p->low[was] || m->visits[stage] >= p->high[stage])
		return false;
	v = pick_node(m, stage, path[h - 1]);
	if (!any_memory(m, v))
		return false;
	moves_touch(m, mb);
	path[h] = v;
	sort_path(m, path);
	m->left_stage = was;
	m->joined_stage = stage;
	m->visits[was]--;
	m->visits[stage]++;
	return true;
}

/* One of four calls first tries to change a stage of mb alone. Exposure may forbid this change. If
 * the change fails, and in all other calls, mb and another microbatch exchange a stage: each of the
 * two gives away a stage that the other one does not visit. A single pass over all such pairs of
 * stages draws one pair uniformly. */
bool move_stage(struct moves *m, int mb)
{
	const int *stage_of = m->s->stage_of;
	int length = length_of(m, mb), other = draw_below(m, m->p->n_mb);
	int *a = path_of(m, mb), *b = path_of(m, other), pairs = 0, ha = 0, hb = 0;
	int va, vb;

	if (draw_below(m, 4) == 0 && length > 1 && length < m->p->n_stages) {
		int stage = 1 + draw_below(m, m->p->n_stages - 1);

		if (!place_of(m, a, stage) &&
		    move_stage_alone(m, mb, 1 + draw_below(m, length - 1), stage))
			return true;
	}
	if (other == mb)
		return false;
	for (int i = 1; i < length; i++) {
		if (place_of(m, b, stage_of[a[i]]))
			continue;
		for (int j = 1; j < length_of(m, other); j++) {
			if (!place_of(m, a, stage_of[b[j]]) && draw_below(m, ++pairs) == 0) {
				ha = i;
				hb = j;
			}
		}
	}
	if (pairs == 0)
		return false;
	va = draw_below(m, 2) ? pick_node(m, stage_of[b[hb]], a[ha - 1]) : b[hb];
	vb = draw_below(m, 2) ? pick_node(m, stage_of[a[ha]], b[hb - 1]) : a[ha];
	if (!any_memory(m, va) || !any_memory(m, vb))
		return false;
	moves_touch(m, mb);
	moves_touch(m, other);
	a[ha] = va;
	b[hb] = vb;
	sort_path(m, a);
	sort_path(m, b);
	return true;
}

bool move_exchange(struct moves *m, int mb)
{
	int *path = path_of(m, mb), h, was;

	if (length_of(m, mb) < 3)
		return false;
	h = 1 + draw_below(m, length_of(m, mb) - 2);
	moves_touch(m, mb);
	was = path[h];
	path[h] = path[h + 1];
	path[h + 1] = was;
	return keeps_cc2(m, path);
}

bool move_trade(struct moves *m, int mb)
{
	int other = draw_below(m, m->p->n_mb), h, g, was;
	int *a = path_of(m, mb), *b = path_of(m, other);

	if (length_of(m, mb) < 2)
		return false;
	h = 1 + draw_below(m, length_of(m, mb) - 1);
	g = other == mb ? 0 : place_of(m, b, m->s->stage_of[a[h]]);
	if (g == 0 || a[h] == b[g])
		return false;
	moves_touch(m, mb);
	moves_touch(m, other);
	was = a[h];
	a[h] = b[g];
	b[g] = was;
	return true;
}

/* Exchanges paths of unequal length only within a data node, because each data node must keep its
 * number of microbatches that skip stages. */
bool move_paths(struct moves *m, int mb)
{
	int other = draw_below(m, m->p->n_mb);
	int *a = path_of(m, mb), *b = path_of(m, other);

	if (other == mb || memcmp(a + 1, b + 1, (size_t)(m->p->length - 1) * sizeof(int)) == 0 ||
	    (length_of(m, mb) != length_of(m, other) && a[0] != b[0]))
		return false;
	moves_touch(m, mb);
	moves_touch(m, other);
	for (int h = 1; h < m->p->length; h++) {
		int was = a[h];

		a[h] = b[h];
		b[h] = was;
	}
	return true;
}

/* Finds a microbatch that visits `node`, and replaces `node` in its path by the node `instead`.
 * Changes neither mb nor microbatches of the data node `spare`. Returns false if there is no such
 * microbatch. */
static bool push_out(struct moves *m, int mb, int node, int instead, int spare)
{
	int n = m->p->n_mb, first = draw_below(m, n), stage = m->s->stage_of[instead];
	bool same = stage == m->s->stage_of[node];

	for (int k = 0; k < n; k++) {
		int y = first + k < n ? first + k : first + k - n, *path = path_of(m, y), h;

		if (y == mb || path[0] == spare)
			continue;
		h = place_of_node(m, path, node);
		if (h == 0 || (!same && place_of(m, path, stage)))
			continue;
		moves_touch(m, y);
		path[h] = instead;
		if (!same)
			sort_path(m, path);
		return true;
	}
	return false;
}

/* Gives mb this path, which has the same length as its old path. For each node that is new in the
 * path of mb, another microbatch gives up its visit of this node and visits a node that mb gives
 * up. Does not change other microbatches of the data node `spare`. */
static bool force_path(struct moves *m, int mb, const int *path, int spare)
{
	int *mine = path_of(m, mb), length = length_of(m, mb);
	int left[PLAN_MOST_PATH], wanted[PLAN_MOST_PATH], n_left = 0, n_wanted = 0;

	for (int h = 1; h < length; h++) {
		if (!place_of_node(m, path, mine[h]))
			left[n_left++] = mine[h];
		if (!place_of_node(m, mine, path[h]))
			wanted[n_wanted++] = path[h];
	}
	moves_touch(m, mb);
	memcpy(mine + 1, path + 1, (size_t)(length - 1) * sizeof(int));
	for (int w = 0; w < n_wanted; w++) {
		int stage = m->s->stage_of[wanted[w]], own = -1;
		bool pushed = false;

		for (int k = 0; k < n_left; k++) {
			if (m->s->stage_of[left[k]] == stage)
				own = k;
		}
		if (own > 0) {
			int was = left[0];

			left[0] = left[own];
			left[own] = was;
			own = 0;
		}
		for (int k = 0; k < n_left && !pushed; k++) {
			pushed = push_out(m, mb, wanted[w], left[k], spare);
			if (pushed)
				left[k] = left[--n_left];
		}
		if (!pushed) {
			/* No other microbatch can give up its visit of this node. This is legal
			 * only if mb gives up another node of the same stage; otherwise exposure
			 * would become unequal. */
			if (own != 0)
				return false;
			left[0] = left[--n_left];
		}
	}
	return true;
}

/* Finds a path that another microbatch of the same data node has, with the same length as the path
 * of mb but different nodes. NULL: none. */
static const int *find_other_path(struct moves *m, int mb)
{
	int n = m->p->n_mb, first = draw_below(m, n);
	size_t size = (size_t)m->p->length * sizeof(int);

	for (int k = 0; k < n; k++) {
		int y = first + k < n ? first + k : first + k - n;
		const int *path = path_of(m, y);

		if (path[0] == path_of(m, mb)[0] && length_of(m, y) == length_of(m, mb) &&
		    memcmp(path, path_of(m, mb), size) != 0)
			return path;
	}
	return NULL;
}

bool move_copy(struct moves *m, int mb)
{
	const int *source = find_other_path(m, mb);
	int path[PLAN_MOST_PATH];

	if (!source)
		return false;
	/* The path is copied, because force_path may change the microbatch that has it. */
	memcpy(path, source, (size_t)m->p->length * sizeof(int));
	return force_path(m, mb, path, -1);
}

bool move_unify(struct moves *m, int mb)
{
	const int *source = find_other_path(m, mb);
	int path[PLAN_MOST_PATH];
	size_t size = (size_t)m->p->length * sizeof(int);

	if (!source)
		return false;
	memcpy(path, source, size);
	for (int y = 0; y < m->p->n_mb; y++) {
		if (path_of(m, y)[0] == path[0] && length_of(m, y) == length_of(m, mb) &&
		    memcmp(path_of(m, y), path, size) != 0 && !force_path(m, y, path, path[0]))
			return false;
	}
	return true;
}

bool move_roles(struct moves *m, int mb)
{
	const struct problem *p = m->p;
	int a = draw_below(m, p->n_nodes), b = draw_below(m, p->n_nodes), pair[2] = { a, a };

	(void)mb;
	/* In one of four calls, picks a node of the pair whose sum of gradients is slowest. */
	if (p->weigh_sync && draw_below(m, 4) == 0)
		solution_sync_s(m->s, p, pair);
	a = pair[draw_below(m, 2)];
	if (!p->movable[a] || !p->movable[b] || m->s->stage_of[a] == m->s->stage_of[b] ||
	    (any_memory(m, a) != any_memory(m, b)))
		return false;
	for (int y = 0; y < p->n_mb; y++) {
		int *path = path_of(m, y);

		for (int h = 0; h < p->length; h++) {
			if (path[h] == a || path[h] == b) {
				moves_touch(m, y);
				path[h] = path[h] == a ? b : a;
			}
		}
	}
	solution_exchange(m->s, a, b);
	m->role_a = a;
	m->role_b = b;
	return true;
}
