/* world.c - runs the processes of a simulated cluster in the order of their next turns, and the
 * mishaps (mishaps.c) in between. */
#include "tests/sim/world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/sim/agent_process.h"
#include "tests/sim/controller_process.h"
#include "tests/sim/world_private.h"

enum {
	TURN_US = 100,     /* usual delay until a process with something to do gets its turn */
	IDLE_US = 1000000, /* longest time between two turns of a process */
	/* Time limit for the end of the run, counted from its last mishap. With long steps,
	 * PATIENCE_STEPS steps for each iteration are added. */
	PATIENCE_US = 120000000,
	PATIENCE_STEPS = 10
};

void world_go_wrong(struct world *w, const char *format, ...)
{
	va_list ap;

	w->over = true;
	if (w->out->wrong[0])
		return;
	va_start(ap, format);
	vsnprintf(w->out->wrong, sizeof(w->out->wrong), format, ap);
	va_end(ap);
}

/* Returns the usual length of a job that a worker of this process begins. */
static int64_t usual_job_us(void *context, const struct worker *worker, const void *job)
{
	const struct world *w = context;
	const struct agent *a = sim.self == CONTROLLER ? NULL : w->agents[sim.self];

	if (a && w->store_us > 0 && agent_process_stores(a, worker, job))
		return w->store_us;
	if (a && w->step_us > 0 && agent_process_steps(a, worker, job))
		return w->step_us;
	return w->job_us[sim.self];
}

static void draw_world(struct world *w, uint64_t seed)
{
	static const int64_t delays_us[] = { 100, 1000, 10000, 40000 };
	static const double losses[] = { 0, 0, 0.01, 0.1 };
	int64_t delay_us;
	double loss;

	memset(&sim, 0, sizeof(sim));
	rng_init(&sim.rng, seed);
	sim.hash = UINT64_C(14695981039346656037);
	threads_begin();
	threads_pace(usual_job_us, w);
	delay_us = delays_us[rng_below(&sim.rng, 4)];
	loss = losses[rng_below(&sim.rng, 4)];
	network_begin(delay_us, loss);
	w->n_agents = 5 + rng_below(&sim.rng, SIM_AGENTS - 4);
	w->emulated = sim_chance(0.5);
	w->saves = sim_chance(0.4);
	w->folders = w->saves ? ONE_FOLDER : NO_FOLDERS;
	w->iterations = 3 + rng_below(&sim.rng, 4);
	if (seed % 3 == 0) {
		w->stacking = seed % 2 ? STACK_ON_FIRST : STACK_ON_FIRST_AND_LAST;
		w->iterations += 3;
	}
	if (seed % 4 == 1) {
		w->at_phases = NODES_MOVE;
		w->iterations += 6;
	}
	if (seed % 4 == 3) {
		w->stages = STAGES_CHANGE;
		w->folders = sim_chance(0.5) ? ONE_FOLDER : OWN_FOLDERS;
		sim.has_machines = w->folders == OWN_FOLDERS;
		w->iterations += 4;
	}
	w->n_mishaps = rng_below(&sim.rng, MISHAPS - MOST_RECUTS + 1);
	for (uint32_t i = 0; i < w->n_mishaps; i++)
		mishap_draw(w, &w->mishaps[i]);
	for (uint32_t n = w->stages == STAGES_CHANGE ? (uint32_t)sim_draw(2, MOST_RECUTS) : 0;
	     n > 0; n--)
		mishap_draw_recut(w, &w->mishaps[w->n_mishaps++]);
	for (uint32_t i = 0; seed % 10 == 4 && i < w->n_mishaps; i++) {
		w->mishaps[i].kind = DRAIN; /* checks_turn then fails if a task runs again */
		/* A mishap of the controller becomes one of an agent. */
		w->mishaps[i].a %= w->n_agents;
	}
	snprintf(w->join, sizeof(w->join), "tcp://10.0.1.1:7000");
	for (uint32_t i = 0; i < SIM_PROCESSES; i++) {
		sim.processes[i].wake_us = w->start_us[i] = INT64_MAX;
		sim.processes[i].clock_offset_us = sim_draw(1000000, 1000000000);
		if (i < w->n_agents || i == CONTROLLER)
			w->start_us[i] = sim_draw(0, 300000);
		w->job_us[i] = sim_draw(200, 3000);
	}
	/* A large model: a step takes longer than the stall detector's patience. */
	if (seed % 5 == 2)
		w->step_us = 600000;
	/* A commit waits for a copy for 2 s or more. Storing a fetched copy takes 3 s or more. */
	if (seed % 10 == 7)
		w->store_us = 3000000;
	if (seed % 10 == 2) /* no mishaps: checks_turn then fails if an agent misses a commit */
		w->n_mishaps = 0;
	sim_note("%u agents, %u iterations, %s%s%s%s%s, %u mishaps, delays of %" PRId64
		 " us, loss %g",
		 w->n_agents, w->iterations, w->emulated ? "emulated" : "measured",
		 w->saves ? ", saved" : "", w->stacking ? ", stacked" : "",
		 w->at_phases == NODES_MOVE ? ", moving" : "",
		 w->stages == STAGES_CHANGE ? ", cut again" : "", w->n_mishaps, delay_us, loss);
}

/* ---- processes start and end ---- */

void world_become(uint32_t process)
{
	sim.self = process;
	sim.ahead_us = sim.step_us = 0;
}

int64_t world_own_now(uint32_t process)
{
	return sim.now_us + sim.processes[process].clock_offset_us;
}

static void start_agent(struct world *w, uint32_t i)
{
	struct agent_options o = { .join = w->join,
				   .controller = w->ground->controller_key,
				   .identity = w->ground->agents[i],
				   .listen = w->places[i].listen,
				   .device = "cpu",
				   .node = (int32_t)i,
				   .orphan_s = 300,
				   .notice_s = 1000, /* longer than any run */
				   .stuck_s = 30,
				   .piece_bytes = 256,
				   .threads_from_bytes = 1,
				   .memory_bytes = (size_t)64 << 20,
				   .run_dir = w->folders == NO_FOLDERS   ? NULL
					      : w->folders == ONE_FOLDER ? w->ground->run
									 : w->places[i].folder,
				   .log = &w->places[i].log };
	struct error err = { "" };

	snprintf(w->places[i].listen, sizeof(w->places[i].listen), "tcp://10.0.0.%u:0", i + 1);
	snprintf(w->places[i].folder, sizeof(w->places[i].folder), "%s.agent%u", w->ground->run, i);
	w->places[i].log =
		(struct log){ .to = getenv("SIM_LOG") ? stdout : NULL, .least = LOG_DEBUG };
	if (agent_new(&w->agents[i], &o, world_own_now(i), &err) != 0)
		world_go_wrong(w, "agent %u: %s", i, err.text);
}

static void start_controller(struct world *w)
{
	struct error err = { "" };

	arguments_make(w, w->begun);
	if (controller_process_start(&w->controller, w->argc, w->argv, &err) != 0)
		world_go_wrong(w, "the controller: %s", err.text);
	else
		w->out->recuts += w->controller->run.wanted.recut.is_done;
	w->begun = true;
}

static void start_process(struct world *w, uint32_t i)
{
	w->start_us[i] = INT64_MAX;
	sim.processes[i].life++;
	sim.processes[i].asleep_us = 0;
	sim.processes[i].wake_us = sim.now_us;
	world_become(i);
	network_dies(i, false);
	sim_note("%s starts", sim_name(i));
	if (i == CONTROLLER)
		start_controller(w);
	else
		start_agent(w, i);
}

void world_end_process(struct world *w, uint32_t i, bool silently)
{
	world_become(i);
	network_dies(i, silently);
	if (i == CONTROLLER) {
		controller_process_end(w->controller);
		w->controller = NULL;
		w->exchange_is_prepared = false;
	} else {
		agent_free(w->agents[i]);
		w->agents[i] = NULL;
	}
	sim.processes[i].wake_us = INT64_MAX;
}

/* ---- turns ---- */

static void turn_agent(struct world *w, uint32_t i)
{
	struct agent *a = w->agents[i];
	int status;

	agent_receive(a, world_own_now(i));
	agent_work(a, world_own_now(i));
	agent_send(a, world_own_now(i));
	if (agent_over(a, &status, world_own_now(i))) {
		sim_note("%s leaves with %d", sim_name(i), status);
		if (!w->controller || w->controller->run.phase != PHASE_FINISHED) {
			if (status != 0)
				world_go_wrong(w, "agent %u gave up", i);
			w->start_us[i] = sim.now_us + sim_draw(200000, 2000000);
		}
		world_end_process(w, i, false);
	}
}

/* Counts exchanges of stages that the controller has completed. */
static void count_exchange(struct world *w)
{
	const struct phase_targets *t = &w->controller->planning.targets;
	const struct cluster *c = w->controller->run.cluster;
	bool is_prepared = t->state == PHASE_MOVES_PREPARED;
	bool done = w->exchange_is_prepared && !is_prepared;

	for (int i = 0; done && i < c->n_nodes; i++)
		done = c->nodes[i].stage == t->exchange.to[i];
	w->exchange_is_prepared = is_prepared;
	w->out->exchanged += done;
}

static void turn_controller(struct world *w)
{
	int status;

	controller_process_turn(w->controller);
	count_exchange(w);
	checks_turn(w);
	if (!controller_process_over(w->controller, &status))
		return;
	/* The controller must restart with other stages. */
	if (w->controller->run.ending.restarts) {
		w->out->rewinds += w->controller->run.record.n_rewinds;
		world_end_process(w, CONTROLLER, false);
		if (sim_chance(0.2)) /* the controller dies before it has cut the model */
			w->start_us[CONTROLLER] = sim.now_us + sim_draw(10000, 4000000);
		else
			start_process(w, CONTROLLER);
		return;
	}
	w->out->rewinds += w->controller->run.record.n_rewinds;
	checks_controller_ended(w, status);
	w->over = true;
}

/* Schedules the next turn of a process, a moment after it has something to do. */
static void await_next(struct world *w, uint32_t i)
{
	int64_t at_us = i == CONTROLLER ? controller_process_deadline_us(w->controller) :
					  agent_deadline_us(w->agents[i]);
	int64_t due_us = threads_due_us(i);

	at_us = at_us == INT64_MAX ? INT64_MAX : at_us - sim.processes[i].clock_offset_us;
	if (due_us < at_us)
		at_us = due_us;
	if (at_us > sim.now_us + IDLE_US)
		at_us = sim.now_us + IDLE_US;
	if (at_us < sim.now_us)
		at_us = sim.now_us;
	sim.processes[i].wake_us = at_us + sim_delay(TURN_US);
}

static void take_turn(struct world *w, uint32_t i)
{
	world_become(i);
	if (i == CONTROLLER)
		turn_controller(w);
	else
		turn_agent(w, i);
	if (i == CONTROLLER ? w->controller != NULL : w->agents[i] != NULL)
		await_next(w, i);
}

/* ---- the main loop ---- */

/* Returns true if the time limit for the end of the run has passed. */
static bool is_late(const struct world *w)
{
	return sim.now_us - w->calm_us > PATIENCE_US + w->iterations * PATIENCE_STEPS * w->step_us;
}

/* Returns the event that comes first and sets *at_us to its time. With n processes, the result is i
 * for a turn of process i, n + i for a start of process i, and 2 n + i for mishap i. */
static uint32_t next_thing(const struct world *w, int64_t *at_us)
{
	uint32_t next = UINT32_MAX;

	*at_us = INT64_MAX;
	for (uint32_t i = 0; i < SIM_PROCESSES; i++) {
		const struct sim_process *p = &sim.processes[i];
		int64_t wake_us = p->wake_us == INT64_MAX || p->wake_us > p->asleep_us ?
					  p->wake_us : p->asleep_us;

		if (wake_us < *at_us) {
			*at_us = wake_us;
			next = i;
		}
		if (w->start_us[i] < *at_us) {
			*at_us = w->start_us[i];
			next = SIM_PROCESSES + i;
		}
	}
	for (uint32_t i = 0; i < w->n_mishaps; i++)
		if (!w->mishaps[i].done && w->mishaps[i].at_us < *at_us) {
			*at_us = w->mishaps[i].at_us;
			next = 2 * SIM_PROCESSES + i;
		}
	return next;
}

static void do_next(struct world *w)
{
	int64_t at_us;
	uint32_t next = next_thing(w, &at_us);

	if (at_us > sim.now_us)
		sim.now_us = at_us;
	if (next < SIM_PROCESSES)
		take_turn(w, next);
	else if (next < 2 * SIM_PROCESSES)
		start_process(w, next - SIM_PROCESSES);
	else
		mishap_apply(w, &w->mishaps[next - 2 * SIM_PROCESSES]);
	for (uint32_t i = 0; i < w->n_mishaps; i++)
		mishap_arm(w, &w->mishaps[i]);
	if (w->controller && w->controller->run.record.refused_events > 0)
		world_go_wrong(w, "a member's state has no transition for an event: see the log");
	if (!w->over && is_late(w))
		world_go_wrong(w, "the run is stalled: iteration %" PRIu64 " of %u, phase %d",
			       w->controller ? w->controller->run.iteration : 0, w->iterations,
			       w->controller ? (int)w->controller->run.phase : -1);
}

void world_run(struct ground *g, uint64_t seed, bool prints, struct outcome *out)
{
	struct world *w = alloc_new(sizeof(*w));

	*out = (struct outcome){ .hash = 0 };
	checks_begin(w);
	w->ground = g;
	w->out = out;
	ground_clear(g);
	draw_world(w, seed);
	sim.prints = prints;
	arguments_write_cluster(w);
	while (!w->over)
		do_next(w);
	out->lasted_s = (double)sim.now_us * 1e-6;
	checks_ask_agents(w);
	for (uint32_t i = 0; i < SIM_PROCESSES; i++)
		if (i == CONTROLLER ? w->controller != NULL : w->agents[i] != NULL)
			world_end_process(w, i, false);
	sim_note("the end: %s", out->wrong[0] ? out->wrong : "no failure");
	out->hash = sim.hash;
	out->delivered = sim.delivered;
	if (!out->wrong[0])
		checks_record(w);
	free(w);
}
