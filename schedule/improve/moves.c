/* Draws a kind of move, lets it change the paths, and checks the result: links must exist, and tied
 * microbatches must be able to take the same path. The journal holds the old paths, so that a move
 * can be taken back. */
#include "schedule/improve/move_kinds.h"

#include <math.h>
#include <string.h>

#define NEAR 8 /* number of candidate nodes in each stage, if stages have more nodes */

void moves_touch(struct moves *m, int mb)
{
	size_t length = (size_t)m->p->length;

	if (m->is_touched[mb])
		return;
	m->is_touched[mb] = true;
	memcpy(m->saved + (size_t)m->n_touched * length, path_of(m, mb), length * sizeof(int));
	m->touched[m->n_touched++] = mb;
}

static bool is_linked(const struct moves *m, const int *path)
{
	const struct problem *p = m->p;

	int length = problem_path_length(p, path);

	for (int h = 0; h < length; h++) {
		int to = path[h + 1 < length ? h + 1 : 0];

		if (isinf(problem_round_s(p, path[h], to)))
			return false;
	}
	return true;
}

bool moves_changed(const struct moves *m)
{
	size_t length = (size_t)m->p->length;

	for (int i = 0; i < m->n_touched; i++) {
		if (memcmp(path_of(m, m->touched[i]), m->saved + (size_t)i * length,
			   length * sizeof(int)) != 0)
			return true;
	}
	return false;
}

/* All kinds of moves, each with its share of the draws. The first PLAIN_KINDS do not need the times
 * of the run. `roles` is the last one, and is drawn only if nodes may change their stages. Without
 * a timetable, move_unify replaces the kinds that need one. */
static const struct {
	bool (*propose)(struct moves *m, int mb);
	int weight;
	bool needs_table;
} kinds[] = {
	{ move_node, 4, false },
	{ move_stage, 4, false },
	{ move_exchange, 3, false },
	{ move_trade, 3, false },
	{ move_paths, 4, false },
	{ move_reroute, 8, true },
	{ move_unblock, 4, true },
	{ move_stage_reroute, 5, true },
	{ move_unify, 3, false },
	{ move_copy, 11, false },
	{ move_roles, 4, false },
};

enum { PLAIN_KINDS = 5, KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Draws one of the first n kinds according to their shares. */
static int draw_kind(struct moves *m, int n)
{
	int sum = 0, k = 0, drawn;

	for (int i = 0; i < n; i++)
		sum += kinds[i].weight;
	for (drawn = draw_below(m, sum); drawn >= kinds[k].weight; k++)
		drawn -= kinds[k].weight;
	return k;
}

static bool propose_any(struct moves *m, int mb)
{
	int kind = draw_kind(m, m->p->n_movable > 1 ? KINDS : KINDS - 1);

	if (kind == KINDS - 1)
		return move_roles(m, mb);
	if (m->p->length < 2)
		return false;
	if (m->lanes)
		return move_lanes(m, mb);
	if (kinds[kind].needs_table && !m->table)
		return move_unify(m, mb);
	return kinds[kind].propose(m, mb);
}

static void begin_move(struct moves *m)
{
	m->n_touched = 0;
	m->is_planned = false;
	m->left_stage = m->joined_stage = m->role_a = m->role_b = -1;
}

/* Returns true if the move leaves the number of visits of each stage unchanged. */
static bool is_balanced(const struct moves *m)
{
	int length = m->p->length, more[CLUSTER_MOST_STAGES] = { 0 };

	for (int i = 0; i < m->n_touched; i++) {
		const int *was = m->saved + (size_t)i * (size_t)length;
		const int *path = path_of(m, m->touched[i]);

		for (int h = 1; h < problem_path_length(m->p, path); h++)
			more[m->s->stage_of[path[h]]]++;
		for (int h = 1; h < problem_path_length(m->p, was); h++)
			more[m->s->stage_of[was[h]]]--;
	}
	for (int s = 0; s < m->p->n_stages; s++) {
		if (more[s] != 0)
			return false;
	}
	return true;
}

/* Gives the new path of a touched microbatch to all microbatches that are tied to it. Returns false
 * if that breaks a rule. */
static bool pull_tied(struct moves *m)
{
	size_t size = (size_t)m->p->length * sizeof(int);
	int n = m->n_touched;

	for (int i = 0; i < n; i++) {
		int y = m->touched[i];

		for (int z = m->tied[y]; z != y; z = m->tied[z]) {
			if (m->is_touched[z] && memcmp(path_of(m, y), path_of(m, z), size) != 0)
				return false;
			moves_touch(m, z);
			memcpy(path_of(m, z), path_of(m, y), size);
		}
	}
	return m->role_a >= 0 || (m->left_stage < 0 && is_balanced(m));
}

static bool settle_move(struct moves *m, bool good)
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
	begin_move(m);
	return settle_move(m, propose_any(m, mb));
}

bool moves_propose_plain(struct moves *m, int mb)
{
	begin_move(m);
	return settle_move(m, kinds[draw_kind(m, PLAIN_KINDS)].propose(m, mb));
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
		if (m->s->path[i] >= 0)
			m->visits[m->s->stage_of[m->s->path[i]]]++;
	for (int s = 1; s < p->n_stages; s++)
		large = large || p->sizes[s] > m->candidates.most;
	if (large && !m->lanes) /* lanes have their own lists of candidates */
		candidate_lists_fill(&m->candidates, p, m->s);
}

void moves_init(struct moves *m, const struct problem *p, struct solution *s,
		struct timetable *table, struct lanes *lanes, struct rng rng)
{
	size_t n = (size_t)p->n_mb;

	*m = (struct moves){ .p = p, .s = s, .table = table, .lanes = lanes, .rng = rng };
	m->left_stage = m->joined_stage = m->role_a = m->role_b = -1;
	m->visits = arena_array(&m->arena, (size_t)p->n_stages, sizeof(*m->visits));
	m->touched = arena_array(&m->arena, n, sizeof(*m->touched));
	m->is_touched = arena_array(&m->arena, n, sizeof(*m->is_touched));
	m->saved = arena_array(&m->arena, n * (size_t)p->length, sizeof(*m->saved));
	if (!lanes)
		candidate_lists_init(&m->candidates, &m->arena, p, NEAR);
	moves_refresh(m);
}

void moves_fini(struct moves *m)
{
	arena_free(&m->arena);
	*m = (struct moves){ 0 };
}
