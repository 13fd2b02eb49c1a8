/* protocol_moves.c - for tests: nodes that move to another stage between two iterations in the
 * protocol's model, as in phase_moves.c and, for agents, assign.c.
 *
 * A function p_moves_x corresponds to phase_moves_x or a similar function of those files. A
 * change to the controller's function is therefore easy to repeat here. The plan for an exchange
 * is always ready. */
#include "controller/tests/protocol_run.h"

/* ---- when an iteration begins ---- */

/* Makes each node that will move fetch its new stage. */
void p_moves_fetch(struct p_run *r)
{
	for (int i = 0; r->s.moves && i < r->p->nodes; i++) {
		struct p_node *x = &r->s.nodes[i];

		if (x->move.to == x->stage + 1)
			/* the node has already taken over this stage, so it need not move */
			x->move.to = 0;
		if (x->move.to && x->standing == P_LIVE && !x->keeps) {
			x->keeps = x->move.to;
			x->fetching = 1;
		}
	}
}

/* Returns true if the node can take part in an exchange. The stage of an absent node is exchanged
 * without a copy. */
static bool may_be_listed(const struct p_run *r, const struct p_node *x)
{
	if (!p_is_replica(x))
		return x->move.to && x->standing == P_GONE;
	return x->move.to && x->standing == P_LIVE && x->keeps == x->move.to &&
	       (!x->fetching || !(r->p->rules & P_LIST_WHOLE_COPIES));
}

/* Lists the replicas of the stage that move or, if `listed` is false, those that stay. Returns the
 * number of these replicas. */
static int replicas_of(struct p_run *r, int stage, bool listed, struct p_node **of)
{
	int n = 0;

	for (int i = 0; i < r->p->nodes; i++) {
		struct p_node *x = &r->s.nodes[i];

		if (x->standing == P_LIVE && x->stage == stage && x->move.listed == listed)
			of[n++] = x;
	}
	return n;
}

/* Keeps one replica in each stage. Returns false if a stage has no replica that could stay. */
static bool keep_stayers(struct p_run *r)
{
	struct p_node *of[P_NODES];

	for (int st = 0; (r->p->rules & P_KEEP_STAYERS) && st < r->p->stages; st++) {
		int n;

		if (replicas_of(r, st, false, of) > 0)
			continue;
		n = replicas_of(r, st, true, of);
		if (n == 0)
			return false;
		of[p_choose(r, n)]->move.listed = 0;
	}
	return true;
}

/* Keeps the number of data nodes the same, because it must divide the number of microbatches. */
static void keep_data_nodes(struct p_run *r)
{
	int n = 0;

	for (int i = 0; i < r->p->nodes; i++) {
		const struct p_node *x = &r->s.nodes[i];

		n += (x->move.listed ? x->move.to - 1 : x->stage) == 0;
	}
	for (int i = 0; (n == 0 || P_BATCHES % n != 0) && i < r->p->nodes; i++)
		if (r->s.nodes[i].stage == 0 || r->s.nodes[i].move.to == 1)
			r->s.nodes[i].move.listed = 0;
}

/* Lists the nodes that move before the next iteration. */
void p_moves_prepare(struct p_run *r)
{
	bool moves = r->s.moves == P_MOVES_LATER;
	bool any = false;

	for (int i = 0; moves && i < r->p->nodes; i++)
		r->s.nodes[i].move.listed = may_be_listed(r, &r->s.nodes[i]);
	moves = moves && keep_stayers(r);
	if (moves)
		keep_data_nodes(r);
	for (int i = 0; i < r->p->nodes; i++) {
		struct p_node *x = &r->s.nodes[i];

		x->move.listed = x->move.listed && moves;
		any = any || (x->move.listed && p_is_replica(x));
	}
	if (any)
		r->s.moves = P_LISTED;
	else if (moves)
		p_moves_drop(&r->s);
}

/* ---- until the exchange ---- */

void p_moves_drop(struct p_state *s)
{
	for (int i = 0; i < P_NODES; i++)
		s->nodes[i].move.listed = 0;
	if (s->moves == P_LISTED)
		s->moves = P_MOVES_LATER;
}

/* Returns true if the controller believes that the listed node can still move. */
static bool may_move(const struct p_run *r, const struct p_node *x)
{
	if (!p_is_replica(x))
		return x->standing == P_GONE;
	return x->standing == P_LIVE && x->keeps == x->move.to &&
	       (!x->fetching || !(r->p->rules & P_LIST_WHOLE_COPIES)) &&
	       (r->s.phase != P_COMMITTED || x->copies);
}

static bool is_possible(struct p_run *r)
{
	struct p_node *of[P_NODES];

	if (!(r->p->rules & P_CHECK_LISTED))
		return true;
	for (int i = 0; i < r->p->nodes; i++)
		if (r->s.nodes[i].move.listed && !may_move(r, &r->s.nodes[i]))
			return false;
	for (int st = 0; (r->p->rules & P_KEEP_STAYERS) && st < r->p->stages; st++)
		if (replicas_of(r, st, false, of) == 0)
			return false;
	return true;
}

/* Drops an exchange that has become impossible. The controller checks this at any time except
 * during the sums. */
void p_moves_turn(struct p_run *r)
{
	bool looks = r->s.phase == P_COMPUTING || r->s.phase == P_COMMITTED;

	if (r->s.moves == P_LISTED && looks && !is_possible(r))
		p_moves_drop(&r->s);
}

/* Returns true if every listed node has reported that its copy has made the commit's step. */
bool p_moves_complete(const struct p_run *r)
{
	for (int i = 0; i < r->p->nodes; i++) {
		const struct p_node *x = &r->s.nodes[i];

		if (x->move.listed && p_is_replica(x) && !x->copy_applied)
			return false;
	}
	return true;
}

/* ---- the exchange ---- */

/* Gives the listed nodes their new stages. The record has the new stages before any node receives
 * its order. */
void p_moves_exchange(struct p_run *r)
{
	struct p_node *of[P_NODES];
	bool dies = p_dies_telling(r);

	for (int i = 0; i < r->p->nodes; i++) {
		struct p_node *x = &r->s.nodes[i];
		bool hears = x->move.listed && p_is_replica(x) && (!dies || p_choose(r, 2));

		if (!x->move.listed)
			continue;
		x->move.load = !x->alive ? P_HAS_WEIGHTS : hears ? P_LOAD_ORDERED : P_LOAD_AWAITED;
		x->stage = x->at = (uint8_t)(x->move.to - 1);
		x->standing = P_GONE;
		x->move.to = x->move.listed = x->due = x->applied = x->wrong = 0;
	}
	r->s.moves = P_MOVED;
	for (int st = 0; st < r->p->stages; st++)
		if (replicas_of(r, st, false, of) == 0)
			p_found(r, "a stage exists only in copies");
	if (dies)
		p_crash(r);
}

/* Lets the agent use its copy as its weights. */
void p_moves_load(struct p_run *r, struct p_node *x)
{
	if (x->keeps != x->stage + 1 || x->fetching) {
		p_found(r, "a node lacks the copy that it should load");
		return;
	}
	if (!x->copy_applied)
		p_found(r, "a node loads weights of another iteration");
	x->move.load = P_LOADED;
	x->applied = 1;
	x->sum = P_SUMMED;
	x->wrong = x->copy_wrong;
	x->keeps = x->copies = x->copy_sum = x->copy_wrong = x->copy_due = x->copy_applied = 0;
}

/* Makes the agent report the hash of its weights. If the hash differs from a replica's hash, the
 * agent has to fetch the stage. */
void p_moves_ready(struct p_run *r, struct p_node *x)
{
	bool differs = false;

	for (int i = 0; i < r->p->nodes; i++) {
		const struct p_node *y = &r->s.nodes[i];

		differs = differs || (p_is_replica(y) && y->stage == x->stage && y->applied &&
				      y->wrong != x->wrong);
	}
	x->move.load = differs ? P_LOAD_AWAITED : P_HAS_WEIGHTS;
	x->applied = !differs;
	x->standing = differs ? P_GONE : P_JOINER;
}

/* ---- the next iteration ---- */

/* Returns true if the agent holds the last commit, or will hold it before its next order
 * arrives. */
static bool has_commit(const struct p_node *x)
{
	return !x->move.load && (x->applied || x->due ||
			    (x->keeps == x->stage + 1 && (x->copy_applied || x->copy_due)));
}

/* Returns true if each stage has a replica, or a node that is about to become a replica. */
bool p_moves_can_start(const struct p_run *r)
{
	uint8_t have = 0;

	for (int i = 0; i < r->p->nodes; i++) {
		const struct p_node *x = &r->s.nodes[i];

		if (p_is_replica(x) || (x->standing == P_JOINER && has_commit(x)))
			have |= (uint8_t)(1 << x->stage);
	}
	return have == (1 << r->p->stages) - 1;
}

void p_moves_start(struct p_run *r)
{
	for (int i = 0; i < r->p->nodes; i++) {
		struct p_node *x = &r->s.nodes[i];

		if (x->standing == P_JOINER)
			x->standing = has_commit(x) ? P_LIVE : P_GONE;
		if (p_is_replica(x) && x->alive && !has_commit(x))
			p_found(r, "a node begins with weights of another iteration");
		for (int k = 0; k < i; k++) {
			const struct p_node *y = &r->s.nodes[k];

			if (p_is_replica(x) && p_is_replica(y) && x->alive && y->alive &&
			    x->stage == y->stage && x->applied && y->applied &&
			    x->wrong != y->wrong)
				p_found(r, "two of a stage begin with different weights");
		}
	}
	r->s.started = 1;
}

/* ---- the controller's death ---- */

/* Forgets an exchange that is prepared but not carried out. Each order has either arrived or is
 * lost. */
void p_moves_crash(struct p_run *r)
{
	p_moves_drop(&r->s);
	for (int i = 0; i < r->p->nodes; i++) {
		struct p_node *x = &r->s.nodes[i];

		if (x->move.load != P_LOAD_ORDERED)
			continue;
		x->move.load = P_LOAD_AWAITED;
		if (p_choose(r, 2))
			p_moves_load(r, x);
	}
}

/* A node that reports weights of another stage or iteration does not become a replica. */
void p_moves_gather(struct p_run *r, struct p_node *x)
{
	if ((!r->s.moves && !r->s.cut) || !r->s.committed)
		return;
	x->due = x->due && !x->move.load;
	if (x->move.load == P_LOADED)
		x->move.load = P_HAS_WEIGHTS;
	else if (x->move.load || !(x->applied || x->due))
		x->standing = P_GONE;
}

/* Returns true if the new controller can order the node to load the copy that it reports. */
bool p_moves_may_order(const struct p_run *r, const struct p_node *x)
{
	return x->move.load == P_LOAD_AWAITED && x->keeps == x->stage + 1 && !x->fetching &&
	       x->copy_applied && (r->p->rules & P_LOAD_REPORTED);
}

/* Returns the stages for which a living node holds the commit, or a copy of the commit that the
 * node can load. Weights of nodes that have left a stage do not count here, although recover.c
 * would find them. */
uint8_t p_moves_held(const struct protocol *p, const struct p_state *s)
{
	uint8_t held = 0;

	for (int i = 0; i < p->nodes; i++) {
		const struct p_node *x = &s->nodes[i];
		bool gathers = s->phase == P_GATHERING;
		bool copy = x->keeps == x->stage + 1 && !x->fetching &&
			    (x->copy_applied || x->copy_due ||
			     (gathers && x->copy_sum == P_SUMMED));
		bool own = x->applied || x->due || (gathers && x->sum == P_SUMMED);

		if (!x->alive || (x->standing == P_GONE && !gathers && !x->move.load))
			continue;
		if (x->move.load == P_HAS_WEIGHTS ? own || (copy && !gathers)
					     : copy || x->move.load == P_LOADED)
			held |= (uint8_t)(1 << x->stage);
	}
	return held;
}
