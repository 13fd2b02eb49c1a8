/* mishaps.c - the mishaps of a simulated run: failures and commands of the operator. All are drawn
 * before the run begins. Each happens some time after a moment of the run, for example after a
 * phase of a certain iteration has begun. */
#include <stdio.h>

#include "base/skip_schedule.h"
#include "tests/sim/agent_process.h"
#include "tests/sim/controller_process.h"
#include "tests/sim/world_private.h"

enum {
	MAX_DEAD = 2,     /* number of agents that may be dead at one time */
	ARM_US = 15000000 /* a mishap whose moment has not come after this time happens anyway */
};

void mishap_draw(struct world *w, struct mishap *m)
{
	static const enum run_phase phases[] = { PHASE_PLANNING, PHASE_COMPUTING,
						 PHASE_COMPUTING, PHASE_COMPUTING,
						 PHASE_REDUCING, PHASE_REDUCING,
						 PHASE_COMMITTING };
	static const enum mishap_kind kinds[] = {
		KILL,   KILL,   KILL,  KILL,  TAKE_OVER, TAKE_OVER, CUT,      CUT,
		NARROW, NARROW, RESET, SLEEP, FLIP,      FLIP,      LOSE,     LOSE,
		MARK,   MARK,   SKIP,  PAUSE, WIRE,      WIRE,      SUM_WIRE, SUM_WIRE,
		DRAIN,  DRAIN,  DRAIN
	};
	static const uint32_t n_kinds = sizeof(kinds) / sizeof(kinds[0]);
	static const enum moment moments[] = { IN_PHASE, IN_PHASE, IN_PHASE, IN_PHASE,
					       SOME_SUMMED, SOME_SUMMED, SOME_FETCH,
					       SOON_AFTER, SOON_AFTER };
	int64_t until_us = w->emulated ? 300000 : 40000; /* about one iteration */

	*m = (struct mishap){ .kind = kinds[rng_below(&sim.rng, n_kinds)], .at_us = INT64_MAX };
	m->moment = moments[rng_below(&sim.rng, 9)];
	if (m->moment == SOON_AFTER && m == w->mishaps)
		m->moment = IN_PHASE;
	if (w->at_phases == NODES_MOVE && sim_chance(0.4))
		m->moment = SOME_MOVE;
	if (w->stages == STAGES_CHANGE && sim_chance(0.6))
		m->moment = sim_chance(0.5) ? SOME_SAVE : STAGES_BEGIN;
	m->iteration = 1 + rng_below(&sim.rng, w->iterations);
	m->phase = phases[rng_below(&sim.rng, 7)];
	m->after_us = sim_draw(0, m->moment == IN_PHASE && m->phase == PHASE_COMPUTING ? until_us :
				  sim_chance(0.5) ? 2000 : until_us / 5);
	m->a = rng_below(&sim.rng, w->n_agents);
	m->b = sim_chance(0.3) ? CONTROLLER :
				 (m->a + 1 + rng_below(&sim.rng, w->n_agents - 1)) % w->n_agents;
	/* A second FLIP becomes KILL: after two, replicas with wrong weights could be the
	 * majority. */
	for (const struct mishap *x = w->mishaps; x < m && m->kind == FLIP; x++)
		if (x->kind == FLIP)
			m->kind = KILL;
	if (m->kind == SLEEP && sim_chance(0.3))
		m->a = CONTROLLER;
	m->lasts_us = sim_chance(0.1) ? sim_draw(5500000, 9000000) :
					sim_draw(20000, sim_chance(0.5) ? 300000 : 3000000);
	if (m->kind == SLEEP && m->lasts_us > 4000000)
		m->lasts_us = 4000000;
	if (m->kind == NARROW && sim_chance(0.5)) /* 30 s: usually until the run ends */
		m->lasts_us = 30000000;
	/* After this moment, nodes load their stages for seconds. */
	if (m->moment == STAGES_BEGIN && sim_chance(0.5))
		m->after_us = sim_draw(0, 3000000);
	m->silently = sim_chance(0.3);
}

void mishap_draw_recut(const struct world *w, struct mishap *m)
{
	*m = (struct mishap){ .kind = RECUT,
			      .moment = sim_chance(0.2) ? SOME_FETCH : IN_PHASE,
			      .phase = sim_chance(0.5) ? PHASE_COMPUTING : PHASE_REDUCING,
			      .iteration = 1 + rng_below(&sim.rng, w->iterations - 1),
			      .after_us = sim_draw(0, 40000),
			      .at_us = INT64_MAX };
}

/* Returns true if a node has usable weights of a stage. A restarted node has none, even if the
 * controller does not know of the restart yet. A node that lacks the present sum does not count,
 * because it will have no stage after the commit. */
static bool holds_stage(const struct world *w, uint32_t i, int stage)
{
	const struct member *m = &w->controller->members.list[i];

	if (w->controller->iteration.summing[stage] > 0 && !m->sum.counts &&
	    m->copy.sum_state == COPY_NO_SUM)
		return false;
	return w->agents[i] && sim.processes[i].asleep_us <= sim.now_us &&
	       m->hello.incarnation == agent_process_incarnation(w->agents[i]) &&
	       ((member_is_replica(m) && member_stage(&w->controller->run, m) == stage) ||
		(m->copy.state != COPY_FETCHING && m->copy.stage == stage &&
		 m->copy.iterations == w->controller->run.committed));
}

/* Returns true if the run must survive the loss of this node. A run without a checkpoint need not
 * survive the loss of the last holder of a stage. After a change of stages, the controller has a
 * checkpoint. */
static bool may_die(const struct world *w, uint32_t i)
{
	uint32_t dead = 0, holders;

	if (!w->controller || !w->agents[i])
		return false;
	if (w->controller->run.phase == PHASE_GATHERING)
		return w->controller->run.wanted.recut.is_done;
	for (uint32_t k = 0; k < w->n_agents; k++)
		dead += !w->agents[k];
	for (int s = 0; s < w->controller->run.cluster->n_stages; s++) {
		holders = 0;
		for (uint32_t k = 0; k < w->n_agents; k++)
			holders += k != i && holds_stage(w, k, s);
		if (holders == 0)
			return false;
	}
	return dead < MAX_DEAD;
}

static void kill_process(struct world *w, uint32_t i, const struct mishap *m)
{
	sim_note("%s dies%s", sim_name(i), m->silently ? " with its machine" : "");
	world_end_process(w, i, m->silently);
	w->start_us[i] = sim.now_us + (sim_chance(0.5) ? sim_draw(10000, 400000) :
							 sim_draw(400000, 4000000));
}

/* Draws the argument of a command: a skip ratio or a format. */
static int64_t draw_value(enum mishap_kind kind)
{
	static const enum tensor_format wires[] = { FORMAT_FP32, FORMAT_BF16, FORMAT_Q8,
						    FORMAT_Q6 };
	static const enum tensor_format sums[] = { FORMAT_FP32, FORMAT_Q8, FORMAT_Q6, FORMAT_Q4 };

	int64_t stages;

	switch (kind) {
	case SKIP:
		stages = rng_below(&sim.rng, 3);
		return stages > 0 && sim_chance(0.3) ? skip_share_pack(50, (uint32_t)stages)
						     : stages;
	case WIRE:
		return (int64_t)wires[rng_below(&sim.rng, 4)];
	case SUM_WIRE:
		return (int64_t)sums[rng_below(&sim.rng, 4)];
	default:
		return 0;
	}
}

/* Returns true if the controller accepts commands now. Otherwise the mishap is tried again 0.1 s
 * later, or dropped if the run is finished. */
static bool listens(const struct world *w, struct mishap *m)
{
	m->at_us = sim.now_us + 100000;
	if (!w->controller || w->controller->run.phase == PHASE_GATHERING ||
	    sim.processes[CONTROLLER].asleep_us > sim.now_us)
		return false;
	m->done = w->controller->run.phase == PHASE_FINISHED;
	return !m->done;
}

/* Commands a change of stages. Tries a fixed list of cuts from a random cut on, until the
 * controller accepts a cut. */
static void order_stages(struct world *w, struct mishap *m)
{
	static const char *const cuts[] = { "1,2", "0,1,2", "2,1", "0,1,1,1", "3", "1,1,1", "0,3" };
	const uint32_t n = sizeof(cuts) / sizeof(cuts[0]), first = rng_below(&sim.rng, n);
	bool obeys = false;

	if (!listens(w, m))
		return;
	m->done = true;
	world_become(CONTROLLER);
	for (uint32_t i = 0; i < n && !obeys; i++) {
		obeys = controller_process_cuts(w->controller, cuts[(first + i) % n]);
		sim_note("the operator: cut %s%s", cuts[(first + i) % n], obeys ? "" : ", refused");
	}
	sim.processes[CONTROLLER].wake_us = sim.now_us;
	w->out->acts++;
	w->calm_us = sim.now_us;
}

/* Gives a command of the operator. The second call gives the command that undoes it. */
static void give_command(struct world *w, struct mishap *m)
{
	static const enum command_verb verbs[][2] = { { COMMAND_FAIL, COMMAND_RECOVER },
						      { COMMAND_SKIP, COMMAND_SKIP },
						      { COMMAND_PAUSE, COMMAND_RESUME },
						      { COMMAND_WIRE, COMMAND_WIRE },
						      { COMMAND_SUM_WIRE, COMMAND_SUM_WIRE } };
	enum command_verb verb = verbs[m->kind - MARK][m->given];
	int64_t value = draw_value(m->kind);
	bool obeys;

	if (!listens(w, m))
		return;
	world_become(CONTROLLER);
	obeys = controller_process_obeys(w->controller, verb, (int)m->a, value);
	sim_note("the operator: %s %u %d%s", verb_name(verb), m->a, (int)value,
		 obeys ? "" : ", refused");
	sim.processes[CONTROLLER].wake_us = sim.now_us;
	w->out->acts++;
	w->calm_us = sim.now_us;
	if (!m->given && obeys)
		m->at_us = sim.now_us + m->lasts_us;
	m->done = m->given ? obeys || member_is_replica(&w->controller->members.list[m->a]) ||
				     m->kind != MARK
			   : !obeys;
	m->given = true;
}

/* Kills all nodes that hold one certain stage. If stage 0 is lost before the first checkpoint, the
 * run restarts. Other stages are not lost before a checkpoint exists. */
static void lose_stage(struct world *w, struct mishap *m)
{
	int stage;

	m->done = true;
	if (!w->controller)
		return;
	stage = (int)m->a % w->controller->run.cluster->n_stages;
	if ((w->controller->backups.saving.last == 0 && stage != 0) ||
	    w->controller->run.phase == PHASE_GATHERING ||
	    w->controller->run.phase == PHASE_FINISHED)
		return;
	for (uint32_t i = 0; i < w->n_agents; i++)
		if (holds_stage(w, i, stage)) {
			w->out->kills++;
			kill_process(w, i, m);
		}
	w->calm_us = sim.now_us;
}

/* Sends SIGTERM to an agent, unless it is already draining: a second SIGTERM would end it at
 * once. */
static void drain_agent(struct world *w, struct mishap *m)
{
	struct agent *a = w->agents[m->a];

	m->done = true;
	if (!a || agent_process_drains(a))
		return;
	sim_note("%s gets SIGTERM", sim_name(m->a));
	world_become(m->a);
	agent_leave(a, "Terminated", true, world_own_now(m->a));
	sim_wake(m->a, sim.now_us);
	w->out->drains++;
	w->calm_us = sim.now_us;
}

void mishap_apply(struct world *w, struct mishap *m)
{
	struct outcome *o = w->out;

	if (m->kind == DRAIN) {
		drain_agent(w, m);
		return;
	}
	if (m->kind == LOSE) {
		lose_stage(w, m);
		return;
	}
	if (m->kind == RECUT) {
		order_stages(w, m);
		return;
	}
	if (m->kind >= MARK) {
		give_command(w, m);
		return;
	}
	if (m->kind == KILL && !may_die(w, m->a)) {
		m->at_us = sim.now_us + 100000; /* is tried again 0.1 s later */
		return;
	}
	m->done = true;
	switch (m->kind) {
	case KILL:
		o->kills++;
		kill_process(w, m->a, m);
		break;
	case TAKE_OVER:
		if (w->controller && w->controller->run.phase != PHASE_FINISHED) {
			o->takeovers++;
			kill_process(w, CONTROLLER, m);
		}
		break;
	case CUT:
		o->cuts++;
		sim_note("%s and %s are cut for %.3f s", sim_name(m->a), sim_name(m->b),
			 (double)m->lasts_us * 1e-6);
		network_cut(m->a, m->b, sim.now_us + m->lasts_us);
		break;
	case NARROW:
		o->narrows++;
		sim_note("%s > %s loses large messages for %.3f s", sim_name(m->a), sim_name(m->b),
			 (double)m->lasts_us * 1e-6);
		network_narrow(m->a, m->b, sim.now_us + m->lasts_us);
		break;
	case RESET:
		o->resets++;
		sim_note("%s and %s connect again", sim_name(m->a), sim_name(m->b));
		network_reset(m->a, m->b);
		break;
	case FLIP:
		o->flips++;
		network_flip(m->a);
		break;
	default:
		o->sleeps++;
		sim_note("%s sleeps for %.3f s", sim_name(m->a), (double)m->lasts_us * 1e-6);
		sim.processes[m->a].asleep_us = sim.now_us + m->lasts_us;
		break;
	}
	w->calm_us = sim.now_us + m->lasts_us;
}

static bool some_summed(const struct controller *c)
{
	uint32_t summed = 0, not_yet = 0;

	for (uint32_t i = 0; i < c->members.n; i++)
		if (member_is_replica(&c->members.list[i])) {
			summed += c->members.list[i].sum.is_done;
			not_yet += !c->members.list[i].sum.is_done;
		}
	return (c->run.phase == PHASE_REDUCING || c->run.phase == PHASE_COMPUTING) && summed > 0 &&
	       not_yet > 0;
}

static bool some_fetch(const struct controller *c)
{
	for (uint32_t i = 0; i < c->members.n; i++) {
		const struct member *m = &c->members.list[i];

		if (m->state != MEMBER_DEAD && m->copy.stage >= 0 && m->copy.state == COPY_FETCHING)
			return true;
	}
	return false;
}

static bool some_move(const struct controller *c)
{
	for (uint32_t i = 0; i < c->members.n; i++)
		if (c->members.list[i].move.is_loading)
			return true;
	return false;
}

/* Returns true if nodes are saving the last commit before a change of stages. */
static bool some_save(const struct controller *c)
{
	return c->run.wanted.recut.is_ordered && c->run.phase == PHASE_PLANNING &&
	       c->backups.saving.iteration == c->run.committed;
}

/* Returns true if the moment depends on other events too, and may therefore come in a later
 * iteration than the iteration that was drawn. */
static bool is_awaited(enum moment moment)
{
	return moment == SOME_MOVE || moment == SOME_SAVE || moment == STAGES_BEGIN;
}

/* Returns true if the moment of a mishap has come. */
static bool has_come(const struct world *w, const struct mishap *m)
{
	const struct controller *c = w->controller;

	switch (m->moment) {
	case SOON_AFTER:
		return m[-1].done;
	case SOME_SUMMED:
		return c->run.iteration == m->iteration && some_summed(c);
	case SOME_FETCH:
		return c->run.iteration == m->iteration && some_fetch(c);
	case SOME_MOVE:
		return c->run.iteration >= m->iteration && some_move(c);
	case SOME_SAVE:
		return c->run.iteration >= m->iteration && some_save(c);
	case STAGES_BEGIN:
		return c->run.iteration >= m->iteration && c->run.wanted.recut.is_done &&
		       c->run.phase == PHASE_GATHERING;
	default:
		return c->run.iteration == m->iteration && c->run.phase == m->phase;
	}
}

void mishap_arm(struct world *w, struct mishap *m)
{
	const struct controller *c = w->controller;

	if (m->done || m->at_us != INT64_MAX || !c ||
	    (c->run.phase == PHASE_GATHERING && m->moment != STAGES_BEGIN))
		return;
	if (m->since_us == 0 && c->run.iteration >= m->iteration)
		m->since_us = sim.now_us;
	if (has_come(w, m) ||
	    c->run.iteration > (is_awaited(m->moment) ? w->iterations - 1 : m->iteration) ||
	    (m->since_us && sim.now_us - m->since_us > ARM_US))
		m->at_us = sim.now_us + m->after_us;
}
