/* protocol_recover.c - for tests: restarts, stages without a replica, and a new controller in the
 * protocol's model, as in recover.c and startup.c.
 *
 * Each function has the name of the controller's function. A change to the controller's function is
 * therefore easy to repeat here. */
#include "controller/tests/protocol_run.h"

/* ---- restart ---- */

void p_restart(struct p_state *s)
{
	p_forget_sums(s);
	s->phase = P_PLANNING;
	s->home = s->over = s->taken_over = 0;
	p_moves_drop(s);
	for (int i = 0; i < P_NODES; i++)
		s->nodes[i].reported = s->nodes[i].dropped = 0;
}

static void make_plan(struct p_run *r, int stage)
{
	int of[P_NODES], n = 0, last = -1;

	for (int i = 0; i < r->p->nodes; i++) {
		r->s.nodes[i].on = r->s.nodes[i].stage == stage ? 0 : r->s.nodes[i].on;
		if (p_is_replica(&r->s.nodes[i]) && r->s.nodes[i].stage == stage)
			of[n++] = i;
	}
	for (int m = 0; m < P_BATCHES; m++) {
		int k;

		if (!(r->p->path[m] >> stage & 1))
			continue;
		k = last < 0 || n == 1 ? p_choose(r, n) : p_choose(r, n - 1);
		/* if the stage has two nodes, the two microbatches visit different nodes */
		k += last >= 0 && n > 1 && k >= last;
		last = k;
		r->s.nodes[of[k]].on |= (uint8_t)(1 << m);
	}
}

static void take_formats(struct p_run *r)
{
	if (!r->s.tried || !(r->p->rules & P_KEEP_FORMAT))
		r->s.format = r->s.wanted;
	r->s.tried = 1;
}

/* A node that begins the iteration sends tensors in the iteration's format. It is a violation if
 * other nodes may have sent tensors of this iteration in another format. */
static void begin_in_format(struct p_run *r)
{
	r->s.sent |= (uint8_t)(1 << r->s.format);
	if (r->s.sent == 3)
		p_found(r, "who is honest is left out: its tensor has another format");
}

void p_begin(struct p_run *r)
{
	uint8_t stored = r->s.format;
	bool dies;

	take_formats(r);
	p_admit_joiners(r, false);
	/* the plan of the next phase may be late */
	if (r->s.stack == P_STACK_NEXT && p_choose(r, 2))
		r->s.stack = P_STACK_LATER;
	p_stacking_turn(r);
	p_moves_fetch(r);
	for (int st = 0; st < r->p->stages; st++)
		make_plan(r, st);
	r->s.home = r->s.changed = r->s.over = r->s.taken_over = 0;
	dies = p_dies_telling(r);
	for (int i = 0; i < r->p->nodes; i++) {
		struct p_node *x = &r->s.nodes[i];
		bool hears = p_is_replica(x) && x->alive && (!dies || p_choose(r, 2));

		x->at = x->stage;
		x->owed = x->reported = x->given_up = 0;
		p_begin_iteration(r->p, x);
		x->began = hears ? 1 : x->began ? 2 : 0;
		x->mine = hears ? x->on : 0;
		if (hears)
			begin_in_format(r);
	}
	p_order_ahead(r->p, &r->s);
	p_next_phase(r);
	p_moves_prepare(r);
	if (r->p->overlap)
		p_reduce_early(r);
	r->s.phase = P_COMPUTING;
	if (dies && !(r->p->rules & P_STORE_FORMAT))
		r->s.format = stored;
	if (dies)
		p_crash(r);
}

/* ---- a stage without a replica ---- */

static bool all_on_route(const struct p_run *r)
{
	for (int i = 0; i < r->p->nodes; i++)
		if (r->s.nodes[i].on && !p_is_replica(&r->s.nodes[i]))
			return false;
	return true;
}

void p_resume(struct p_run *r, struct p_node *x)
{
	x->standing = P_LIVE;
	if (!x->began)
		r->s.taken_over = 1;
	if (x->dropped && ((r->p->rules & P_HEED_DROPPED) || p_replicas_everywhere(r)))
		r->s.taken_over = 1;
	if (p_replicas_everywhere(r) && !all_on_route(r))
		r->s.taken_over = 1;
	if (!p_replicas_everywhere(r) || r->s.taken_over)
		return;
	if (r->s.phase == P_STALLED_PLANNING)
		r->s.phase = P_PLANNING;
	else if (r->s.phase == P_STALLED && !(r->p->rules & P_SUM_AFTER_STALL))
		r->s.phase = P_COMPUTING;
	else {
		for (int m = 0; (r->p->rules & P_REPEAT_ROUTES) && m < P_BATCHES; m++)
			p_hear_route(x, m);
		p_begin_reduction(r);
	}
}

static bool can_spare(const struct p_run *r, const struct p_node *x)
{
	return !p_is_replica(x) || p_count_replicas(&r->s, r->p->nodes, x->stage) >= 2;
}

/* Returns the node that takes the stage over with a copy; NULL: there is none. */
struct p_node *p_taker_of(struct p_run *r, int stage)
{
	struct p_node *holder = NULL;
	int of[P_NODES], n = 0;

	for (int i = 0; i < r->p->nodes; i++) {
		struct p_node *x = &r->s.nodes[i];

		if (p_is_keeper(x, stage) && !x->fetching && x->alive && x->stage != stage)
			/* if several nodes have such a copy, the last of them is taken */
			holder = x;
	}
	if (!holder || can_spare(r, holder))
		return holder;
	for (int i = 0; i < r->p->nodes; i++)
		if (r->s.nodes[i].standing == P_LIVE && r->s.nodes[i].alive &&
		    can_spare(r, &r->s.nodes[i]))
			of[n++] = i;
	return n == 0 ? NULL : &r->s.nodes[of[p_choose(r, n)]];
}

void p_take_over(struct p_run *r, int stage)
{
	struct p_node *x = p_taker_of(r, stage);
	int away[P_NODES], n = 0;

	for (int i = 0; i < r->p->nodes; i++)
		if (r->s.nodes[i].standing == P_GONE && r->s.nodes[i].stage == stage)
			away[n++] = i;
	if (n > 0) {
		struct p_node *other = &r->s.nodes[away[p_choose(r, n)]];

		/* The dead node has lost its stage. If it returns, it behaves like a new process */
		p_end_process(other);
		other->stage = x->stage;
	}
	x->stage = (uint8_t)stage;
	x->standing = P_LIVE;
	x->keeps = x->copies = x->copy_sum = x->copy_reduced = x->fetching = 0;
	p_begin_process(x);
	r->s.taken_over = 1;
}

/* ---- a new controller ---- */

void p_gather(struct p_run *r)
{
	bool committed = r->s.committed;

	p_recut_settle(r);
	for (int i = 0; i < r->p->nodes; i++) {
		struct p_node *x = &r->s.nodes[i];
		bool late = x->alive && !committed && r->s.deaths > 0 && p_choose(r, 2);

		r->s.deaths -= late;
		x->standing = x->alive && !late ? P_LIVE : P_GONE;
		x->keeps = x->alive && !late && !x->fetching ? x->keeps : 0;
		x->fetching = 0;
		/* The node was believed dead, but may have received the whole sum */
		if (committed && x->alive && x->sum == P_BEGUN && p_choose(r, 2)) {
			x->sum = P_SUMMED;
			x->wrong = r->s.wrongs > 0 && p_choose(r, 2);
			r->s.wrongs -= x->wrong;
		}
		x->copy_due = committed && x->alive && x->copy_sum == P_SUMMED && !x->copy_applied;
		x->due = committed && x->alive && x->sum == P_SUMMED && !x->applied &&
			 p_can_take_layers(r, x);
		p_moves_gather(r, x);
		p_recut_gather(r, x);
	}
	if (committed)
		r->s.phase = P_COMMITTED;
	else if (!p_replicas_everywhere(r))
		r->s.phase = P_STALLED_PLANNING;
	else
		p_restart(&r->s);
}
