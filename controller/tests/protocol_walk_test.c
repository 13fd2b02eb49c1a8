/* protocol_walk_test.c - walks through the model of the protocol at random, and compares the real
 * controller with the model after each step. */

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/tests/test.h"
#include "controller/iteration/commit.h"
#include "controller/iteration/iteration.h"
#include "controller/iteration/recover.h"
#include "controller/iteration/sums.h"
#include "controller/joining/agents.h"
#include "controller/loop.h"
#include "controller/members/lifecycle.h"
#include "controller/members/member.h"
#include "controller/network/link_table.h"
#include "controller/planning/skip_phases.h"
#include "controller/setup.h"
#include "controller/tests/protocol_run.h"
#include "controller/tests/under_way.h"
#include "controller/weights/copies.h"
#include "controller/weights/phase_moves.h"
#include "controller/weights/stacking.h"
#include "controller/weights/standbys.h"

enum { WALKS = 300, MOST_STEPS = 120, MOST_OUTCOMES = 512, TWO = 4, RESUMED = 1000 };

/* The results that one step may have. */
struct outcomes {
	struct p_step step;
	struct p_state of[MOST_OUTCOMES];
	int n;
};

enum kind {
	STAY,
	STACK, /* the second stage starts from the first stage */
	MOVE   /* nodes move to the other stage */
};

struct walk {
	struct protocol p;
	enum kind kind;
	struct controller *c;
	struct p_state s;
	struct rng rng;
	struct p_step steps[MOST_STEPS * 4]; /* steps that may be taken next */
	int n_steps;
	struct outcomes outcomes;
	char history[8192];
	uint32_t happened[P_EVENTS];
};

static bool same_step(const struct p_step *a, const struct p_step *b)
{
	return a->event == b->event && a->node == b->node && a->arg == b->arg;
}

static bool any_wrong(const struct p_state *s)
{
	bool wrong = false;

	for (int i = 0; i < P_NODES; i++)
		wrong = wrong || s->nodes[i].wrong || s->nodes[i].copy_wrong;
	return wrong;
}

/* Returns true if a stage has lost all its replicas after the commit. recover.c then finds other
 * nodes, which the model does not know. */
static bool is_lost(const struct p_state *s)
{
	return s->moves && s->phase == P_COMMITTED &&
	       (p_count_replicas(s, TWO, 0) == 0 || p_count_replicas(s, TWO, 1) == 0);
}

/* Returns true if the walk may take this step. A step must not combine several turns of the
 * controller or need the planner. In these walks the controller does not die within a step or
 * after the commit, and hashes of wrong weights are not compared. */
static bool is_walked(const struct walk *w, const struct p_step *step, const struct p_state *next)
{
	bool ends = w->s.phase == P_COMMITTED && (step->event == P_CRASH || any_wrong(&w->s));
	bool dies = step->event == P_CRASH,
	     kills = step->event == P_KILL || step->event == P_SILENCE;

	return !ends && step->event != P_ADMIT && step->event != P_TAKE_OVER &&
	       step->event != P_BEGIN && step->event != P_START && !is_lost(next) &&
	       next->takeovers + dies == w->s.takeovers &&
	       next->deaths + kills == w->s.deaths;
}

static void see_step(void *context, const struct p_step *step, const struct p_state *next,
		     const char *wrong)
{
	struct walk *w = context;

	assert_null(wrong);
	if (!is_walked(w, step, next) ||
	    (w->n_steps > 0 && same_step(&w->steps[w->n_steps - 1], step)))
		return;
	assert_true(w->n_steps < MOST_STEPS * 4);
	w->steps[w->n_steps++] = *step;
}

static void see_outcome(void *context, const struct p_step *step, const struct p_state *next,
			const char *wrong)
{
	struct walk *w = context;

	(void)wrong;
	if (!is_walked(w, step, next) || !same_step(step, &w->outcomes.step))
		return;
	assert_true(w->outcomes.n < MOST_OUTCOMES);
	w->outcomes.of[w->outcomes.n++] = *next;
}

static int standing_of(const struct controller *c, const struct member *m)
{
	if (member_is_replica(m))
		return m->state == MEMBER_SUMMING ? P_SYNCING : P_LIVE;
	return member_joins(&c->run, m) ? P_JOINER : P_GONE;
}

static int phase_of(const struct controller *c)
{
	switch (c->run.phase) {
	case PHASE_COMPUTING:
		return P_COMPUTING;
	case PHASE_REDUCING:
		return P_REDUCING;
	case PHASE_STALLED:
		return c->backups.stall.in == PHASE_COMPUTING  ? P_STALLED
		       : c->backups.stall.in == PHASE_REDUCING ? P_STALLED_REDUCING
							       : P_STALLED_PLANNING;
	case PHASE_COMMITTING:
		return P_COMMITTED;
	default:
		return c->run.phase == PHASE_PLANNING ? P_PLANNING : P_GATHERING;
	}
}

static uint8_t on_route(const struct controller *c, uint16_t node)
{
	uint8_t on = 0;

	for (uint32_t m = 0; m < P_BATCHES; m++)
		on |= (uint8_t)((routes_hop(&c->iteration.routes.microbatches[m], node) >= 0) << m);
	return on;
}

static uint8_t owed_by(const struct controller *c, uint16_t node)
{
	uint8_t owed = 0;

	for (uint32_t m = 0; m < P_BATCHES; m++) {
		int hop = routes_hop(&c->iteration.routes.microbatches[m], node);

		if (hop >= 0 && (c->iteration.routes.microbatches[m].owed_backward >> hop & 1))
			owed |= (uint8_t)(1 << m);
	}
	return owed;
}

static uint8_t counted_by(const struct controller *c, uint16_t node)
{
	const struct counts *k = &c->iteration.routes.counts[node];
	uint8_t counted = 0;

	for (uint32_t i = 0; i < k->n; i++)
		if (k->list[i].kind == TASK_BACKWARD)
			counted |= (uint8_t)(1 << k->list[i].microbatch);
	return counted;
}

/* Returns 1 + the stage of m's copy; 0: there is no copy that will be used. */
static int keeps(const struct member *m)
{
	return m->copy.state == COPY_DROPPED ? 0 : m->copy.stage + 1;
}

/* Returns the expected state of a member that has moved; -1: the member has not moved. */
static int member_state_of(const struct p_node *x)
{
	if (x->move.load == P_LOAD_ORDERED || x->move.load == P_LOADED)
		return MEMBER_SYNCING;
	return x->standing == P_JOINER && x->applied ? MEMBER_READY : -1;
}

/* Returns the first difference between the controller and the model after a commit; NULL: none. A
 * node needs its copy until it has applied the commit. If the second stage starts from the first
 * stage, copies of the second stage are void. */
static const char *committed_differs(const struct p_state *s, const struct p_node *x,
				     const struct member *m)
{
	bool is_needed = x->keeps && (x->due || x->copy_due);

	if (member_is_replica(m) != (x->standing == P_LIVE))
		return "standing";
	if (is_needed && keeps(m) != x->keeps)
		return "keeps a copy until it has applied the commit";
	if (s->stack == P_STACKED && m->copy.stage == 1 && m->copy.state != COPY_FETCHING)
		return "keeps a void copy";
	if (s->moves && member_state_of(x) >= 0 && (int)m->state != member_state_of(x))
		return "moves";
	return NULL;
}

/* Compares the exchange of stages that the controller has prepared with the nodes that the model
 * lists for a move. Returns the first difference; NULL: none. */
static const char *exchange_differs(const struct controller *c, const struct p_state *s)
{
	const struct exchange *x = &c->planning.targets.exchange;

	if ((c->planning.targets.state == PHASE_MOVES_PREPARED) != (s->moves == P_LISTED))
		return "is the exchange prepared";
	for (int i = 0; i < TWO && s->moves == P_LISTED; i++) {
		const struct p_node *n = &s->nodes[i];

		if (x->to[i] != (n->move.listed ? n->move.to - 1 : n->stage))
			return "listed";
	}
	return NULL;
}

/* Returns the first difference between the controller's state of the node and the model's; NULL:
 * none. */
static const char *node_differs(const struct controller *c, const struct p_state *s, uint16_t i)
{
	const struct member *m = &c->members.list[i];
	const struct p_node *x = &s->nodes[i];

	if (member_stage(&c->run, m) != x->stage)
		return "stage";
	if (s->phase == P_COMMITTED)
		return committed_differs(s, x, m);
	if (s->phase >= P_STALLED_PLANNING)
		return NULL;
	if (standing_of(c, m) != x->standing)
		return "standing";
	if (x->standing != P_GONE && keeps(m) != x->keeps)
		return "keeps";
	if (x->keeps && (m->copy.state == COPY_FETCHING) != x->fetching)
		return "fetches";
	if (s->phase != P_COMPUTING && s->phase != P_REDUCING)
		return NULL; /* the model has cleared this void state */
	if (on_route(c, i) != x->on)
		return "route";
	if (counted_by(c, i) != x->reported)
		return "what it counted";
	if (owed_by(c, i) != x->owed)
		return "what it owes";
	if (m->sum.counts != x->in_sum || (m->sum.counts && m->sum.stage != x->stage))
		return "in the sum";
	if (member_is_replica(m) && m->sum.counts && m->sum.is_done != x->reduced)
		return "reduced";
	if ((m->copy.sum_state != COPY_NO_SUM) != x->copies ||
	    (x->copies && (m->copy.sum_state == COPY_SUM_REPORTED) != x->copy_reduced))
		return "copies";
	return NULL;
}

static int stack_of(const struct controller *c)
{
	if (c->run.committed == 1 && c->run.last_commit.stack_from)
		return c->run.wanted.stack ? -1 : P_STACKED;
	if (!c->run.wanted.stack)
		return P_NO_STACK;
	return c->run.wanted.phase == 0 ? P_STACK_LATER : P_STACK_NEXT;
}

static const char *differs(const struct controller *c, const struct p_state *s)
{
	const char *what = phase_of(c) != s->phase ? "phase" : NULL;

	if (!what && s->phase != P_GATHERING && stack_of(c) != s->stack)
		what = "stages that start from trained stages";
	if (!what && (s->phase <= P_REDUCING || s->phase == P_COMMITTED))
		what = exchange_differs(c, s);
	for (int st = 0; !what && s->phase <= P_REDUCING && st < 2; st++)
		what = (c->iteration.summing[st] > 0) != (s->summing >> st & 1) ? "summing" : NULL;
	for (uint16_t i = 0; !what && i < TWO; i++)
		what = node_differs(c, s, i);
	return what;
}

/* ---- the same events at the controller ---- */

static void add_pass(struct msg_task_event *events, uint32_t *n, const struct controller *c,
		     uint32_t m, enum task_kind kind, uint32_t attempt)
{
	struct msg_task_event e = { .type = WORK_STARTS,
				    .kind = (uint8_t)kind,
				    .microbatch = m,
				    .attempt = attempt,
				    .blocker = UINT32_MAX,
				    .at_us = c->run.now_us };

	events[(*n)++] = e;
	e.type = WORK_ENDS;
	e.at_us += SECOND / 10;
	e.counted = kind != TASK_FORWARD;
	e.loss = 3;
	events[(*n)++] = e;
}

/* Makes the node report the passes that it has begun and counted. before: the microbatches that it
 * counted before they started over. */
static void report_progress(struct controller *c, uint16_t node, uint8_t begun, uint8_t counted,
			    uint8_t before)
{
	struct msg_task_event events[6 * P_BATCHES];
	struct msg_report r = { .iteration = 1, .events = events };

	for (uint32_t m = 0; m < P_BATCHES; m++) {
		const struct route *route = &c->iteration.routes.microbatches[m].route;
		uint32_t attempt = before >> m & 1 ? route->since - 1 : route->attempt;

		if ((begun | counted) >> m & 1)
			add_pass(events, &r.n_events, c, m, TASK_FORWARD, attempt);
		if (!(counted >> m & 1))
			continue;
		if (c->run.cluster->nodes[node].stage == 0)
			add_pass(events, &r.n_events, c, m, TASK_LOSS, attempt);
		add_pass(events, &r.n_events, c, m, TASK_BACKWARD, attempt);
	}
	iteration_report(&c->iteration, &c->members.list[node], &r);
}

/* Reports a backward pass that a data node ran again, and whose gradient it has counted already. */
static void passes_again(struct controller *c, uint16_t node, uint32_t m)
{
	struct msg_task_event e = { .type = WORK_ENDS,
				    .kind = TASK_BACKWARD,
				    .microbatch = m,
				    .attempt = c->iteration.routes.microbatches[m].route.attempt,
				    .blocker = UINT32_MAX,
				    .at_us = c->run.now_us };
	struct msg_report r = { .iteration = 1, .n_events = 1, .events = &e };

	iteration_report(&c->iteration, &c->members.list[node], &r);
}

static void report_sum(struct controller *c, uint16_t node, int stage, bool wrong)
{
	uint64_t slices[TWO] = { 1, 2, 3, 4 };
	struct msg_reduced r = { .iteration = 1,
				 .attempt = c->iteration.reduce_attempt,
				 .stage = (uint8_t)stage,
				 .sum_squares = wrong ? 2 : 1,
				 .n_slices = c->iteration.summing[stage],
				 .slices = slices };

	iteration_reduced(&c->iteration, &c->members.list[node], &r);
}

static void joins(struct controller *c, struct member *m)
{
	m->peer = m->id + 1u;
	m->state = MEMBER_READY;
	m->copy.state = COPY_WHOLE;
	m->copy.sum_state = COPY_NO_SUM;
	m->copy.purpose = COPY_FOR_SAFETY;
	m->copy.stage = member_stage(&c->run, m);
	m->weights.stage = (uint8_t)m->copy.stage;
	m->beat.iteration = 0;
}

static void is_heard_again(struct controller *c, struct member *m, const struct p_node *x)
{
	m->beat.iteration = x->began > 0;
	m->beat.stage = m->weights.stage = (uint8_t)member_stage(&c->run, m);
	assert_true(iteration_readmit(&c->iteration, m));
}

static void has_fetched(struct controller *c, struct member *m)
{
	struct msg_kept k = { .assignment = m->copy.order,
			      .stage = (uint8_t)m->copy.stage,
			      .iteration = c->run.committed,
			      .hash = 1 };

	standbys_kept(&c->members, m, &k);
}

/* Makes the node report the commit of its weights or, if copy is true, of its standby copy. */
static void reports_commit(struct controller *c, struct member *m, int stage, bool copy)
{
	struct msg_committed r = {
		.iteration = 1, .stage = (uint8_t)stage, .hash = 1 + (uint64_t)stage, .copy = copy
	};

	iteration_committed(&c->members, m, &r);
}

static void loses_copy(struct controller *c, struct member *m)
{
	struct msg_kept k = { .assignment = m->copy.order, .stage = (uint8_t)m->copy.stage };

	standbys_kept(&c->members, m, &k);
}

static void reports_ready(struct controller *c, struct member *m)
{
	int stage = member_stage(&c->run, m);
	struct msg_ready r = { .assignment = m->assigned.number,
			       .stage = (uint8_t)stage,
			       .iteration = 1,
			       .hash = 1 + (uint64_t)stage };

	members_ready(&c->members, m, &r);
}

static void is_succeeded(struct walk *w)
{
	struct controller *was = w->c, *c = under_way_knowing(was->run.cluster);

	c->run.record.store = was->run.record.store;
	c->run.options.run_dir = was->run.options.run_dir;
	c->run.first_attempt = was->run.first_attempt + RESUMED;
	c->run.now_us = was->run.now_us;
	c->run.wanted.stack = was->run.wanted.stack;
	c->run.wanted.schedule = was->run.wanted.schedule;
	was->run.record.store = NULL;
	was->run.cluster = NULL;
	controller_fini(was);
	free(was);
	c->run.phase = PHASE_GATHERING;
	w->c = c;
}

/* Makes a restarted controller gather the nodes as gather_again does, once all living nodes are
 * back. */
static void gathers(struct walk *w)
{
	struct controller *c = w->c;

	for (uint32_t i = 0; i < TWO; i++) {
		const struct p_node *x = &w->s.nodes[i];
		struct member *m = &c->members.list[i];

		m->state = x->alive ? MEMBER_LIVE : MEMBER_DEAD;
		m->copy.stage = x->keeps - 1;
		m->copy.state = m->copy.stage >= 0 ? COPY_WHOLE : COPY_FETCHING;
	}
	if (!replicas_everywhere(&c->members)) {
		c->run.phase = PHASE_STALLED;
		c->backups.stall.in = PHASE_PLANNING;
	} else {
		c->run.phase = PHASE_PLANNING;
	}
}

/* Returns the microbatches that the data node counted before they started over, and that some
 * node has not counted again afterwards. */
static uint8_t counted_before(const struct walk *w, const struct p_step *step)
{
	struct p_state s = w->s;
	uint8_t before = 0;

	if (step->event == P_COUNT)
		s.nodes[step->node].counted |= (uint8_t)(1 << step->arg);
	for (int m = 0; s.nodes[step->node].at == 0 && m < P_BATCHES; m++)
		before |= (uint8_t)(((s.over >> m & 1) && !p_all_counted(&s, m)) << m);
	return before;
}

static void happens_to(struct walk *w, const struct p_step *step)
{
	const struct p_node *x = &w->s.nodes[step->node];
	struct member *m = &w->c->members.list[step->node];
	uint8_t unreported = x->counted & (uint8_t)~x->reported;

	switch (step->event) {
	case P_COUNT:
		if (x->stage == 0 && member_is_replica(m))
			report_progress(w->c, m->id, x->mine,
					unreported | (uint8_t)(1 << step->arg),
					counted_before(w, step));
		break;
	case P_REPORT:
	case P_DROP:
		report_progress(w->c, m->id, x->mine, unreported, counted_before(w, step));
		break;
	case P_AGAIN:
		passes_again(w->c, m->id, (uint32_t)step->arg);
		break;
	case P_REDUCED:
	case P_REDUCED_WRONG:
		report_sum(w->c, m->id, x->stage, step->event == P_REDUCED_WRONG);
		break;
	case P_COPY_REDUCED:
	case P_COPY_REDUCED_WRONG:
		report_sum(w->c, m->id, x->keeps - 1, step->event == P_COPY_REDUCED_WRONG);
		break;
	case P_COPY_OVERDUE:
		copies_refuse(&w->c->members, m, "its copy was overdue");
		commit_when_reduced(&w->c->iteration);
		break;
	case P_NOTICE:
	case P_SILENCE:
		member_apply(&w->c->run, m, EVENT_LOST, "is gone");
		break;
	case P_JOIN:
	case P_NEW_PROCESS:
		joins(w->c, m);
		break;
	case P_KEEP:
		m->copy.stage = step->arg;
		m->copy.state = COPY_WHOLE;
		break;
	case P_FETCHED:
		has_fetched(w->c, m);
		break;
	case P_APPLY:
		reports_commit(w->c, m, x->stage, false);
		break;
	case P_COPY_APPLY:
		reports_commit(w->c, m, x->keeps - 1, true);
		break;
	case P_RESUME:
		is_heard_again(w->c, m, x);
		break;
	case P_LOSE:
		loses_copy(w->c, m);
		break;
	case P_READY:
		reports_ready(w->c, m);
		break;
	default: /* the event concerns agents only */
		break;
	}
}

/* Gives the controller a turn between two iterations. late: copies have not made the commit's step
 * in time. */
static void exchange(struct walk *w, bool late, bool is_awaited)
{
	under_way_plans_exchange(w->c);
	w->c->run.committed_us = late ? 0 : w->c->run.now_us;
	assert_int_equal(phase_moves_awaited(&w->c->backups, false), is_awaited);
}

static void happens(struct walk *w, const struct p_step *step)
{
	if (step->node >= 0)
		happens_to(w, step);
	else if (step->event == P_CRASH)
		is_succeeded(w);
	else if (step->event == P_GATHER)
		gathers(w);
	else if (step->event == P_RESTART)
		recover_turn(&w->c->iteration);
	else if (step->event == P_EXCHANGE || step->event == P_EXCHANGE_LATE)
		exchange(w, step->event == P_EXCHANGE_LATE, step->event == P_EXCHANGE);
	loop_act(&w->c->iteration);
	w->c->backups.standbys.next_us = 0;
	phase_moves_turn(&w->c->backups);
	if (w->c->run.phase == PHASE_COMMITTING) /* the controller may release copies */
		standbys_turn(&w->c->backups, iteration_sums_took_s(&w->c->iteration));
}

/* Checks that no node moves until all listed nodes have reported the commit of their copies. */
static void waits_for_copies(struct walk *w)
{
	bool is_complete = true;

	for (int i = 0; i < TWO; i++) {
		const struct p_node *n = &w->s.nodes[i];

		is_complete = is_complete && (!n->move.listed || n->copy_applied ||
					      n->standing == P_GONE);
	}
	if (w->s.phase != P_COMMITTED || w->s.moves != P_LISTED || is_complete)
		return;
	exchange(w, false, true);
	assert_null(exchange_differs(w->c, &w->s));
}

static void tell(struct walk *w, const struct p_step *step)
{
	size_t n = strlen(w->history);

	snprintf(w->history + n, sizeof(w->history) - n, "n%d %s (%d)\n", step->node,
		 protocol_event_name(step->event), step->arg);
}

/* Chooses a step at random. Faults are chosen less often than other steps, so that a walk gets far
 * before its faults are used up. */
static const struct p_step *any_step(struct walk *w)
{
	const struct p_step *step = NULL;

	for (int k = 0; k < 8 && !(step && step->free); k++)
		step = &w->steps[rng_below(&w->rng, (uint32_t)w->n_steps)];
	return step;
}

/* Takes one of the steps that are possible next. Returns false if no step is possible. */
static bool take_step(struct walk *w)
{
	const char *what = NULL;
	struct p_step step;

	w->n_steps = w->outcomes.n = 0;
	protocol_next(&w->p, &w->s, see_step, w);
	if (w->n_steps == 0)
		return false;
	step = w->outcomes.step = *any_step(w);
	protocol_next(&w->p, &w->s, see_outcome, w);
	tell(w, &step);
	w->happened[step.event]++;
	happens(w, &step);
	w->c->run.now_us += SECOND / 100;
	for (int i = 0; i < w->outcomes.n; i++) {
		const char *other = differs(w->c, &w->outcomes.of[i]);

		what = i == 0 ? other : what;
		if (other)
			continue;
		w->s = w->outcomes.of[i];
		waits_for_copies(w);
		return true;
	}
	fprintf(stderr, "%s", w->history);
	protocol_print(&w->p, &w->s, stderr);
	fail_msg("in none of %d outcomes as the controller: %s", w->outcomes.n, what);
	return false;
}

/* Sets the purpose of the ordered copies, because no agent receives the orders here. Completes the
 * copies that exist when the walk begins. */
static void set_copies(struct walk *w, enum copy_purpose purpose)
{
	for (uint16_t i = 0; i < TWO; i++) {
		struct member *m = &w->c->members.list[i];

		m->copy.purpose = m->copy.stage >= 0 ? purpose : COPY_FOR_SAFETY;
		if (m->copy.stage >= 0 && w->p.have_copies >> i & 1)
			has_fetched(w->c, m);
	}
}

/* Makes the controller order the copies of the first stage, as at the start of an iteration. */
static void begins_stacking(struct walk *w)
{
	struct controller *c = w->c;

	c->run.options.stack = c->run.wanted.stack = true;
	c->run.wanted.schedule =
		(struct skip_schedule){ 2, { { .from = 1, .skip = 1 }, { .from = 2 } } };
	c->run.committed = 1; /* the controller orders no fetches before the first commit */
	stacking_turn(&c->backups);
	c->run.committed = 0;
	set_copies(w, COPY_FOR_STACKING);
}

/* Makes the controller order the copies for nodes that will move, as at the start of an
 * iteration. */
static void begins_moving(struct walk *w)
{
	struct controller *c = w->c;
	struct planned *a = c->planning.targets.answer = alloc_new(sizeof(*a));

	c->planning.targets.state = PHASE_MOVES_IDLE;
	assert_int_equal(planner_start(&c->planning.targets.planner, NULL), 0);
	c->run.wanted.schedule = (struct skip_schedule){ 1, { { .from = 2 } } };
	a->n_phases = 1;
	a->phase_stages = alloc_array(TWO, sizeof(*a->phase_stages));
	for (uint16_t i = 0; i < TWO; i++) {
		struct member *m = &c->members.list[i];

		m->move.home = member_stage(&c->run, m);
		a->phase_stages[i] = w->p.to[i] ? w->p.to[i] - 1 : m->move.home;
	}
	c->run.committed = 1; /* the controller orders no fetches before the first commit */
	phase_moves_fetch(&c->backups);
	c->run.committed = 0;
	set_copies(w, COPY_FOR_MOVE);
	phase_moves_prepare(&c->backups);
}

/* Chooses at random which nodes move, and which of them have their copies. */
static void draw_moves(struct walk *w)
{
	static const uint8_t to[][TWO] = { { 0, 2, 0, 1 }, { 2, 2, 1, 1 }, { 0, 2, 0, 0 } };

	memcpy(w->p.to, to[rng_below(&w->rng, 3)], TWO);
	w->p.have_copies = (uint8_t)(rng_below(&w->rng, 2) ? 15 : rng_below(&w->rng, 16));
}

static void begins(struct walk *w, uint64_t seed)
{
	static const uint8_t have[] = { 1 << 2, 1 << 3, 1 << 2 | 1 << 3, 1 << 2 | 1 << 3 };
	const char *what;

	rng_init(&w->rng, seed);
	w->p = protocol_of(2, 2);
	w->p.overlap = seed % 3 == 1;
	/* Sums are ordered ahead only if links are measured, and walks with moves measure none */
	w->p.ahead = seed % 3 == 2 && w->kind != MOVE;
	w->c = under_way_of(TWO, 1, w->kind == STACK ? 1 : 2);
	w->c->run.plan->plan->overlap_sync = w->p.overlap;
	if (w->p.ahead)
		w->c->members.links = link_table_new(w->c->members.n);
	if (w->kind == MOVE) {
		draw_moves(w);
		begins_moving(w);
	}
	if (w->kind == STACK) {
		w->p.always = w->p.path[0] = w->p.path[1] = 1;
		w->p.have_copies = have[rng_below(&w->rng, 4)];
		w->p.entered = rng_below(&w->rng, 2);
		begins_stacking(w);
	}
	sums_order_ahead(&w->c->iteration);
	skip_phases_turn(&w->c->planning, w->p.entered || stacking_ready(&w->c->backups));
	w->history[0] = 0;
	protocol_begin(&w->p, &w->s);
	for (uint16_t i = 0; i < TWO; i++) {
		w->s.nodes[i].on = w->s.nodes[i].mine = on_route(w->c, i);
		report_progress(w->c, i, w->s.nodes[i].on, 0, 0);
		w->c->members.list[i].weights.stage = w->s.nodes[i].stage;
	}
	what = differs(w->c, &w->s);
	if (what)
		fail_msg("at the start: %s", what);
}

/* Checks the record of the commit, because a restarted controller announces what the record
 * says. */
static void is_recorded(const struct walk *w)
{
	struct store_commit k;

	assert_int_equal(store_read_commit(w->c->run.record.store, 1, &k, NULL), 0);
	assert_int_equal(k.stack_from, w->s.stack == P_STACKED ? w->p.always : 0);
	store_commit_clear(&k);
}

/* Makes random walks. Returns the number of walks in which a stage starts from its source, or nodes
 * move. */
static int walk_at_random(enum kind kind)
{
	struct walk *w = calloc(1, sizeof(*w));
	int commits = 0, changed = 0;

	w->kind = kind;
	for (uint64_t seed = 1; seed <= (SLOW ? WALKS / 5 : WALKS); seed++) {
		void *c;

		begins(w, seed);
		for (int k = 0; k < MOST_STEPS && w->s.phase != P_PLANNING &&
				w->s.phase != P_STALLED_PLANNING && take_step(w);
		     k++) {
		}
		if (w->s.phase == P_COMMITTED)
			is_recorded(w);
		commits += w->s.phase == P_COMMITTED;
		changed += w->s.stack == P_STACKED || w->s.moves == P_MOVED;
		c = w->c;
		under_way_end(&c);
	}
	print_message("%d commits, %d of them with stages that start from others, or moves\n",
		      commits, changed);
	assert_true(commits > 0);
	for (int e = 0; e < P_EVENTS; e++)
		print_message("%s: %u\n", protocol_event_name((enum p_event)e), w->happened[e]);
	free(w);
	return changed;
}

TEST(the_controller_agrees_with_the_model)
{
	assert_int_equal(walk_at_random(STAY), 0);
}

TEST(stages_start_from_others_as_in_the_model)
{
	assert_true(walk_at_random(STACK) > 0);
}

TEST(nodes_move_as_in_the_model)
{
	assert_true(walk_at_random(MOVE) > 0);
}
