/* protocol.c - for tests: the steps of a model of the protocol (protocol.h).
 *
 * This file has the reports of agents and the faults. protocol_iteration.c and protocol_recover.c
 * have the controller's response to them. protocol_next tries every step that the state allows. */
#include "controller/tests/protocol_run.h"

#include <string.h>

/* ---- reports of agents ---- */

/* The node reports that it has counted these microbatches. */
static void take_counts(struct p_run *r, struct p_node *x, uint8_t counted)
{
	for (int m = 0; m < P_BATCHES; m++) {
		if (!(counted >> m & 1))
			continue;
		if (!(x->on >> m & 1)) {
			p_found(r, "who is honest is left out: it counted what is not its own");
			return;
		}
		if (x->at == 0 && (!(r->s.over >> m & 1) || p_all_counted(&r->s, m)))
			r->s.home |= (uint8_t)(1 << m);
	}
	x->reported |= counted;
	x->owed &= (uint8_t)~counted;
}

static void look_whether_done(struct p_run *r)
{
	if (r->wrong || r->s.phase != P_COMPUTING)
		return;
	if (r->p->overlap)
		p_reduce_early(r);
	if (p_all_done(r))
		p_reduce_rest(r);
}

static void report(struct p_run *r, struct p_node *x)
{
	take_counts(r, x, x->counted & (uint8_t) ~(x->reported | x->dropped));
	look_whether_done(r);
}

/* Each replica owns a slice. An owner must use the numbers that it encoded for the other nodes. If
 * it used its own exact numbers instead, no two nodes would have the same sum. */
static void report_sum(struct p_run *r, int stage, bool wrong)
{
	uint8_t *reported = &r->s.sums_reported[stage];
	bool differs = *reported && !(r->p->rules & P_DECODE_OWN);

	*reported |= (uint8_t)((*reported ? 4 : 0) | (wrong ? 2 : 1) | (differs ? 3 : 0));
}

static void reduced(struct p_run *r, struct p_node *x, bool wrong)
{
	x->sum = P_SUMMED;
	x->wrong = wrong;
	r->s.wrongs -= wrong;
	if (x->on & ~x->reported) {
		p_found(r, "who is honest is left out: it left a gradient out");
		return;
	}
	x->reduced = 1;
	report_sum(r, x->stage, wrong);
	if (r->s.phase == P_REDUCING)
		p_commit_when_reduced(r);
}

static void copy_reduced(struct p_run *r, struct p_node *x, bool wrong)
{
	x->copy_sum = P_SUMMED;
	x->copy_wrong = wrong;
	r->s.wrongs -= wrong;
	x->copy_reduced = 1;
	report_sum(r, x->keeps - 1, wrong);
	if (r->s.phase == P_REDUCING)
		p_commit_when_reduced(r);
}

static void overdue(struct p_run *r, struct p_node *x)
{
	x->keeps = x->copies = x->copy_sum = x->copy_wrong = 0;
	if (x->standing == P_JOINER)
		x->standing = P_GONE;
	p_commit_when_reduced(r);
}

/* Compares the hashes of a stage. If all nodes of the stage have the same hash, no node is dropped,
 * even if the sum is wrong. If there are two hashes, the nodes with one of the two are dropped. In
 * the controller, the majority or chance decides which nodes are dropped, so the model tries both.
 * A node whose copy differs fetches the copy again. */
static void agree(struct p_run *r, int stage)
{
	bool is[2] = { false, false }, out;
	uint8_t layers = 0;

	for (int i = 0; i < r->p->nodes; i++) {
		const struct p_node *x = &r->s.nodes[i];

		if (!p_is_replica(x) || x->stage != stage || !x->applied)
			continue;
		is[x->wrong] = true;
		layers |= (uint8_t)(1 << x->layers);
	}
	if (layers & (layers - 1))
		p_found(r, "two of a stage apply different commits");
	for (int i = 0; i < r->p->nodes; i++) {
		struct p_node *x = &r->s.nodes[i];

		if (x->keeps != stage + 1 || !x->copy_applied || !is[!x->copy_wrong] ||
		    /* the copy's hash is compared once the node has loaded the copy and reported
		     * the hash */
		    x->move.load)
			continue;
		x->keeps = x->copy_applied = x->copy_wrong = 0;
		if (r->s.stack == P_STACKED && !(r->p->always >> x->stage & 1))
			/* the copy from which the node should take its layers is gone */
			x->due = 0;
	}
	if (!is[0] || !is[1])
		return;
	if (!(r->p->rules & P_COMPARE_HASHES)) {
		p_found(r, "two of a stage apply different commits");
		return;
	}
	out = p_choose(r, 2);
	for (int i = 0; i < r->p->nodes; i++) {
		struct p_node *x = &r->s.nodes[i];

		if (x->stage == stage && x->applied && x->wrong == out)
			x->standing = P_GONE;
	}
}

static void lose(struct p_node *x)
{
	x->keeps = x->copies = x->copy_reduced = 0;
	x->copy_sum = x->copy_wrong = x->copy_due = x->copy_applied = 0;
}

static void apply(struct p_run *r, struct p_node *x, bool copy)
{
	uint8_t *due = copy ? &x->copy_due : &x->due,
		*applied = copy ? &x->copy_applied : &x->applied;
	int stage = copy ? x->keeps - 1 : x->stage;

	*due = 0;
	if (*applied || (copy ? x->copy_sum : x->sum) != P_SUMMED)
		return; /* the node applied this commit before, or has no sum to apply */
	if (r->s.stack == P_STACKED && !copy)
		p_take_layers(r, x);
	if (copy && p_is_void_copy(r, x)) {
		x->keeps = x->copies = x->copy_sum = 0;
		return;
	}
	*applied = 1;
	agree(r, stage);
}

/* ---- steps that may happen ---- */

static bool under_way(const struct p_state *s)
{
	return s->phase == P_COMPUTING || s->phase == P_REDUCING || p_is_stalled(s) ||
	       s->phase == P_PLANNING;
}

/* Returns true after the commit, until the next iteration begins, if nodes may move or stages may
 * change. */
static bool is_between(const struct p_state *s)
{
	return (s->moves || s->cut) && s->phase == P_COMMITTED && !s->started;
}

static bool has_weights(const struct p_run *r, int stage, const struct p_node *but)
{
	for (int i = 0; i < r->p->nodes; i++) {
		const struct p_node *x = &r->s.nodes[i];

		if (x != but && x->alive &&
		    ((x->standing == P_LIVE && x->stage == stage) ||
		     (p_is_keeper(x, stage) && !x->fetching)))
			return true;
	}
	return false;
}

static bool others_sum(const struct p_run *r, const struct p_node *x, int stage)
{
	for (int i = 0; i < r->p->nodes; i++) {
		const struct p_node *y = &r->s.nodes[i];

		if (y != x &&
		    ((y->in_sum && y->stage == stage) || (y->copies && y->keeps == stage + 1)))
			return true;
	}
	return false;
}

static bool may_keep(const struct p_run *r, const struct p_node *x, int stage)
{
	if (x->standing != P_LIVE || !x->alive || x->keeps || x->stage == stage ||
	    p_count_replicas(&r->s, r->p->nodes, stage) != 1 || !has_weights(r, stage, x))
		return false;
	for (int i = 0; i < r->p->nodes; i++)
		if (r->s.nodes[i].keeps == stage + 1)
			return false;
	return true;
}

static bool all_reduced(const struct p_run *r)
{
	for (int i = 0; i < r->p->nodes; i++)
		if (p_is_replica(&r->s.nodes[i]) && !r->s.nodes[i].reduced)
			return false;
	return true;
}

/* Returns true if the controller accepts the node's reports. */
static bool is_heard(const struct p_run *r, const struct p_node *x)
{
	return x->alive && p_is_replica(x) && r->s.phase <= P_STALLED_REDUCING;
}

static bool may_of_node(const struct p_run *r, const struct p_node *x, enum p_event e)
{
	const struct p_state *s = &r->s;
	bool stalled = p_is_stalled(s), led = under_way(s), between = is_between(s),
	     sums = s->phase == P_COMPUTING || s->phase == P_REDUCING;
	bool hears = is_heard(r, x);
	uint8_t unreported = x->counted & (uint8_t) ~(x->reported | x->dropped);

	switch (e) {
	case P_REPORT:
		return hears && unreported;
	case P_DROP:
		return x->alive && stalled && x->standing == P_GONE && !x->given_up &&
		       x->began == 1 && unreported &&
		       p_count_replicas(s, r->p->nodes, x->stage) == 0;
	case P_REDUCED:
		return x->alive && p_is_replica(x) && sums && x->sum == P_BEGUN && !unreported &&
		       p_all_given(r, x->stage);
	case P_REDUCED_WRONG:
		return s->wrongs > 0 && may_of_node(r, x, P_REDUCED) && others_sum(r, x, x->stage);
	case P_COPY_REDUCED:
		return x->alive && x->copies && sums && x->copy_sum == P_BEGUN &&
		       p_all_given(r, x->keeps - 1);
	case P_COPY_REDUCED_WRONG:
		return s->wrongs > 0 && may_of_node(r, x, P_COPY_REDUCED);
	case P_COPY_OVERDUE:
		return s->phase == P_REDUCING && p_copies_awaited(x) && !x->copy_reduced &&
		       all_reduced(r);
	case P_APPLY:
		return x->alive && x->due && (r->s.stack != P_STACKED || p_may_take_layers(r, x));
	case P_COPY_APPLY:
		return x->alive && x->copy_due;
	case P_KILL:
		return x->alive && s->deaths > 0 &&
		       (sums || stalled || between ||
			(s->stack == P_STACKED && s->phase == P_COMMITTED));
	case P_FETCHED:
		return x->alive && x->fetching && led && s->phase != P_PLANNING &&
		       has_weights(r, x->keeps - 1, x);
	case P_NOTICE:
		return !x->alive && x->standing != P_GONE && (led || between);
	case P_SILENCE:
		return x->alive && x->standing != P_GONE && led && s->deaths > 0;
	case P_JOIN:
		return x->alive && x->standing == P_GONE && led && has_weights(r, x->stage, x);
	case P_NEW_PROCESS:
		return !x->alive && x->standing == P_GONE && led && has_weights(r, x->stage, x);
	case P_RESUME:
		return x->alive && x->standing == P_GONE && stalled &&
		       p_count_replicas(s, r->p->nodes, x->stage) == 0;
	case P_ADMIT:
		return stalled && x->standing == P_JOINER;
	case P_LOSE:
		return x->alive && x->move.listed && x->keeps && !x->fetching &&
		       (s->phase == P_COMPUTING || between);
	case P_ORDER_LOAD:
		return x->alive && between && p_moves_may_order(r, x);
	case P_LOAD:
		return x->alive && between && x->move.load == P_LOAD_ORDERED;
	case P_READY:
		return x->alive && between && x->move.load == P_LOADED;
	case P_SAVED:
		return between && p_recut_may_save(s, x);
	case P_MEET:
		return between && p_recut_may_meet(s, x);
	case P_READ:
		return between && p_recut_may_read(s, x);
	default:
		return false;
	}
}

static bool may_at_all(const struct p_run *r, enum p_event e)
{
	const struct p_state *s = &r->s;

	switch (e) {
	case P_RESTART:
		return p_is_stalled(s) && p_replicas_everywhere(r);
	case P_BEGIN:
		return s->phase == P_PLANNING && p_replicas_everywhere(r);
	case P_CRASH:
		return s->takeovers > 0 && s->phase != P_GATHERING && !s->started;
	case P_CHANGE:
		return s->changes > 0 && under_way(s);
	case P_GATHER:
		return s->phase == P_GATHERING;
	case P_EXCHANGE:
		return is_between(s) && s->moves == P_LISTED &&
		       (p_moves_complete(r) || !(r->p->rules & P_AWAIT_LISTED));
	case P_EXCHANGE_LATE:
		return is_between(s) && s->moves == P_LISTED && !p_moves_complete(r);
	case P_START:
		return is_between(s) && s->moves != P_LISTED && !p_recut_waits(s) &&
		       p_moves_can_start(r);
	case P_ORDER_CUT:
		return s->cut == P_CUT_WANTED && (under_way(s) || is_between(s));
	case P_SAVE:
		return is_between(s) && s->cut == P_CUT_ORDERED;
	case P_SAVE_FAILS:
		return is_between(s) && p_recut_cannot_save(r);
	case P_CUT:
		return is_between(s) && p_recut_may_cut(r);
	default:
		return false;
	}
}

static bool may_of_arg(const struct p_run *r, const struct p_node *x, enum p_event e, int arg)
{
	switch (e) {
	case P_COUNT:
		return under_way(&r->s) && r->s.phase < P_STALLED_PLANNING && p_lacks(x, arg) &&
		       p_has_input(r->p, &r->s, x, arg);
	case P_AGAIN:
		return arg < P_BATCHES && is_heard(r, x) && x->at == 0 &&
		       (x->on & x->reported & r->s.over & ~r->s.home) >> arg & 1 &&
		       p_all_counted(&r->s, arg);
	case P_KEEP:
		return under_way(&r->s) && r->s.phase != P_REDUCING && arg < r->p->stages &&
		       may_keep(r, x, arg);
	default:
		return false;
	}
}

static void happen_to_node(struct p_run *r, struct p_node *x, const struct p_step *step)
{
	switch (step->event) {
	case P_COUNT:
		x->counted |= (uint8_t)(1 << step->arg);
		if (x->stage == 0 && is_heard(r, x))
			report(r, x);
		break;
	case P_REPORT:
		report(r, x);
		break;
	case P_AGAIN:
		r->s.home |= (uint8_t)(1 << step->arg);
		look_whether_done(r);
		break;
	case P_DROP:
		x->dropped |= x->counted & (uint8_t)~x->reported;
		break;
	case P_REDUCED:
	case P_REDUCED_WRONG:
		reduced(r, x, step->event == P_REDUCED_WRONG);
		break;
	case P_COPY_REDUCED:
	case P_COPY_REDUCED_WRONG:
		copy_reduced(r, x, step->event == P_COPY_REDUCED_WRONG);
		break;
	case P_COPY_OVERDUE:
		overdue(r, x);
		break;
	case P_APPLY:
	case P_COPY_APPLY:
		apply(r, x, step->event == P_COPY_APPLY);
		break;
	case P_KILL:
		p_kill_node(r, x);
		break;
	case P_SILENCE:
		r->s.deaths--;
		p_members_gone(r, x);
		break;
	case P_NOTICE:
		p_members_gone(r, x);
		break;
	case P_NEW_PROCESS:
	case P_JOIN:
		p_begin_process(x);
		x->standing = P_JOINER;
		x->keeps = x->stage + 1;
		x->fetching = 0;
		break;
	case P_FETCHED:
		x->fetching = 0;
		break;
	case P_KEEP:
		x->keeps = (uint8_t)(step->arg + 1);
		break;
	case P_RESUME:
		p_resume(r, x);
		break;
	case P_LOSE:
		lose(x);
		break;
	case P_ORDER_LOAD:
		x->move.load = P_LOAD_ORDERED;
		break;
	case P_LOAD:
		p_moves_load(r, x);
		break;
	case P_READY:
		p_moves_ready(r, x);
		break;
	case P_SAVED:
		r->s.saved |= (uint8_t)(1 << x->stage);
		break;
	case P_MEET:
		p_recut_meet(r, x);
		break;
	case P_READ:
		p_recut_read(x);
		break;
	case P_ADMIT:
		x->standing = P_LIVE;
		x->keeps = x->copies = x->copy_sum = 0;
		r->s.taken_over = 1;
		break;
	default:
		break;
	}
}

static void happen(struct p_run *r, const struct p_step *step)
{
	if (step->node >= 0) {
		happen_to_node(r, &r->s.nodes[step->node], step);
		return;
	}
	switch (step->event) {
	case P_TAKE_OVER:
		p_take_over(r, step->arg);
		break;
	case P_RESTART:
		p_restart(&r->s);
		break;
	case P_BEGIN:
		p_begin(r);
		break;
	case P_CRASH:
		p_crash(r);
		break;
	case P_GATHER:
		p_gather(r);
		break;
	case P_EXCHANGE:
		p_moves_exchange(r);
		break;
	case P_EXCHANGE_LATE:
		p_moves_drop(&r->s);
		break;
	case P_START:
		p_recut_start(r);
		p_moves_start(r);
		break;
	case P_ORDER_CUT:
		r->s.cut = P_CUT_ORDERED;
		break;
	case P_SAVE:
		r->s.cut = P_CUT_SAVING;
		break;
	case P_SAVE_FAILS:
		r->s.cut = P_CUT_DROPPED;
		break;
	case P_CUT:
		p_recut_cut(r);
		break;
	case P_CHANGE:
		r->s.wanted ^= 1;
		r->s.changes--;
		break;
	default:
		break;
	}
}

/* ---- states that do not differ for the rest of the iteration ---- */

/* Returns true if the work of the iteration may still be used. Each stage then has a living node
 * that has begun the iteration, and whose work no other node runs again. */
static bool may_go_on(const struct protocol *p, const struct p_state *s)
{
	uint8_t held = 0;

	for (int i = 0; i < p->nodes; i++) {
		const struct p_node *x = &s->nodes[i];

		if (x->alive && x->began == 1 && !x->given_up && x->stage == x->at)
			held |= (uint8_t)(1 << x->stage);
	}
	return held == (1 << p->stages) - 1;
}

static bool is_void(const struct protocol *p, const struct p_state *s)
{
	switch (s->phase) {
	case P_STALLED:
	case P_STALLED_REDUCING:
		return !may_go_on(p, s) || s->taken_over;
	case P_STALLED_PLANNING:
	case P_PLANNING:
		return true;
	case P_GATHERING:
		return !s->committed;
	default:
		return false;
	}
}

/* Clears the work of an iteration that can only restart. This makes many states equal, so fewer
 * states have to be explored. */
static void clear_void_work(const struct protocol *p, struct p_state *s)
{
	if (!is_void(p, s))
		return;
	s->home = s->changed = s->over = 0;
	s->taken_over = p_is_stalled(s);
	for (int i = 0; i < p->nodes; i++) {
		struct p_node *x = &s->nodes[i];

		x->on = x->owed = x->reported = x->given_up = 0;
		x->at = x->stage;
		x->began = x->began ? 2 : 0;
		p_begin_iteration(p, x);
	}
}

struct walk {
	const struct protocol *p;
	const struct p_state *from;
	p_visit visit;
	void *context;
};

static bool happens_of_itself(enum p_event e)
{
	return e != P_REDUCED_WRONG && e != P_COPY_REDUCED_WRONG && e != P_KILL && e != P_SILENCE &&
	       e != P_NEW_PROCESS && e != P_CRASH && e != P_KEEP && e != P_CHANGE && e != P_LOSE &&
	       e != P_EXCHANGE_LATE && e != P_ORDER_CUT;
}

/* Tries the step with every possible series of choices. */
static void try_step(const struct walk *w, enum p_event e, int node, int arg)
{
	struct p_step step = { e, node, arg, false };
	struct p_run r = { .p = w->p };

	do {
		r.s = *w->from;
		r.wrong = NULL;
		r.crashed = false;
		happen(&r, &step);
		p_give_parts(&r);
		p_moves_turn(&r);
		clear_void_work(w->p, &r.s);
		step.free = happens_of_itself(e) && r.s.deaths == w->from->deaths &&
			    r.s.takeovers == w->from->takeovers;
		w->visit(w->context, &step, &r.s, r.wrong);
	} while (p_choose_others(&r));
}

void protocol_next(const struct protocol *p, const struct p_state *s, p_visit visit, void *context)
{
	const struct walk w = { p, s, visit, context };
	struct p_run now = { .p = p, .s = *s };

	for (int i = 0; i < p->nodes; i++)
		for (int e = 0; e < P_EVENTS; e++) {
			if (may_of_node(&now, &now.s.nodes[i], (enum p_event)e))
				try_step(&w, (enum p_event)e, i, -1);
			for (int arg = 0; arg < P_STAGES; arg++)
				if ((e != P_COUNT || arg < P_BATCHES) &&
				    may_of_arg(&now, &now.s.nodes[i], (enum p_event)e, arg))
					try_step(&w, (enum p_event)e, i, arg);
		}
	for (int e = 0; e < P_EVENTS; e++)
		if (may_at_all(&now, (enum p_event)e))
			try_step(&w, (enum p_event)e, -1, -1);
	for (int st = 0; p_is_stalled(s) && st < p->stages; st++)
		if (p_count_replicas(s, p->nodes, st) == 0 && p_taker_of(&now, st))
			try_step(&w, P_TAKE_OVER, -1, st);
}

bool protocol_ended(const struct protocol *p, const struct p_state *s)
{
	for (int i = 0; i < P_NODES; i++)
		if (s->nodes[i].due || s->nodes[i].copy_due)
			return false;
	return s->phase == P_COMMITTED && p_stages_started(p, s, false) &&
	       ((!s->moves && !s->cut) || s->started);
}

bool protocol_can_end(const struct protocol *p, const struct p_state *s)
{
	uint8_t held = 0;

	for (int i = 0; i < p->nodes; i++)
		held |= (uint8_t)(s->nodes[i].alive << s->nodes[i].stage);
	if ((s->moves || s->cut) && !p_is_recut(s) && s->committed && !s->started)
		held = p_moves_held(p, s);
	return held == (1 << p->stages) - 1 && p_stages_started(p, s, true);
}
