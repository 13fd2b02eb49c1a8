#include "schedule/moves.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TRIPS 40 /* a data node */
#define MOST_WAITS 16
#define PLAIN 18  /* of the draws of a move's kind */
#define NEAR 8   /* candidates a stage, where stages are larger */
#define REINSERT_UP_TO 60 /* microbatches */
#define TOGETHER 3        /* microbatches reinserted */
#define CHARGE 4          /* most, for what others are put off by a reinsertion */
#define LANES_CHARGE 2    /* the same where lanes are planned */
#define FIRST_CHARGE 0.5  /* most, where those in the way are planned anew as well */
#define PUT_OFF 1.4       /* works: most that others are put off by planned lanes */
#define LENT 3            /* fewer lanes go out for their stages alone */

static int *path_of(const struct moves *m, int mb)
{
	return m->s->path + (size_t)mb * (size_t)m->p->length;
}

static int below(struct moves *m, int n)
{
	return (int)rng_below(&m->rng, (uint32_t)n);
}

static void touch(struct moves *m, int mb)
{
	size_t length = (size_t)m->p->length;

	if (m->is_touched[mb])
		return;
	m->is_touched[mb] = true;
	memcpy(m->saved + (size_t)m->n_touched * length, path_of(m, mb), length * sizeof(int));
	m->touched[m->n_touched++] = mb;
}

/* The place of a stage in a path; 0: not there (place 0 is always stage 0). */
static int place_of(const struct moves *m, const int *path, int stage)
{
	for (int h = 1; h < m->p->length; h++) {
		if (m->s->stage_of[path[h]] == stage)
			return h;
	}
	return 0;
}

static int place_of_node(const struct moves *m, const int *path, int node)
{
	for (int h = 1; h < m->p->length; h++) {
		if (path[h] == node)
			return h;
	}
	return 0;
}

static void sort_path(const struct moves *m, int *path)
{
	const int *stage_of = m->s->stage_of;

	for (int i = 2; i < m->p->length; i++) {
		int v = path[i], j = i;

		for (; j > 1 && stage_of[path[j - 1]] > stage_of[v]; j--)
			path[j] = path[j - 1];
		path[j] = v;
	}
}

static bool keeps_cc2(const struct moves *m, const int *path)
{
	int last = 0;

	for (int h = 1; h < m->p->length;) {
		int a = m->s->stage_of[path[h]];
		int b = h + 1 < m->p->length ? m->s->stage_of[path[h + 1]] : -1;

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

static bool is_linked(const struct moves *m, const int *path)
{
	const struct problem *p = m->p;

	for (int h = 0; h < p->length; h++) {
		int to = path[h + 1 < p->length ? h + 1 : 0];

		if (isinf(p->round[(size_t)path[h] * (size_t)p->n_nodes + (size_t)to]))
			return false;
	}
	return true;
}

static bool any_memory(const struct moves *m, int node)
{
	return m->p->c->nodes[node].memory > 0;
}

/* A node of the stage, mostly one near to node by. */
static int pick_node(struct moves *m, int stage, int by)
{
	int first = m->s->start[stage], size = m->s->start[stage + 1] - first;

	if (size > m->near.most && below(m, 8) > 0) {
		int v = near_list(&m->near, by, stage)[below(m, m->near.most)];

		if (v >= 0 && m->s->stage_of[v] == stage)
			return v;
	}
	return m->s->members[first + below(m, size)];
}

static bool move_node(struct moves *m, int mb)
{
	int *path = path_of(m, mb), h = 1 + below(m, m->p->length - 1);
	int by = path[below(m, 2) ? h - 1 : h + 1 < m->p->length ? h + 1 : 0];
	int v = pick_node(m, m->s->stage_of[path[h]], by);

	if (v == path[h] || !any_memory(m, v))
		return false;
	touch(m, mb);
	path[h] = v;
	return true;
}

/* Where exposure leaves room, a microbatch may change its stages alone. */
static bool move_stage_alone(struct moves *m, int mb, int h, int stage)
{
	const struct problem *p = m->p;
	int *path = path_of(m, mb), was = m->s->stage_of[path[h]], v;

	if (m->visits[was] <= p->low[was] || m->visits[stage] >= p->high[stage])
		return false;
	v = pick_node(m, stage, path[h - 1]);
	if (!any_memory(m, v))
		return false;
	touch(m, mb);
	path[h] = v;
	sort_path(m, path);
	m->left_stage = was;
	m->joined_stage = stage;
	m->visits[was]--;
	m->visits[stage]++;
	return true;
}

static bool move_stage(struct moves *m, int mb)
{
	const int *stage_of = m->s->stage_of;
	int length = m->p->length, other = below(m, m->p->n_mb);
	int *a = path_of(m, mb), *b = path_of(m, other), pairs = 0, ha = 0, hb = 0;
	int va, vb;

	if (below(m, 4) == 0 && length < m->p->n_stages) {
		int stage = 1 + below(m, m->p->n_stages - 1);

		if (!place_of(m, a, stage) &&
		    move_stage_alone(m, mb, 1 + below(m, length - 1), stage))
			return true;
	}
	if (other == mb)
		return false;
	for (int i = 1; i < length; i++) {
		if (place_of(m, b, stage_of[a[i]]))
			continue;
		for (int j = 1; j < length; j++) {
			if (!place_of(m, a, stage_of[b[j]]) && below(m, ++pairs) == 0) {
				ha = i;
				hb = j;
			}
		}
	}
	if (pairs == 0)
		return false;
	va = below(m, 2) ? pick_node(m, stage_of[b[hb]], a[ha - 1]) : b[hb];
	vb = below(m, 2) ? pick_node(m, stage_of[a[ha]], b[hb - 1]) : a[ha];
	if (!any_memory(m, va) || !any_memory(m, vb))
		return false;
	touch(m, mb);
	touch(m, other);
	a[ha] = va;
	b[hb] = vb;
	sort_path(m, a);
	sort_path(m, b);
	return true;
}

static bool reroute(struct moves *m, int mb, int banned)
{
	return timetable_route(m->table, m->s, &m->near, mb, banned, 2 * rng_uniform(&m->rng),
			       path_of(m, mb));
}

/* Never by the same nodes as before. */
static bool move_reroute(struct moves *m, int mb)
{
	touch(m, mb);
	return reroute(m, mb, path_of(m, mb)[1 + below(m, m->p->length - 1)]);
}

/* What holds a microbatch up goes another way, or what waited there. */
static bool move_unblock(struct moves *m, int mb)
{
	struct timetable_wait waits[MOST_WAITS];
	int n = timetable_waits(m->table, mb, waits, MOST_WAITS), y;
	const struct timetable_wait *w;

	if (n == 0)
		return false;
	w = &waits[below(m, n)];
	y = below(m, 2) ? w->blocking : w->waiting;
	touch(m, y);
	return reroute(m, y, w->node);
}

static bool move_stage_reroute(struct moves *m, int mb)
{
	bool good = move_stage(m, mb);

	for (int i = 0; good && i < m->n_touched; i++)
		good = reroute(m, m->touched[i], -1);
	return good;
}

/* The next to leave the timetable with those of the list: one of its first's data node, one that
 * kept it waiting, or any. */
static int companion(struct moves *m, const int *list, int n, int kind)
{
	struct timetable_wait waits[MOST_WAITS];
	int next = list[0] + n, n_waits;

	if (kind == 0 && next < m->p->n_mb && path_of(m, next)[0] == path_of(m, list[0])[0])
		return next;
	n_waits = kind == 1 ? timetable_waits(m->table, list[0], waits, MOST_WAITS) : 0;
	if (n_waits > 0) {
		const struct timetable_wait *w = &waits[below(m, n_waits)];

		return below(m, 2) ? w->blocking : w->waiting;
	}
	return below(m, m->p->n_mb);
}

/* Different ones, in an order drawn at random. */
static int gather(struct moves *m, int mb, int *list)
{
	int want = 1 + below(m, TOGETHER), kind = below(m, 3), n = 1;

	list[0] = mb;
	for (int tries = 0; n < want && tries < 2 * TOGETHER; tries++) {
		int y = companion(m, list, n, kind);
		bool is_new = true;

		for (int i = 0; i < n; i++)
			is_new = is_new && list[i] != y;
		if (is_new)
			list[n++] = y;
		else
			kind = 2;
	}
	for (int i = n - 1; i > 0; i--) {
		int j = below(m, i + 1), was = list[i];

		list[i] = list[j];
		list[j] = was;
	}
	return n;
}

static bool is_changed(const struct moves *m)
{
	size_t length = (size_t)m->p->length;

	for (int i = 0; i < m->n_touched; i++) {
		if (memcmp(path_of(m, m->touched[i]), m->saved + (size_t)i * length,
			   length * sizeof(int)) != 0)
			return true;
	}
	return false;
}

static bool move_reinsert(struct moves *m, int mb)
{
	int list[TOGETHER], n = gather(m, mb, list);
	double charge = CHARGE * rng_uniform(&m->rng);
	bool good = true;

	for (int i = 0; i < n; i++)
		reinsert_take_out(&m->reinsert, m->s, list[i]);
	for (int i = 0; good && i < n; i++) {
		touch(m, list[i]);
		good = reinsert_put_in(&m->reinsert, m->s, list[i], charge,
				       path_of(m, list[i]));
	}
	reinsert_undo(&m->reinsert);
	return good && is_changed(m);
}

/* The microbatch or one before it, with those after it in the lane. */
static void take_lane(struct moves *m, int mb)
{
	while (m->lanes->before[mb] >= 0 && below(m, 2))
		mb = m->lanes->before[mb];
	lanes_take_out(m->lanes, m->s, mb);
}

/* One that visits one of the nodes that this one does. */
static int neighbour(struct moves *m, int mb)
{
	const struct gaps *g = &m->lanes->gaps;
	int node = path_of(m, mb)[1 + below(m, m->p->length - 1)];
	const struct gaps_list *list = &g->list[node];

	return g->task[list->first + below(m, list->n)] / g->steps;
}

/* Lanes whose stages the first may want. */
static void take_lenders(struct moves *m)
{
	for (int n = below(m, LENT); n > 0; n--)
		take_lane(m, below(m, m->p->n_mb));
}

static void touch_out(struct moves *m)
{
	for (int i = 0; i < m->lanes->n_out; i++)
		touch(m, m->lanes->out[i]);
}

/* The first lane goes its best way, nearly as if nobody else were there; those whom it puts off leave
 * too. */
static bool force_lane(struct moves *m, int n)
{
	float charge = (float)(FIRST_CHARGE * rng_uniform(&m->rng));

	touch_out(m);
	return lanes_put_in(m->lanes, m->s, n, true, charge, INFINITY) &&
	       lanes_eject(m->lanes, m->s);
}

/* A lane alone; with any other; with those it meets; or pushing others out. */
static bool gather_lanes(struct moves *m, int mb)
{
	int kind = below(m, 4), other = neighbour(m, mb), third = neighbour(m, mb), n;

	take_lane(m, mb);
	n = m->lanes->n_out;
	if (kind == 1)
		take_lane(m, below(m, m->p->n_mb));
	if (kind == 2) {
		take_lane(m, other);
		if (below(m, 2))
			take_lane(m, third);
	}
	if (kind == 3) {
		take_lenders(m);
		return force_lane(m, n);
	}
	return n > 0;
}

static void swap_paths(struct moves *m, int a, int b)
{
	size_t size = (size_t)m->p->length * sizeof(int);
	int was[PLAN_MOST_PATH];

	touch(m, a);
	touch(m, b);
	memcpy(was, path_of(m, a), size);
	memcpy(path_of(m, a), path_of(m, b), size);
	memcpy(path_of(m, b), was, size);
}

/* The microbatches of one data node are sent in the order of their ids. */
static void relabel(struct moves *m, int mb)
{
	int first = mb, place = m->p->mb_slot[mb];
	float *sent_s = m->lanes->sent_s;

	while (first > 0 && m->p->mb_slot[first - 1] == place)
		first--;
	for (int y = first + 1; y < m->p->n_mb && m->p->mb_slot[y] == place; y++) {
		for (int at = y; at > first && sent_s[at - 1] > sent_s[at]; at--) {
			float was = sent_s[at];

			sent_s[at] = sent_s[at - 1];
			sent_s[at - 1] = was;
			swap_paths(m, at, at - 1);
		}
	}
}

static bool move_lanes(struct moves *m, int mb)
{
	struct lanes *l = m->lanes;
	bool good = gather_lanes(m, mb), in_turn = below(m, 2);

	touch_out(m);
	good = good && lanes_put_in(l, m->s, l->n_out, in_turn, LANES_CHARGE,
				    (float)PUT_OFF * l->work_s) && is_changed(m);
	for (int i = 0; good && i < l->n_out; i++)
		relabel(m, l->out[i]);
	lanes_restore(l);
	m->is_planned = good;
	return good;
}

static bool move_exchange(struct moves *m, int mb)
{
	int *path = path_of(m, mb), h, was;

	if (m->p->length < 3)
		return false;
	h = 1 + below(m, m->p->length - 2);
	touch(m, mb);
	was = path[h];
	path[h] = path[h + 1];
	path[h + 1] = was;
	return keeps_cc2(m, path);
}

static bool move_trade(struct moves *m, int mb)
{
	int other = below(m, m->p->n_mb), h = 1 + below(m, m->p->length - 1), g, was;
	int *a = path_of(m, mb), *b = path_of(m, other);

	g = other == mb ? 0 : place_of(m, b, m->s->stage_of[a[h]]);
	if (g == 0 || a[h] == b[g])
		return false;
	touch(m, mb);
	touch(m, other);
	was = a[h];
	a[h] = b[g];
	b[g] = was;
	return true;
}

static bool move_paths(struct moves *m, int mb)
{
	int other = below(m, m->p->n_mb);
	int *a = path_of(m, mb), *b = path_of(m, other);

	if (other == mb || memcmp(a + 1, b + 1, (size_t)(m->p->length - 1) * sizeof(int)) == 0)
		return false;
	touch(m, mb);
	touch(m, other);
	for (int h = 1; h < m->p->length; h++) {
		int was = a[h];

		a[h] = b[h];
		b[h] = was;
	}
	return true;
}

/* Finds a microbatch, not of data node spare, that visits `node` and may visit `instead` in its
 * place; lets it. */
static bool push_out(struct moves *m, int mb, int node, int instead, int spare)
{
	int n = m->p->n_mb, first = below(m, n), stage = m->s->stage_of[instead];
	bool same = stage == m->s->stage_of[node];

	for (int k = 0; k < n; k++) {
		int y = first + k < n ? first + k : first + k - n, *path = path_of(m, y), h;

		if (y == mb || path[0] == spare)
			continue;
		h = place_of_node(m, path, node);
		if (h == 0 || (!same && place_of(m, path, stage)))
			continue;
		touch(m, y);
		path[h] = instead;
		if (!same)
			sort_path(m, path);
		return true;
	}
	return false;
}

/* The microbatch takes the path; what it leaves goes to those it pushes out. */
static bool force_path(struct moves *m, int mb, const int *path, int spare)
{
	int *mine = path_of(m, mb), length = m->p->length;
	int left[PLAN_MOST_PATH], wanted[PLAN_MOST_PATH], n_left = 0, n_wanted = 0;

	for (int h = 1; h < length; h++) {
		if (!place_of_node(m, path, mine[h]))
			left[n_left++] = mine[h];
		if (!place_of_node(m, mine, path[h]))
			wanted[n_wanted++] = path[h];
	}
	touch(m, mb);
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
			if (own != 0) /* nobody to push, and the exposure would not balance */
				return false;
			left[0] = left[--n_left];
		}
	}
	return true;
}

static bool move_copy(struct moves *m, int mb, bool all)
{
	int n = m->p->n_mb, first = below(m, n), length = m->p->length;
	int path[PLAN_MOST_PATH], source = -1, data_node = path_of(m, mb)[0];
	size_t size = (size_t)length * sizeof(int);

	for (int k = 0; k < n && source < 0; k++) {
		int y = first + k < n ? first + k : first + k - n;

		if (path_of(m, y)[0] == data_node &&
		    memcmp(path_of(m, y), path_of(m, mb), size))
			source = y;
	}
	if (source < 0)
		return false;
	memcpy(path, path_of(m, source), size);
	if (!all)
		return force_path(m, mb, path, -1);
	for (int y = 0; y < n; y++) {
		if (path_of(m, y)[0] == data_node && memcmp(path_of(m, y), path, size) &&
		    !force_path(m, y, path, data_node))
			return false;
	}
	return true;
}

/* The shorter, the likelier. */
static bool move_trip(struct moves *m, int mb)
{
	const int *mine = path_of(m, mb);
	size_t size = (size_t)m->p->length * sizeof(int);
	int path[PLAN_MOST_PATH], n, k, place = m->place_of[mine[0]];

	if (!m->has_trips || place < 0)
		return false;
	n = m->trips.count[place];
	if (n == 0)
		return false;
	k = below(m, n);
	k = below(m, k + 1);
	memcpy(path, m->trips.trips[(size_t)place * (size_t)m->trips.most + (size_t)k].path,
	       size);
	if (path[0] != mine[0] || memcmp(path, mine, size) == 0 || !keeps_cc2(m, path))
		return false;
	return force_path(m, mb, path, -1);
}

static bool move_roles(struct moves *m)
{
	const struct problem *p = m->p;
	int a = below(m, p->n_nodes), b = below(m, p->n_nodes), other = a;

	/* Often one of the pair that keeps all waiting. */
	if (p->weigh_sync && below(m, 4) == 0)
		solution_slowest_pair(m->s, p, &a, &other);
	if (below(m, 2))
		a = other;
	if (!p->movable[a] || !p->movable[b] || m->s->stage_of[a] == m->s->stage_of[b] ||
	    (any_memory(m, a) != any_memory(m, b)))
		return false;
	for (int y = 0; y < p->n_mb; y++) {
		int *path = path_of(m, y);

		for (int h = 0; h < p->length; h++) {
			if (path[h] == a || path[h] == b) {
				touch(m, y);
				path[h] = path[h] == a ? b : a;
			}
		}
	}
	solution_exchange(m->s, a, b);
	m->role_a = a;
	m->role_b = b;
	m->stale = true;
	return true;
}

static bool propose_plain(struct moves *m, int mb, int kind)
{
	if (kind < 4)
		return move_node(m, mb);
	if (kind < 8)
		return move_stage(m, mb);
	if (kind < 11)
		return move_exchange(m, mb);
	if (kind < 14)
		return move_trade(m, mb);
	return move_paths(m, mb);
}

static bool propose(struct moves *m, int mb)
{
	int kind = below(m, m->p->n_movable > 1 ? 53 : 49);

	if (kind >= 49)
		return move_roles(m);
	if (m->p->length < 2)
		return false;
	if (m->lanes)
		return move_lanes(m, mb);
	if (m->reinserts && below(m, 2))
		return move_reinsert(m, mb);
	if (kind < PLAIN)
		return propose_plain(m, mb, kind);
	if (kind < 26 && m->table)
		return move_reroute(m, mb);
	if (kind < 30 && m->table)
		return move_unblock(m, mb);
	if (kind < 35 && m->table)
		return move_stage_reroute(m, mb);
	if (kind < 45 || !m->has_trips)
		return move_copy(m, mb, kind < 38);
	return move_trip(m, mb);
}

static void begin(struct moves *m)
{
	m->n_touched = 0;
	m->is_planned = false;
	m->left_stage = m->joined_stage = m->role_a = m->role_b = -1;
}

/* Whether the move leaves exposure as it was. */
static bool is_balanced(const struct moves *m)
{
	int length = m->p->length, more[CLUSTER_MOST_STAGES] = { 0 };

	for (int i = 0; i < m->n_touched; i++) {
		const int *was = m->saved + (size_t)i * (size_t)length;
		const int *path = path_of(m, m->touched[i]);

		for (int h = 1; h < length; h++) {
			more[m->s->stage_of[path[h]]]++;
			more[m->s->stage_of[was[h]]]--;
		}
	}
	for (int s = 0; s < m->p->n_stages; s++) {
		if (more[s] != 0)
			return false;
	}
	return true;
}

/* Those tied to what has been touched follow. False: they cannot. */
static bool pull_tied(struct moves *m)
{
	size_t size = (size_t)m->p->length * sizeof(int);
	int n = m->n_touched;

	for (int i = 0; i < n; i++) {
		int y = m->touched[i];

		for (int z = m->tied[y]; z != y; z = m->tied[z]) {
			if (m->is_touched[z] && memcmp(path_of(m, y), path_of(m, z), size) != 0)
				return false;
			touch(m, z);
			memcpy(path_of(m, z), path_of(m, y), size);
		}
	}
	return m->role_a >= 0 || (m->left_stage < 0 && is_balanced(m));
}

static bool settle(struct moves *m, bool good)
{
	good = good && (!m->tied || pull_tied(m));
	for (int i = 0; good && i < m->n_touched; i++)
		good = is_linked(m, path_of(m, m->touched[i]));
	if (!good)
		moves_undo(m);
	return good;
}

bool moves_propose(struct moves *m, int mb)
{
	begin(m);
	return settle(m, propose(m, mb));
}

bool moves_propose_plain(struct moves *m, int mb)
{
	begin(m);
	return settle(m, propose_plain(m, mb, below(m, PLAIN)));
}

void moves_keep(struct moves *m)
{
	for (int i = 0; i < m->n_touched; i++)
		m->is_touched[m->touched[i]] = false;
	m->n_touched = 0;
}

void moves_undo(struct moves *m)
{
	size_t length = (size_t)m->p->length;

	if (m->role_a >= 0)
		solution_exchange(m->s, m->role_a, m->role_b);
	if (m->left_stage >= 0) {
		m->visits[m->left_stage]++;
		m->visits[m->joined_stage]--;
	}
	for (int i = 0; i < m->n_touched; i++)
		memcpy(path_of(m, m->touched[i]), m->saved + (size_t)i * length,
		       length * sizeof(int));
	moves_keep(m);
}

void moves_refresh(struct moves *m)
{
	const struct problem *p = m->p;
	bool large = false;

	memset(m->visits, 0, (size_t)p->n_stages * sizeof(*m->visits));
	for (int i = 0; i < p->n_mb * p->length; i++)
		m->visits[m->s->stage_of[m->s->path[i]]]++;
	for (int s = 1; s < p->n_stages; s++)
		large = large || p->sizes[s] > m->near.most;
	if (large && !m->lanes) /* which have lists of their own */
		near_fill(&m->near, p, m->s);
}

int moves_list_trips(struct moves *m)
{
	int rc;

	if (m->lanes || (m->has_trips && !m->stale))
		return 0;
	if (m->has_trips)
		trips_fini(&m->trips);
	rc = trips_init(&m->trips, m->p, m->s, TRIPS);
	m->has_trips = rc == 0;
	m->stale = false;
	for (int i = 0; i < m->p->n_nodes; i++)
		m->place_of[i] = -1;
	for (int i = 0; i < m->p->sizes[0]; i++)
		m->place_of[m->s->members[i]] = i;
	return rc;
}

int moves_init(struct moves *m, const struct problem *p, struct solution *s,
	       struct timetable *table, struct lanes *lanes, struct rng rng)
{
	size_t n = (size_t)p->n_mb;

	*m = (struct moves){ .p = p, .s = s, .table = table, .lanes = lanes, .rng = rng };
	m->left_stage = m->joined_stage = m->role_a = m->role_b = -1;
	m->visits = calloc((size_t)p->n_stages, sizeof(*m->visits));
	m->touched = calloc(n, sizeof(*m->touched));
	m->is_touched = calloc(n, sizeof(*m->is_touched));
	m->saved = calloc(n * (size_t)p->length, sizeof(*m->saved));
	m->place_of = malloc((size_t)p->n_nodes * sizeof(*m->place_of));
	if (!m->visits || !m->touched || !m->is_touched || !m->saved || !m->place_of ||
	    (!lanes && near_init(&m->near, p, NEAR) != 0)) {
		moves_fini(m);
		return -ENOMEM;
	}
	m->reinserts = table && p->n_mb <= REINSERT_UP_TO;
	if (m->reinserts && reinsert_init(&m->reinsert, table) != 0) {
		moves_fini(m);
		return -ENOMEM;
	}
	moves_refresh(m);
	return 0;
}

void moves_fini(struct moves *m)
{
	free(m->visits);
	free(m->touched);
	free(m->is_touched);
	free(m->saved);
	free(m->place_of);
	if (m->has_trips)
		trips_fini(&m->trips);
	near_fini(&m->near);
	reinsert_fini(&m->reinsert);
	*m = (struct moves){ 0 };
}
