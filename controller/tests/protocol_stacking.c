/* protocol_stacking.c - for tests: stages that start from trained stages in the protocol's model,
 * as in stacking.c, skip_phases.c and, for agents, iteration.c.
 *
 * A function p_x corresponds to stacking_x or a similar function of those files. A change to the
 * controller's function is therefore easy to repeat here. */
#include "base/stage_set.h"
#include "controller/tests/protocol_run.h"

static int source_of(const struct protocol *p, const struct p_node *x)
{
	return stage_set_source(p->always, x->stage);
}

static bool is_concerned(const struct protocol *p, const struct p_node *x)
{
	return p_is_replica(x) && !(p->always >> x->stage & 1);
}

static bool has_copy(const struct p_run *r, const struct p_node *x)
{
	return x->keeps == source_of(r->p, x) + 1 &&
	       (!x->fetching || !(r->p->rules & P_NEED_WHOLE_COPY));
}

/* Returns the stages that can be visited: stages from which other stages start, and stages with a
 * node for which `lets` returns true. */
static uint8_t stages_with(const struct p_run *r,
			   bool (*lets)(const struct p_run *r, const struct p_node *x))
{
	uint8_t have = r->p->always;

	for (int i = 0; i < r->p->nodes; i++)
		if (is_concerned(r->p, &r->s.nodes[i]) && lets(r, &r->s.nodes[i]))
			have |= (uint8_t)(1 << r->s.nodes[i].stage);
	return have;
}

/* ---- when an iteration begins ---- */

/* Orders nodes to fetch copies. A node whose memory or link does not allow a copy gets none. */
void p_stacking_turn(struct p_run *r)
{
	for (int i = 0; r->s.stack != P_NO_STACK && i < r->p->nodes; i++) {
		struct p_node *x = &r->s.nodes[i];

		if (!is_concerned(r->p, x) || x->keeps)
			continue;
		x->fetching = r->s.phase != P_PLANNING || p_choose(r, 2) == 0;
		x->keeps = x->fetching ? (uint8_t)(source_of(r->p, x) + 1) : 0;
	}
}

/* Begins the phase that visits these stages with the next iteration, unless the run waits for a
 * copy. */
void p_next_phase(struct p_run *r)
{
	for (int i = 0; i < r->p->nodes; i++) {
		const struct p_node *x = &r->s.nodes[i];

		if (is_concerned(r->p, x) && x->fetching && !has_copy(r, x))
			return;
	}
	if (r->s.stack == P_STACK_LATER && stages_with(r, has_copy) == (1 << r->p->stages) - 1)
		r->s.stack = P_STACK_NEXT;
}

/* ---- the commit ---- */

static bool has_summed_copy(const struct p_run *r, const struct p_node *x)
{
	return has_copy(r, x) && x->copies && x->copy_reduced;
}

static bool stacking_due(const struct p_run *r)
{
	return stages_with(r, has_summed_copy) == (1 << r->p->stages) - 1;
}

/* If some stage has no node whose copy has the sum, the commit is an ordinary one, and the phase
 * begins later. dies: the controller dies once the commit is durable. */
void p_stacking_begin(struct p_run *r, bool dies)
{
	if (!stacking_due(r)) {
		r->s.stack = P_STACK_LATER;
		return;
	}
	r->s.stack = P_STACKED;
	for (int i = 0; !dies && i < r->p->nodes; i++) {
		struct p_node *x = &r->s.nodes[i];
		bool is_void = x->keeps && !(r->p->always >> (x->keeps - 1) & 1);

		if (is_concerned(r->p, x) && !has_summed_copy(r, x) &&
		    (r->p->rules & P_DROP_WITHOUT_COPY)) {
			x->standing = P_GONE;
			x->keeps = x->fetching = x->copies = x->copy_sum = 0;
		}
		if (!is_void)
			continue;
		x->keeps = x->copies = x->copy_sum = 0;
		if (x->standing == P_JOINER)
			x->standing = P_GONE;
	}
}

/* ---- agents ---- */

/* Returns true if the node can make the commit's change of weights. If its stage starts from a
 * source, the node needs a complete copy of this source, which gets this commit, too. */
bool p_can_take_layers(const struct p_run *r, const struct p_node *x)
{
	return r->s.stack != P_STACKED || (r->p->always >> x->stage & 1) ||
	       (x->keeps == source_of(r->p, x) + 1 && !x->fetching &&
		(x->copy_due || x->copy_applied));
}

/* The node has the commit. Returns true if it need not wait until its copy has made the commit's
 * step, too. */
bool p_may_take_layers(const struct p_run *r, const struct p_node *x)
{
	if (r->s.stack != P_STACKED || (r->p->always >> x->stage & 1))
		return true;
	return x->keeps == 0 || x->copy_applied || !(r->p->rules & P_AWAIT_COPY_STEP);
}

/* Returns true if the agent drops its copy at this commit, because the copied stage itself starts
 * from another stage. */
bool p_is_void_copy(struct p_run *r, const struct p_node *x)
{
	if (r->s.stack != P_STACKED)
		return false;
	if (x->keeps == 0)
		return true; /* the copy was dropped already */
	if (r->p->always >> (x->keeps - 1) & 1)
		return false;
	if (!(r->p->rules & P_VOID_COPIES))
		p_found(r, "a copy has other layers than its stage");
	return true;
}

/* If the node's stage starts from its source with this commit, takes the layers of the node's
 * copy. */
void p_take_layers(struct p_run *r, struct p_node *x)
{
	if (r->p->always >> x->stage & 1)
		return;
	if (x->keeps != source_of(r->p, x) + 1 || x->fetching) {
		p_found(r, "a node lacks the copy whose layers it should take");
		return;
	}
	x->layers = x->copy_applied ? P_LAYERS_OF_COMMIT : P_LAYERS_BEFORE;
	x->wrong = x->copy_wrong;
	if (x->layers != P_LAYERS_OF_COMMIT)
		p_found(r, "a stage starts from another commit of its source");
}

/* Returns true if every stage that starts from a source has a living node that has taken the
 * source's layers. may_still: nodes that will take the layers later count, too. */
bool p_stages_started(const struct protocol *p, const struct p_state *s, bool may_still)
{
	uint8_t started = p->always;

	if (s->stack != P_STACKED)
		return true;
	for (int i = 0; i < p->nodes; i++) {
		const struct p_node *x = &s->nodes[i];

		if (x->alive && ((x->applied && x->layers == P_LAYERS_OF_COMMIT) ||
				 (may_still && x->keeps == source_of(p, x) + 1 && !x->fetching &&
				  x->sum == P_SUMMED)))
			started |= (uint8_t)(1 << x->stage);
	}
	return started == (1 << p->stages) - 1;
}
