/* protocol_state.c - for tests: the choices within a step of the protocol's model, and the true
 * state of its nodes.
 *
 * The controller cannot see the true state. The model needs it to know which events are
 * possible. */
#include "controller/tests/protocol_run.h"

#include <string.h>

int p_choose(struct p_run *r, int n)
{
	if (n <= 1)
		return 0;
	if (r->at == r->n) {
		r->choice[r->n] = 0;
		r->bound[r->n++] = (uint8_t)n;
	}
	return r->choice[r->at++];
}

/* Advances to the next series of choices. Returns false if all have been tried. */
bool p_choose_others(struct p_run *r)
{
	while (r->n > 0 && ++r->choice[r->n - 1] == r->bound[r->n - 1])
		r->n--;
	r->at = 0;
	return r->n > 0;
}

void p_found(struct p_run *r, const char *wrong)
{
	r->wrong = r->wrong ? r->wrong : wrong;
}

/* ---- the true state ---- */

bool p_is_replica(const struct p_node *x)
{
	return x->standing >= P_SYNCING;
}

uint32_t p_count_replicas(const struct p_state *s, int n, int stage)
{
	uint32_t k = 0;

	for (int i = 0; i < n; i++)
		k += p_is_replica(&s->nodes[i]) && s->nodes[i].stage == stage;
	return k;
}

bool p_replicas_everywhere(const struct p_run *r)
{
	for (int st = 0; st < r->p->stages; st++)
		if (p_count_replicas(&r->s, r->p->nodes, st) == 0)
			return false;
	return true;
}

bool p_is_stalled(const struct p_state *s)
{
	return s->phase >= P_STALLED && s->phase <= P_STALLED_PLANNING;
}

static bool sends_to(const struct p_node *from, const struct p_node *to, int m)
{
	return from->alive && from->began == 1 && (from->mine >> m & 1) &&
	       from->view[m] == to->view[m];
}

/* Returns true if the input of x's gradient is available. The input is the gradient of the next
 * hop. For the last stage, the input is the whole forward pass. */
bool p_has_input(const struct protocol *p, const struct p_state *s, const struct p_node *x, int m)
{
	uint8_t after = (uint8_t)(p->path[m] >> x->stage >> 1);

	if (x->has >> m & 1)
		return true;
	for (int st = 0; st < p->stages; st++) {
		bool needed = after ? st > x->stage && (after & -after) == 1 << (st - x->stage - 1)
				    : st < x->stage;
		bool there = false;

		if (!needed || !(p->path[m] >> st & 1))
			continue;
		for (int i = 0; i < p->nodes; i++)
			there = there || (s->nodes[i].stage == st && sends_to(&s->nodes[i], x, m) &&
					  (!after || (s->nodes[i].counted >> m & 1)));
		if (!there)
			return false;
	}
	return true;
}

/* Returns true if every node on the route has counted the microbatch. */
bool p_all_counted(const struct p_state *s, int m)
{
	for (int i = 0; i < P_NODES; i++)
		if ((s->nodes[i].on & ~s->nodes[i].counted) >> m & 1)
			return false;
	return true;
}

bool p_lacks(const struct p_node *x, int m)
{
	return x->alive && x->began == 1 && (x->mine >> m & 1) && !(x->counted >> m & 1);
}

/* Handles inputs that were available before the step and are not any more. Each of them either has
 * arrived already, or is lost. */
void p_lose_inputs(struct p_run *r, const struct p_state *before)
{
	for (int i = 0; i < r->p->nodes; i++)
		for (int m = 0; m < P_BATCHES; m++) {
			struct p_node *x = &r->s.nodes[i];

			if (p_lacks(x, m) && p_lacks(&before->nodes[i], m) &&
			    p_has_input(r->p, before, &before->nodes[i], m) &&
			    !p_has_input(r->p, &r->s, x, m) && p_choose(r, 2))
				x->has |= (uint8_t)(1 << m);
		}
}

void p_forget_iteration(struct p_node *x)
{
	x->counted = x->mine = x->has = x->dropped = 0;
	memset(x->view, P_CURRENT, sizeof(x->view));
}

/* Makes the node start the iteration with another plan. Its counts in earlier attempts are void. */
void p_begin_iteration(const struct protocol *p, struct p_node *x)
{
	uint8_t counted = p->rules & P_START_AT_ZERO ? 0 : x->counted;

	p_forget_iteration(x);
	x->counted = counted;
}

/* Makes the node a new process that holds the node's weights and has not begun the iteration. */
void p_begin_process(struct p_node *x)
{
	x->alive = 1;
	x->began = x->sum = x->wrong = x->due = x->applied = x->move.load = 0;
	p_forget_iteration(x);
}

void p_end_process(struct p_node *x)
{
	p_begin_process(x);
	x->alive = x->copy_sum = x->copy_wrong = x->copy_due = x->copy_applied = 0;
	x->layers = P_OWN_LAYERS;
	x->move.cut = P_OF_FORMER;
}
