/* protocol_iteration.c - for tests: the controller's part in the protocol's model, as in
 * iteration.c, reroute.c and commit.c.
 *
 * Each function has the name of the controller's function. A change to the controller's function is
 * therefore easy to repeat here. */
#include "controller/tests/protocol_run.h"

#include <string.h>

/* ---- sums ---- */

void p_forget_sums(struct p_state *s)
{
	for (int i = 0; i < P_NODES; i++) {
		struct p_node *x = &s->nodes[i];

		x->reduced = x->in_sum = x->copies = x->copy_reduced = 0;
		x->sum = x->copy_sum = P_NO_SUM;
		x->wrong = x->copy_wrong = 0;
	}
	s->summing = 0;
	memset(s->content, 0, sizeof(s->content));
	memset(s->sums_reported, 0, sizeof(s->sums_reported));
}

bool p_is_keeper(const struct p_node *x, int stage)
{
	return x->keeps == stage + 1 && x->standing != P_GONE &&
	       !(p_is_replica(x) && x->stage == stage);
}

static bool all_alive(const struct protocol *p, const struct p_state *s, int stage)
{
	for (int i = 0; i < p->nodes; i++)
		if (p_is_replica(&s->nodes[i]) && s->nodes[i].stage == stage && !s->nodes[i].alive)
			return false;
	return true;
}

static void reduce_stage(struct p_run *r, int stage)
{
	struct p_state *s = &r->s;
	bool all = all_alive(r->p, s, stage);

	for (int i = 0; i < r->p->nodes; i++) {
		struct p_node *x = &s->nodes[i];

		if (p_is_replica(x) && x->stage == stage) {
			x->in_sum = 1;
			x->sum = !x->alive ? P_NO_SUM : all ? P_BEGUN : P_BROKEN;
			for (int m = 0; all && m < P_BATCHES; m++)
				s->content[stage][m] =
					(uint8_t)(s->content[stage][m] + (x->counted >> m & 1));
		}
		if (p_is_keeper(x, stage)) {
			x->copies = 1;
			x->copy_sum = !x->alive ? P_NO_SUM : all ? P_BEGUN : P_BROKEN;
		}
	}
	s->summing |= (uint8_t)(1 << stage);
}

bool p_admit_joiners(struct p_run *r, bool computing)
{
	bool any = false;

	for (int i = 0; i < r->p->nodes; i++) {
		struct p_node *x = &r->s.nodes[i];

		if (x->standing != P_JOINER && !(x->standing == P_SYNCING && !computing))
			continue;
		any = any || x->standing == P_JOINER;
		x->standing = computing ? P_SYNCING : P_LIVE;
		x->keeps = 0;
	}
	return any;
}

void p_reduce_rest(struct p_run *r)
{
	if (p_admit_joiners(r, true))
		p_forget_sums(&r->s);
	for (int st = 0; st < r->p->stages; st++)
		if (!(r->s.summing >> st & 1))
			reduce_stage(r, st);
	r->s.phase = P_REDUCING;
	p_commit_when_reduced(r);
}

void p_reduce_early(struct p_run *r)
{
	for (int st = 0; st < r->p->stages; st++) {
		uint8_t counted = 0, visited = 0;

		for (int i = 0; i < r->p->nodes; i++)
			if (r->s.nodes[i].at == st)
				counted |= r->s.nodes[i].on & r->s.nodes[i].reported;
		for (int m = 0; m < P_BATCHES; m++)
			visited |= (uint8_t)((r->p->path[m] >> st & 1) << m);
		if (counted == visited && !(r->s.summing >> st & 1))
			reduce_stage(r, st);
	}
}

/* Orders the sums of all stages before everything is counted. A dead node sends nothing. */
void p_order_ahead(const struct protocol *p, struct p_state *s)
{
	for (int st = 0; p->ahead && st < p->stages; st++) {
		bool all = all_alive(p, s, st);

		for (int i = 0; i < p->nodes; i++) {
			struct p_node *x = &s->nodes[i];

			if (p_is_replica(x) && x->stage == st) {
				x->in_sum = 1;
				x->sum = !x->alive ? P_NO_SUM : all ? P_COUNTING : P_BROKEN;
			}
			if (p_is_keeper(x, st)) {
				x->copies = 1;
				x->copy_sum = !x->alive ? P_NO_SUM : all ? P_BEGUN : P_BROKEN;
			}
		}
		s->summing |= (uint8_t)(1 << st);
	}
}

/* Makes each node send its part of the sum if it has counted all microbatches on the routes that it
 * knows. */
void p_give_parts(struct p_run *r)
{
	for (int i = 0; i < r->p->nodes; i++) {
		struct p_node *x = &r->s.nodes[i];

		if (x->sum != P_COUNTING || x->began != 1 || (x->mine & ~x->counted))
			continue;
		x->sum = P_BEGUN;
		for (int m = 0; m < P_BATCHES; m++)
			r->s.content[x->stage][m] =
				(uint8_t)(r->s.content[x->stage][m] + (x->counted >> m & 1));
	}
}

bool p_all_given(const struct p_run *r, int stage)
{
	for (int i = 0; i < r->p->nodes; i++) {
		const struct p_node *x = &r->s.nodes[i];

		if (x->in_sum && x->stage == stage && x->sum == P_COUNTING)
			return false;
	}
	return true;
}

bool p_all_done(const struct p_run *r)
{
	for (int i = 0; i < r->p->nodes; i++) {
		const struct p_node *x = &r->s.nodes[i];

		if (x->owed)
			return false;
	}
	return r->s.home == P_ALL;
}

/* ---- the controller's death ---- */

void p_crash(struct p_run *r)
{
	struct p_state *s = &r->s;

	r->crashed = true;
	p_moves_crash(r);
	p_recut_crash(s);
	s->takeovers--;
	s->phase = P_GATHERING;
	/* A restarted controller cannot know whether the iteration began, so it keeps the stored
	 * format */
	s->tried = 1;
	s->home = s->over = s->taken_over = 0;
	for (int i = 0; i < r->p->nodes; i++) {
		struct p_node *x = &s->nodes[i];

		x->standing = P_GONE;
		x->owed = x->reported = x->due = x->copy_due = x->dropped = 0;
		if (x->keeps == x->stage + 1 && !x->move.load)
			x->keeps = 0;
	}
	/* A restarted controller learns from the record which stages have started */
	if (s->stack == P_STACK_NEXT || (s->stack == P_STACKED && !(r->p->rules & P_RECORD_STACK)))
		s->stack = P_STACK_LATER;
	if (!s->committed)
		p_forget_sums(s);
}

/* Returns true if the controller dies in the middle of an announcement. Both cases are tried. */
bool p_dies_telling(struct p_run *r)
{
	return r->s.takeovers > 0 && p_choose(r, 2);
}

/* ---- reroutes ---- */

void p_hear_route(struct p_node *x, int m)
{
	x->view[m] = P_CURRENT;
	x->mine = (uint8_t)((x->mine & ~(1 << m)) | (x->on & 1 << m));
}

/* Announces the new routes of the microbatches in `changed`. over: the microbatches that start
 * over. */
static void reroute_announce(struct p_run *r, uint8_t changed, uint8_t over)
{
	const struct p_state before = r->s;
	bool dies = p_dies_telling(r);

	p_forget_sums(&r->s);
	for (int i = 0; i < r->p->nodes; i++) {
		struct p_node *x = &r->s.nodes[i];
		bool hears = p_is_replica(x) && x->alive && (!dies || p_choose(r, 2));

		for (int m = 0; m < P_BATCHES && x->alive && x->began == 1; m++) {
			if (!(changed >> m & 1))
				continue;
			if (hears)
				p_hear_route(x, m);
			else if (x->view[m] == P_CURRENT)
				x->view[m] = P_OLD;
		}
		if (x->given_up) /* the node's work is no longer needed */
			p_forget_iteration(x);
	}
	p_lose_inputs(r, &before);
	for (int i = 0; i < r->p->nodes; i++)
		for (int m = 0; m < P_BATCHES; m++)
			if ((over >> m & 1) && r->s.nodes[i].view[m] == P_CURRENT)
				r->s.nodes[i].has &= (uint8_t) ~(1 << m);
	if (dies)
		p_crash(r);
}

/* Returns true if slots could wait in a circle. In the controller this depends on forward passes,
 * which the model does not have. Therefore both cases are tried. */
static bool starts_over(struct p_run *r, int m)
{
	bool owes = false;

	for (int i = 0; i < r->p->nodes; i++)
		owes = owes || (r->s.nodes[i].at == 0 && (r->s.nodes[i].owed >> m & 1));
	if (!owes || p_choose(r, 2) == 0)
		return false;
	for (int i = 0; i < r->p->nodes; i++)
		r->s.nodes[i].owed &= (uint8_t) ~(1 << m);
	r->s.home &= (uint8_t) ~(1 << m);
	r->s.over |= (uint8_t)(1 << m);
	return true;
}

static int substitute(struct p_run *r, int stage)
{
	int found_at[P_NODES], n = 0;

	for (int i = 0; i < r->p->nodes; i++)
		if (r->s.nodes[i].standing == P_LIVE && r->s.nodes[i].stage == stage)
			found_at[n++] = i;
	return n == 0 ? -1 : found_at[p_choose(r, n)];
}

/* Returns false if no node of the stage can be a substitute. */
static bool reroute_without(struct p_run *r, struct p_node *gone)
{
	uint8_t changed = gone->on, over = 0;

	if (p_count_replicas(&r->s, r->p->nodes, gone->stage) == 0)
		return false;
	for (int m = 0; m < P_BATCHES; m++) {
		int to;

		if (!(changed >> m & 1))
			continue;
		to = substitute(r, gone->at);
		if (to < 0)
			return false;
		r->s.nodes[to].at = gone->at;
		r->s.nodes[to].on |= (uint8_t)(1 << m);
		r->s.nodes[to].owed |= (uint8_t)(1 << m);
	}
	gone->on = gone->owed = gone->reported = 0;
	gone->given_up = changed != 0;
	for (int m = 0; m < P_BATCHES; m++)
		over |= (uint8_t)(((changed >> m & 1) && starts_over(r, m)) << m);
	r->s.changed |= changed;
	reroute_announce(r, changed, over);
	return true;
}

static void stall(struct p_state *s)
{
	if (p_is_stalled(s))
		return;
	p_forget_sums(s); /* when the run continues, no sum of this attempt will be valid */
	s->phase = s->phase == P_COMPUTING  ? P_STALLED
		   : s->phase == P_REDUCING ? P_STALLED_REDUCING
					    : P_STALLED_PLANNING;
}

static bool rerun_without(struct p_run *r, struct p_node *gone)
{
	bool done = reroute_without(r, gone);

	if (!done)
		stall(&r->s);
	return done && !r->crashed;
}

/* Returns any dead node on a route. The controller takes the node with the lowest number, but the
 * model's nodes have no fixed numbers. */
struct p_node *p_gone_on_route(struct p_run *r)
{
	int of[P_NODES], n = 0;

	for (int i = 0; i < r->p->nodes; i++)
		if (!p_is_replica(&r->s.nodes[i]) && r->s.nodes[i].on)
			of[n++] = i;
	return n == 0 ? NULL : &r->s.nodes[of[p_choose(r, n)]];
}

void p_begin_reduction(struct p_run *r)
{
	struct p_node *gone;

	p_forget_sums(&r->s);
	while ((r->p->rules & P_RERUN_DEAD) && (gone = p_gone_on_route(r)))
		if (!rerun_without(r, gone))
			return;
	if (p_all_done(r) || !(r->p->rules & P_RERUN_DEAD))
		p_reduce_rest(r);
	else
		r->s.phase = P_COMPUTING;
}

static void rerun_lost_gradients(struct p_run *r, struct p_node *gone)
{
	if (!rerun_without(r, gone))
		return;
	if (p_all_done(r) || (r->p->rules & P_RERUN_DEAD)) {
		p_begin_reduction(r);
		return;
	}
	p_forget_sums(&r->s);
	r->s.phase = P_COMPUTING;
}

/* ---- the commit ---- */

bool p_copies_awaited(const struct p_node *x)
{
	return x->copies && x->keeps && !x->fetching;
}

static bool sum_missing(const struct p_run *r)
{
	for (int i = 0; i < r->p->nodes; i++) {
		const struct p_node *x = &r->s.nodes[i];

		if ((p_is_replica(x) && !x->reduced) || (p_copies_awaited(x) && !x->copy_reduced))
			return true;
	}
	return false;
}

/* Returns true if the reported sums of the stage differ. Reports of dead nodes count too. */
static bool sums_differ(const struct p_run *r, int stage)
{
	return (r->s.sums_reported[stage] & 3) == 3;
}

static bool audited(const struct p_run *r)
{
	for (int i = 0; i < r->p->nodes; i++) {
		const struct p_node *x = &r->s.nodes[i];

		if ((x->on && !(x->in_sum && x->at == x->stage) && (r->p->rules & P_AUDIT_HOPS)) ||
		    (x->in_sum && x->reported != x->on))
			return false;
	}
	return true;
}

static void check_content(struct p_run *r)
{
	for (int st = 0; st < r->p->stages; st++)
		for (int m = 0; m < P_BATCHES; m++) {
			if (r->s.content[st][m] < (r->p->path[m] >> st & 1))
				p_found(r, "the commit lacks a gradient");
			if (r->s.content[st][m] > (r->p->path[m] >> st & 1))
				p_found(r, "the commit has a gradient twice");
		}
}

static void commit(struct p_run *r)
{
	bool dies;

	if (!audited(r)) {
		p_found(r, "the run ends by its own audit");
		return;
	}
	check_content(r);
	dies = r->s.stack == P_STACK_NEXT && p_dies_telling(r);
	r->s.phase = P_COMMITTED;
	r->s.committed = 1;
	r->s.home = r->s.changed = r->s.over = r->s.taken_over = 0;
	if (r->s.stack == P_STACK_NEXT)
		p_stacking_begin(r, dies);
	for (int i = 0; i < r->p->nodes; i++) {
		struct p_node *x = &r->s.nodes[i];

		x->standing = x->standing == P_SYNCING ? P_LIVE : x->standing;
		x->due = p_is_replica(x) && x->alive;
		x->copy_due = x->copies && x->alive;
		x->on = x->owed = x->reported = x->given_up = 0;
		x->at = x->stage;
		x->began = 0;
		p_forget_iteration(x);
	}
	if (dies)
		p_crash(r);
}

void p_commit_when_reduced(struct p_run *r)
{
	bool differ = false;

	if (sum_missing(r))
		return;
	for (int st = 0; st < r->p->stages; st++) {
		if (p_count_replicas(&r->s, r->p->nodes, st) == 0)
			return;
		differ = differ || sums_differ(r, st);
	}
	if (differ)
		p_begin_reduction(r);
	else
		commit(r);
}

/* ---- deaths ---- */

static bool stage_has_sum(const struct p_run *r, int stage)
{
	for (int i = 0; i < r->p->nodes; i++)
		if (p_is_replica(&r->s.nodes[i]) && r->s.nodes[i].stage == stage &&
		    !r->s.nodes[i].reduced)
			return false;
	return true;
}

void p_iteration_lost(struct p_run *r, struct p_node *x)
{
	switch (r->s.phase) {
	case P_COMPUTING:
		rerun_lost_gradients(r, x);
		break;
	case P_REDUCING:
		if (p_count_replicas(&r->s, r->p->nodes, x->stage) > 0 &&
		    stage_has_sum(r, x->stage) && r->s.sums_reported[x->stage] & 4 &&
		    !(x->on & ~x->reported))
			p_commit_when_reduced(r);
		else
			rerun_lost_gradients(r, x);
		break;
	case P_COMMITTED: /* the next iteration waits until each stage has a replica */
		break;
	default:
		if (!p_replicas_everywhere(r))
			stall(&r->s);
	}
}

void p_members_gone(struct p_run *r, struct p_node *x)
{
	bool was_replica = p_is_replica(x);

	x->standing = P_GONE;
	x->copies = x->copy_reduced = x->keeps = x->fetching = 0;
	x->copy_sum = x->copy_wrong = 0;
	x->reduced = 0;
	x->wrong = x->alive ? x->wrong : 0;
	if (was_replica)
		p_iteration_lost(r, x);
	else if (r->s.phase == P_REDUCING)
		p_commit_when_reduced(r);
}

void p_kill_node(struct p_run *r, struct p_node *x)
{
	const struct p_state before = r->s;
	bool summed = x->in_sum, gave = x->sum != P_COUNTING;

	r->s.deaths--;
	p_end_process(x);
	if (summed && x->reduced) /* the node's report counts until its death is noticed */
		x->wrong = before.nodes[x - r->s.nodes].wrong;
	if (x->copy_reduced)
		x->copy_wrong = before.nodes[x - r->s.nodes].copy_wrong;
	if (x->move.listed)
		x->copy_applied = before.nodes[x - r->s.nodes].copy_applied;
	for (int i = 0; i < r->p->nodes; i++) {
		struct p_node *y = &r->s.nodes[i];

		if (summed && y->stage == x->stage && (y->sum == P_BEGUN || y->sum == P_COUNTING) &&
		    (!gave || p_choose(r, 2)))
			y->sum = P_BROKEN;
		if (summed && y->keeps == x->stage + 1 && y->copy_sum == P_BEGUN &&
		    (!gave || p_choose(r, 2)))
			y->copy_sum = P_BROKEN;
	}
	p_lose_inputs(r, &before);
}
