/* protocol_recut.c - for tests: a change of stages after the commit in the protocol's model, as
 * in recut.c and, for agents, join.c.
 *
 * The number of stages stays the same here. A node's new stage can therefore have the same number
 * as its former stage. Only the identity of the run tells these two stages apart. */
#include "controller/tests/protocol_run.h"

bool p_is_recut(const struct p_state *s)
{
	return s->cut == P_CUT_RECORDED || s->cut == P_CUT_SETTLED;
}

/* Returns true if the next iteration waits for the change. */
bool p_recut_waits(const struct p_state *s)
{
	return s->cut == P_CUT_ORDERED || s->cut == P_CUT_SAVING || s->cut == P_CUT_RECORDED;
}

/* ---- saving the last commit ---- */

bool p_recut_may_save(const struct p_state *s, const struct p_node *x)
{
	return x->alive && p_is_replica(x) && x->applied && s->cut == P_CUT_SAVING &&
	       !(s->saved >> x->stage & 1);
}

/* Returns true if no node is left that could save one of the stages. */
bool p_recut_cannot_save(const struct p_run *r)
{
	uint8_t can = r->s.saved;

	for (int i = 0; i < r->p->nodes; i++) {
		const struct p_node *x = &r->s.nodes[i];

		/* a dead node still counts as able, until the controller notices its death */
		if (p_is_replica(x) && (!x->alive || x->applied || x->due))
			can |= (uint8_t)(1 << x->stage);
	}
	return r->s.cut == P_CUT_SAVING && can != (1 << r->p->stages) - 1;
}

/* ---- cutting ---- */

static bool is_saved(const struct p_run *r)
{
	return r->s.saved == (1 << r->p->stages) - 1;
}

bool p_recut_may_cut(const struct p_run *r)
{
	return (r->s.cut == P_CUT_ORDERED || r->s.cut == P_CUT_SAVING) &&
	       (is_saved(r) || !(r->p->rules & P_SAVE_LAST));
}

static void forget_former(struct p_node *x)
{
	p_forget_iteration(x);
	x->on = x->owed = x->reported = x->given_up = 0;
	x->keeps = x->copies = x->fetching = x->copy_sum = x->copy_wrong = 0;
	x->due = x->copy_due = x->copy_applied = 0;
	x->standing = P_GONE;
}

/* Gives a stage to each node that the controller knows. Returns false if there are too few
 * nodes. */
static bool deal(struct p_run *r)
{
	int here[P_NODES], n = 0, turned;

	for (int i = 0; i < r->p->nodes; i++)
		if (r->s.nodes[i].standing != P_GONE)
			here[n++] = i;
	if (n < r->p->stages)
		return false;
	turned = p_choose(r, 2);
	for (int i = 0; i < n; i++) {
		int stage = i * r->p->stages / n;

		r->s.nodes[here[i]].stage = (uint8_t)(turned ? r->p->stages - 1 - stage : stage);
	}
	for (int i = 0; i < r->p->nodes; i++) {
		struct p_node *x = &r->s.nodes[i];

		forget_former(x);
		x->at = x->stage;
	}
	return true;
}

/* The controller ends, begins again, cuts the saved files and records the new stages. The
 * controller may die after it has written the record and before it moves the files to their
 * folder. */
void p_recut_cut(struct p_run *r)
{
	bool dies;

	if (!is_saved(r))
		p_found(r, "the new stages have weights of another commit");
	if (!deal(r)) {
		r->s.cut = P_CUT_DROPPED;
		return;
	}
	dies = p_dies_telling(r);
	r->s.cut = dies ? P_CUT_RECORDED : P_CUT_SETTLED;
	r->s.has_files = !dies || (r->p->rules & P_FILES_FIRST);
	if (dies)
		p_crash(r);
}

/* ---- nodes of the new stages ---- */

bool p_recut_may_meet(const struct p_state *s, const struct p_node *x)
{
	return x->alive && x->standing == P_GONE && x->move.cut == P_OF_FORMER &&
	       s->cut == P_CUT_SETTLED;
}

/* The agent joins the controller that has begun again. The number of its stage and the number of
 * its last commit may be the same as before. */
void p_recut_meet(struct p_run *r, struct p_node *x)
{
	if (!(r->p->rules & P_NEW_IDENTITY) && x->applied) {
		x->standing = P_LIVE;
		return;
	}
	x->move.cut = P_OF_NONE;
	x->sum = x->wrong = x->applied = 0;
}

bool p_recut_may_read(const struct p_state *s, const struct p_node *x)
{
	return x->alive && x->move.cut == P_OF_NONE && s->cut == P_CUT_SETTLED;
}

void p_recut_read(struct p_node *x)
{
	x->move.cut = P_OF_NEW;
	x->applied = 1;
	x->standing = P_LIVE;
}

void p_recut_start(struct p_run *r)
{
	for (int i = 0; i < r->p->nodes; i++) {
		const struct p_node *x = &r->s.nodes[i];

		if (r->s.cut == P_CUT_SETTLED && x->alive && p_is_replica(x) &&
		    x->move.cut != P_OF_NEW)
			p_found(r, "a node begins with a stage of the former cut");
	}
}

/* ---- the controller's death ---- */

/* A new controller finds the order in the record, and also the files that were saved. */
void p_recut_crash(struct p_state *s)
{
	if (s->cut == P_CUT_SAVING)
		s->cut = P_CUT_ORDERED;
}

void p_recut_settle(struct p_run *r)
{
	if (r->s.cut == P_CUT_RECORDED && r->s.has_files && (r->p->rules & P_SETTLE_FILES))
		r->s.cut = P_CUT_SETTLED;
}

/* A node with weights of the former stages does not become a replica. */
void p_recut_gather(const struct p_run *r, struct p_node *x)
{
	if (!p_is_recut(&r->s))
		return;
	x->due = x->copy_due = 0;
	x->standing = x->alive && x->move.cut == P_OF_NEW ? P_LIVE : P_GONE;
}
