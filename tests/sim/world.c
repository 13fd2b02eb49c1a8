/* Runs the processes of a simulated cluster in the order of their clocks, with failures ("mishaps")
 * and the operator's commands among them. These are drawn before the run begins. Each waits for a
 * moment of the run: an iteration, a phase of it, and a delay. */
#include "tests/sim/world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/skip_schedule.h"
#include "controller/controller.h"
#include "schedule/format/cluster.h"
#include "store/store.h"
#include "tests/sim/agent_process.h"
#include "tests/sim/controller_process.h"
#include "tests/sim/ground.h"
#include "tests/sim/sim.h"
#include "verify/compare.h"
#include "wire/msg.h"

enum {
	CONTROLLER = SIM_AGENTS, MISHAPS = 12, ARGUMENTS = 64,
	MAX_DEAD = 2,            /* at the same time */
	TURN_US = 100,           /* usual delay from a reason for a turn to the turn */
	IDLE_US = 1000000,       /* the longest wait of an agent's main loop */
	PATIENCE_US = 120000000, /* the run must end within this time after its last mishap */
	ARM_US = 15000000        /* the longest wait for the moment of a mishap */
};

/* ---- a world ---- */

enum mishap_kind {
	KILL,
	TAKE_OVER, /* the controller dies, and another one resumes the run */
	CUT,
	NARROW, /* one direction of a link loses large messages */
	RESET,
	SLEEP,
	FLIP, /* a bit in a tensor */
	LOSE, /* all nodes that hold a stage die */
	/* Commands of the operator: */
	MARK,
	SKIP,
	PAUSE,
	WIRE,
	SUM_WIRE
};

enum moment {
	IN_PHASE,
	SOME_SUMMED,  /* some replicas have their sum, and others do not */
	SOME_FETCH,   /* a node fetches its stage or a copy */
	SOME_MOVE,    /* nodes load the stages to which they move between two phases */
	SOON_AFTER    /* the previous mishap */
};

/* It happens some time after its moment in its iteration. */
struct mishap {
	enum mishap_kind kind;
	enum moment moment;
	uint64_t iteration;
	enum run_phase phase; /* IN_PHASE */
	int64_t after_us, lasts_us;
	int64_t at_us;    /* world; INT64_MAX: the moment has not come */
	int64_t since_us; /* its iteration was reached then */
	uint32_t a, b;    /* processes; b: the other one, of a mishap between two */
	bool silently, done;
	bool given; /* the command was given, and is undone later */
};

/* The weights that an agent holds at the end. */
struct held {
	int stage; /* -1: no weights of the last commit */
	uint64_t hash;
	bool announced; /* the store has a hash of the stage */
	bool matches;   /* and it equals this one */
};

struct world {
	struct ground *ground;
	struct outcome *out;
	bool emulated, saves;
	/* The stages that are always visited if a phase starts the others from them */
	enum { NO_STACKING, STACK_ON_FIRST, STACK_ON_FIRST_AND_LAST } stacking;
	enum { NODES_STAY, NODES_MOVE } at_phases;
	uint32_t exchange;  /* number of the exchange of stages that is prepared; 0: none */
	uint32_t n_agents, iterations;
	struct controller *controller;
	struct agent *agents[SIM_AGENTS];
	struct log logs[SIM_AGENTS];
	char join[64], listen[SIM_AGENTS][32];
	int64_t start_us[SIM_PROCESSES]; /* world: its next start; INT64_MAX: none */
	int64_t job_us[SIM_PROCESSES];   /* usual length of a job */
	int64_t step_us; /* usual length of the optimizer's step; 0: as other jobs */
	struct mishap mishaps[MISHAPS];
	uint32_t n_mishaps;
	int64_t calm_us;                 /* no mishap since then */
	uint64_t durable;                /* the newest commit in the store */
	struct held held[SIM_AGENTS];
	bool begun, over, flips;
	char *argv[ARGUMENTS];
	int argc;
	char texts[ARGUMENTS][128];
};

static struct world *current;

static void go_wrong(struct world *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Ends the run with the first check that failed. */
static void go_wrong(struct world *w, const char *format, ...)
{
	va_list ap;

	w->over = true;
	if (w->out->wrong[0])
		return;
	va_start(ap, format);
	vsnprintf(w->out->wrong, sizeof(w->out->wrong), format, ap);
	va_end(ap);
}

/* ---- the cluster and its options ---- */

static void add_argument(struct world *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add_argument(struct world *w, const char *format, ...)
{
	char *to = w->texts[w->argc];
	va_list ap;

	va_start(ap, format);
	vsnprintf(to, sizeof(w->texts[0]), format, ap);
	va_end(ap);
	w->argv[w->argc++] = to;
}

static void write_cluster(struct world *w)
{
	struct cluster *c = cluster_alloc((int)w->n_agents, 3, true);
	struct error err;
	char *text;

	for (int s = 0; s < 3; s++)
		c->stages[s] = (int)(w->n_agents / 3 + ((uint32_t)s < w->n_agents % 3));
	c->microbatches_per_data_node = 3;
	for (int i = 0; i < c->n_nodes; i++) {
		double slower = 0.5 + rng_uniform(&sim.rng);

		c->nodes[i].forward_s = slower;
		c->nodes[i].backward_s = 2 * slower;
		c->nodes[i].loss_s = slower / 3;
		c->nodes[i].memory = 2;
		for (int k = 0; k < c->n_nodes; k++) {
			c->delay_s[i * c->n_nodes + k] = 0.1 + rng_uniform(&sim.rng);
			c->sync_pair_s[i * c->n_nodes + k] = 1;
		}
	}
	text = cluster_format(c);
	if (!text || file_write(w->ground->cluster, text, strlen(text), 0600, &err) != 0)
		go_wrong(w, "the cluster's file cannot be written");
	free(text);
	cluster_free(c);
}

/* Adds the options that decide which stages microbatches skip. */
static void add_skipping(struct world *w)
{
	static const char *const schedules[] = { "2@0,1@4,0@8", "2@0,0@5", "1@0,2@4,0@7" };

	if (w->at_phases == NODES_MOVE)
		add_argument(w, "--phase-moves");
	if (w->at_phases == NODES_MOVE && !w->stacking) {
		add_argument(w, "--skip-schedule");
		add_argument(w, "%s", schedules[sim_draw(0, 2)]);
	} else if (w->stacking) {
		bool both = w->stacking == STACK_ON_FIRST_AND_LAST;

		add_argument(w, "--stack");
		add_argument(w, "--skip-schedule");
		if (sim_chance(0.3))
			add_argument(w, both ? "1@0,50%%:1@3" : "2@0,40%%:1@2,0@4");
		else
			add_argument(w, both ? "1@0,0@3" : "2@0,1@2,0@4");
		add_argument(w, "--always");
		add_argument(w, both ? "2" : "0");
	} else if (sim_chance(0.2)) {
		add_argument(w, "--skip-share");
		add_argument(w, "50%%:1");
	} else {
		add_argument(w, "--skip");
		add_argument(w, "%d", sim_chance(0.5) ? 1 : 0);
	}
}

/* Adds the nodes and the network. */
static void add_network(struct world *w)
{
	const struct ground *g = w->ground;

	if (w->emulated) {
		add_argument(w, "--emulate");
		add_argument(w, "%s", g->cluster);
		add_argument(w, "--time-scale");
		add_argument(w, "0.01");
	} else {
		add_argument(w, "--agents");
		add_argument(w, "%u", w->n_agents);
		add_argument(w, "--stages");
		add_argument(w, "%u,%u,%u", w->n_agents / 3 + (w->n_agents % 3 > 0),
		    w->n_agents / 3 + (w->n_agents % 3 > 1), w->n_agents / 3);
		add_argument(w, "--microbatches");
		add_argument(w, "3");
	}
}

static void make_arguments(struct world *w, bool resume)
{
	static const char *const wires[] = { "fp32", "fp32", "bf16", "q8", "q6" };
	static const char *const sum_wires[] = { "fp32", "fp32", "q8", "q6", "q4" };
	const struct ground *g = w->ground;

	w->argc = 0;
	add_argument(w, "controller");
	add_argument(w, resume ? "--resume" : "--run-dir");
	add_argument(w, "%s", g->run);
	add_argument(w, "--key");
	add_argument(w, "%s", g->key);
	add_argument(w, "--admitted");
	add_argument(w, "%s", g->admitted);
	add_argument(w, "--listen");
	add_argument(w, "%s", w->join);
	add_argument(w, "--gather-s");
	add_argument(w, "6");
	add_argument(w, "--budget");
	add_argument(w, "0.05");
	add_argument(w, "--ahead");
	add_argument(w, "0");
	if (!resume) {
		add_argument(w, "--iterations");
		add_argument(w, "%u", w->iterations);
		add_argument(w, "--eval-every");
		add_argument(w, "%d", sim_chance(0.3) ? 2 : 0);
		add_argument(w, "--eval-batches");
		add_argument(w, "2");
		add_argument(w, "--checkpoint-every");
		add_argument(w, w->saves ? "2" : "0");
		add_argument(w, "--model");
		add_argument(w, "%s", g->model);
		add_argument(w, "--corpus");
		add_argument(w, "%s", g->corpus);
		add_argument(w, "--grad-norm");
		add_argument(w, sim_chance(0.3) ? "visits" : "microbatches");
		add_skipping(w);
		add_argument(w, "--wire");
		add_argument(w, "%s", wires[sim_draw(0, 4)]);
		add_argument(w, "--sum-wire");
		add_argument(w, "%s", sum_wires[sim_draw(0, 4)]);
		if (sim_chance(0.3))
			add_argument(w, "--sums"), add_argument(w, "late");
		add_argument(w, "--skip-bad-steps");
		add_argument(w, "%d", sim_chance(0.5) ? 2 : 0);
		add_network(w);
	}
	w->argv[w->argc] = NULL;
}

static void draw_mishap(struct world *w, struct mishap *m)
{
	static const enum run_phase phases[] = { PHASE_PLANNING, PHASE_COMPUTING,
						 PHASE_COMPUTING, PHASE_COMPUTING,
						 PHASE_REDUCING, PHASE_REDUCING,
						 PHASE_COMMITTING };
	static const enum mishap_kind kinds[] = {
		KILL,   KILL,   KILL,  KILL,  TAKE_OVER, TAKE_OVER, CUT,      CUT,
		NARROW, NARROW, RESET, SLEEP, FLIP,      FLIP,      LOSE,     LOSE,
		MARK,   MARK,   SKIP,  PAUSE, WIRE,      WIRE,      SUM_WIRE, SUM_WIRE
	};
	static const enum moment moments[] = { IN_PHASE, IN_PHASE, IN_PHASE, IN_PHASE,
					       SOME_SUMMED, SOME_SUMMED, SOME_FETCH,
					       SOON_AFTER, SOON_AFTER };
	int64_t until_us = w->emulated ? 300000 : 40000; /* about one iteration */

	*m = (struct mishap){ .kind = kinds[rng_below(&sim.rng, 24)], .at_us = INT64_MAX };
	m->moment = moments[rng_below(&sim.rng, 9)];
	if (m->moment == SOON_AFTER && m == w->mishaps)
		m->moment = IN_PHASE;
	if (w->at_phases == NODES_MOVE && sim_chance(0.4))
		m->moment = SOME_MOVE;
	m->iteration = 1 + rng_below(&sim.rng, w->iterations);
	m->phase = phases[rng_below(&sim.rng, 7)];
	m->after_us = sim_draw(0, m->moment == IN_PHASE && m->phase == PHASE_COMPUTING ? until_us :
				  sim_chance(0.5) ? 2000 : until_us / 5);
	m->a = rng_below(&sim.rng, w->n_agents);
	m->b = sim_chance(0.3) ? CONTROLLER :
				 (m->a + 1 + rng_below(&sim.rng, w->n_agents - 1)) % w->n_agents;
	if (m->kind == FLIP && w->flips) /* two flips in an iteration could form the majority */
		m->kind = KILL;
	w->flips = w->flips || m->kind == FLIP;
	if (m->kind == SLEEP && sim_chance(0.3))
		m->a = CONTROLLER;
	m->lasts_us = sim_chance(0.1) ? sim_draw(5500000, 9000000) :
					sim_draw(20000, sim_chance(0.5) ? 300000 : 3000000);
	if (m->kind == SLEEP && m->lasts_us > 4000000)
		m->lasts_us = 4000000;
	if (m->kind == NARROW && sim_chance(0.5)) /* mostly until the run ends */
		m->lasts_us = 30000000;
	m->silently = sim_chance(0.3);
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
	delay_us = delays_us[rng_below(&sim.rng, 4)];
	loss = losses[rng_below(&sim.rng, 4)];
	network_begin(delay_us, loss);
	w->n_agents = 5 + rng_below(&sim.rng, SIM_AGENTS - 4);
	w->emulated = sim_chance(0.5);
	w->saves = sim_chance(0.4);
	w->iterations = 3 + rng_below(&sim.rng, 4);
	if (seed % 3 == 0) {
		w->stacking = seed % 2 ? STACK_ON_FIRST : STACK_ON_FIRST_AND_LAST;
		w->iterations += 3;
	}
	if (seed % 4 == 1) {
		w->at_phases = NODES_MOVE;
		w->iterations += 6;
	}
	w->n_mishaps = rng_below(&sim.rng, MISHAPS - 3);
	for (uint32_t i = 0; i < w->n_mishaps; i++)
		draw_mishap(w, &w->mishaps[i]);
	snprintf(w->join, sizeof(w->join), "tcp://10.0.1.1:7000");
	for (uint32_t i = 0; i < SIM_PROCESSES; i++) {
		sim.processes[i].wake_us = w->start_us[i] = INT64_MAX;
		sim.processes[i].clock_offset_us = sim_draw(1000000, 1000000000);
		if (i < w->n_agents || i == CONTROLLER)
			w->start_us[i] = sim_draw(0, 300000);
		w->job_us[i] = sim_draw(200, 3000);
		threads_pace(i, w->job_us[i]);
	}
	if (seed % 5 == 2) /* as with a large model, longer than the detector of stalls looks */
		w->step_us = 600000;
	if (seed % 10 == 2) /* then check_strangers judges the run */
		w->n_mishaps = 0;
	sim_note("%u agents, %u iterations, %s%s%s%s, %u mishaps, delays of %" PRId64
		 " us, loss %g",
		 w->n_agents, w->iterations, w->emulated ? "emulated" : "measured",
		 w->saves ? ", saved" : "", w->stacking ? ", stacked" : "",
		 w->at_phases == NODES_MOVE ? ", moving" : "", w->n_mishaps, delay_us, loss);
}

/* ---- processes start and end ---- */

/* Makes a process the current one, whose clock and id the real modules see. */
static void become(uint32_t process)
{
	sim.self = process;
	sim.ahead_us = sim.step_us = 0;
}

/* Returns the time on a process's own clock. */
static int64_t own_now(uint32_t process)
{
	return sim.now_us + sim.processes[process].clock_offset_us;
}

static void start_agent(struct world *w, uint32_t i)
{
	struct agent_options o = { .join = w->join,
				   .controller = w->ground->controller_key,
				   .identity = w->ground->agents[i],
				   .listen = w->listen[i],
				   .device = "cpu",
				   .node = (int32_t)i,
				   .orphan_s = 300,
				   .stuck_s = 30,
				   .piece_bytes = 256,
				   .memory_bytes = (size_t)64 << 20,
				   .run_dir = w->saves ? w->ground->run : NULL,
				   .log = &w->logs[i] };
	struct error err = { "" };

	snprintf(w->listen[i], sizeof(w->listen[i]), "tcp://10.0.0.%u:0", i + 1);
	w->logs[i] = (struct log){ .to = getenv("SIM_LOG") ? stdout : NULL, .least = LOG_DEBUG };
	if (agent_new(&w->agents[i], &o, own_now(i), &err) != 0)
		go_wrong(w, "agent %u: %s", i, err.text);
}

static void start_controller(struct world *w)
{
	struct error err = { "" };

	make_arguments(w, w->begun);
	if (controller_process_start(&w->controller, w->argc, w->argv, &err) != 0)
		go_wrong(w, "the controller: %s", err.text);
	w->begun = true;
}

static void start_process(struct world *w, uint32_t i)
{
	w->start_us[i] = INT64_MAX;
	sim.processes[i].life++;
	sim.processes[i].asleep_us = 0;
	sim.processes[i].wake_us = sim.now_us;
	become(i);
	network_dies(i, false);
	sim_note("%s starts", sim_name(i));
	if (i == CONTROLLER)
		start_controller(w);
	else
		start_agent(w, i);
}

static void end_process(struct world *w, uint32_t i, bool silently)
{
	become(i);
	network_dies(i, silently);
	if (i == CONTROLLER) {
		controller_process_end(w->controller);
		w->controller = NULL;
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

	agent_receive(a, own_now(i));
	if (w->step_us > 0)
		threads_pace(i, agent_process_steps(a) ? w->step_us : w->job_us[i]);
	agent_work(a, own_now(i));
	agent_send(a, own_now(i));
	if (agent_over(a, &status, own_now(i))) {
		sim_note("%s leaves with %d", sim_name(i), status);
		if (!w->controller || w->controller->run.phase != PHASE_FINISHED) {
			if (status != 0)
				go_wrong(w, "agent %u gave up", i);
			w->start_us[i] = sim.now_us + sim_draw(200000, 2000000);
		}
		end_process(w, i, false);
	}
}

static bool is_marked(const struct world *w, uint32_t i)
{
	for (uint32_t k = 0; k < w->n_mishaps; k++)
		if (w->mishaps[k].kind == MARK && w->mishaps[k].a == i && w->mishaps[k].given)
			return true;
	return false;
}

/* Returns true if a bit of an encoded sum may have flipped. The flip may have made a scale that no
 * computation gives; then the sender is shut out. */
static bool is_scale_flipped(const struct world *w)
{
	bool flipped = false;
	bool encoded = w->controller->run.options.training.formats.sum_wire != FORMAT_FP32;

	for (uint32_t k = 0; k < w->n_mishaps; k++) {
		flipped |= w->mishaps[k].kind == FLIP && w->mishaps[k].done;
		encoded |= w->mishaps[k].kind == SUM_WIRE;
	}
	return flipped && encoded;
}

/* Without a mishap no agent misses a commit. It may be slow to make the step. */
static void check_strangers(struct world *w)
{
	for (uint32_t i = 0; w->n_mishaps == 0 && i < w->n_agents; i++) {
		const struct member *m = &w->controller->members.list[i];

		if (m->state == MEMBER_DEAD && strstr(m->why, "another iteration"))
			go_wrong(w, "agent %u was dropped: it %s", i, m->why);
	}
}

/* Counts the exchanges of stages that took place. */
static void count_exchange(struct world *w)
{
	const struct exchange *x = &w->controller->planning.targets.exchange;
	const struct cluster *c = w->controller->run.cluster;
	bool done = w->exchange != 0 && x->number == 0;

	for (int i = 0; done && i < c->n_nodes; i++)
		done = c->nodes[i].stage == x->to[i];
	w->exchange = x->number;
	w->out->exchanged += done;
}

static void turn_controller(struct world *w)
{
	bool excused;
	int status;

	controller_process_turn(w->controller);
	count_exchange(w);
	check_strangers(w);
	if (!controller_process_over(w->controller, &status))
		return;
	if (status != 0)
		go_wrong(w, "the controller ended with %d after iteration %" PRIu64, status,
			 w->controller->run.committed);
	w->out->rewinds += w->controller->run.history.n_rewinds;
	if (status == 0 && w->controller->run.committed != w->iterations)
		go_wrong(w, "the run ended after iteration %" PRIu64 " of %u",
			 w->controller->run.committed, w->iterations);
	excused = is_scale_flipped(w); /* one sender */
	for (uint32_t i = 0; i < w->n_agents; i++) {
		const struct member *m = &w->controller->members.list[i];

		if ((!m->is_marked && !m->peers.is_excluded) || is_marked(w, i))
			continue;
		if (!excused)
			go_wrong(w, "agent %u was shut out: %s", i, m->why);
		excused = false;
	}
	w->over = true;
}

/* Schedules the next turn of a process: when it has something to do, and a moment later. */
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
	become(i);
	if (i == CONTROLLER)
		turn_controller(w);
	else
		turn_agent(w, i);
	if (i == CONTROLLER ? w->controller != NULL : w->agents[i] != NULL)
		await_next(w, i);
}

/* ---- mishaps and commands ---- */

/* Returns true if a node holds a stage. A node that was restarted holds nothing, even if the
 * controller does not know it yet. A node without the current sum will hold nothing after the
 * commit. */
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

/* Returns true if the cluster can lose a node. A run without a checkpoint need not survive the loss
 * of all nodes of a stage. */
static bool may_die(const struct world *w, uint32_t i)
{
	uint32_t dead = 0, holders;

	if (!w->controller || !w->agents[i] || w->controller->run.phase == PHASE_GATHERING)
		return false;
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
	end_process(w, i, m->silently);
	w->start_us[i] = sim.now_us + (sim_chance(0.5) ? sim_draw(10000, 400000) :
							 sim_draw(400000, 4000000));
}

/* Draws the value of a command: the skip ratio, or a format. */
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

/* Gives a command of the operator, and later the command that undoes it. Waits while there is no
 * controller. */
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

	m->at_us = sim.now_us + 100000;
	if (!w->controller || w->controller->run.phase == PHASE_GATHERING ||
	    sim.processes[CONTROLLER].asleep_us > sim.now_us)
		return;
	if (w->controller->run.phase == PHASE_FINISHED) {
		m->done = true;
		return;
	}
	become(CONTROLLER);
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

/* Kills all nodes of a stage, if there is a checkpoint that the run can restore. Before the first
 * checkpoint all nodes of the first stage may die, because the run then restarts. */
static void lose_stage(struct world *w, struct mishap *m)
{
	int stage = (int)(m->a % 3);

	m->done = true;
	if (!w->controller || (w->controller->weights.saving.last == 0 && stage != 0) ||
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

static void apply_mishap(struct world *w, struct mishap *m)
{
	struct outcome *o = w->out;

	if (m->kind == LOSE) {
		lose_stage(w, m);
		return;
	}
	if (m->kind >= MARK) {
		give_command(w, m);
		return;
	}
	if (m->kind == KILL && !may_die(w, m->a)) {
		m->at_us = sim.now_us + 100000; /* tries again later */
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
	default:
		return c->run.iteration == m->iteration && c->run.phase == m->phase;
	}
}

/* Schedules a mishap whose moment has come or has been waited for too long. */
static void arm(struct world *w, struct mishap *m)
{
	const struct controller *c = w->controller;

	if (m->done || m->at_us != INT64_MAX || !c || c->run.phase == PHASE_GATHERING)
		return;
	if (m->since_us == 0 && c->run.iteration >= m->iteration)
		m->since_us = sim.now_us;
	if (has_come(w, m) ||
	    c->run.iteration > (m->moment == SOME_MOVE ? w->iterations - 1 : m->iteration) ||
	    (m->since_us && sim.now_us - m->since_us > ARM_US))
		m->at_us = sim.now_us + m->after_us;
}

/* Checks that a commit is in the store before the controller announces it. */
void sim_sends(uint32_t process, const void *data, size_t size)
{
	struct world *w = current;
	struct msg m;
	struct store *s;
	struct error err = { "" };

	if (process != CONTROLLER || msg_decode(&m, data, size) != 0)
		return;
	if (m.type == MSG_COMMIT && m.u.commit.iteration > w->durable) {
		w->out->stacked += m.u.commit.stack_from != 0;
		if (store_open(&s, w->ground->run, &err) == 0) {
			store_last_commit(s, &w->durable, &err);
			store_close(s);
		}
		if (m.u.commit.iteration > w->durable)
			go_wrong(w, "commit %" PRIu64 " is announced, but the store has %" PRIu64
				    " %s",
				 m.u.commit.iteration, w->durable, err.text);
	}
	msg_clear(&m);
}

/* ---- the main loop ---- */

/* Returns the next thing to do and sets *at_us to its time. With n processes, the result is i for
 * the turn of process i, n + i for its start, and 2 n + i for mishap i. */
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
		apply_mishap(w, &w->mishaps[next - 2 * SIM_PROCESSES]);
	for (uint32_t i = 0; i < w->n_mishaps; i++)
		arm(w, &w->mishaps[i]);
	if (w->controller && w->controller->run.history.refused_events > 0)
		go_wrong(w, "a member's state has no transition for an event: see the log");
	if (!w->over && sim.now_us > w->calm_us + PATIENCE_US)
		go_wrong(w, "the run is stalled: iteration %" PRIu64 " of %u, phase %d",
			 w->controller ? w->controller->run.iteration : 0, w->iterations,
			 w->controller ? (int)w->controller->run.phase : -1);
}

/* ---- checks at the end ---- */

static void ask_agents(struct world *w)
{
	uint64_t committed;

	for (uint32_t i = 0; i < SIM_AGENTS; i++) {
		struct held *h = &w->held[i];

		/* A node that has not returned since a restore has weights that were given up. */
		if (w->out->rewinds && w->controller && i < w->controller->members.n &&
		    !member_is_replica(&w->controller->members.list[i]))
			h->stage = -1;
		else if (!w->agents[i] ||
			 !agent_process_holds(w->agents[i], &h->stage, &committed, &h->hash) ||
			 committed != w->iterations)
			h->stage = -1;
	}
}

static int compare_held(void *context, const struct store_hash *h)
{
	struct held *held = context;

	for (int i = 0; i < SIM_AGENTS; i++)
		if (held[i].stage == h->stage) {
			held[i].announced = true;
			held[i].matches = held[i].hash == h->hash;
		}
	return 0;
}

/* Checks the weights that agents hold, whether or not they have announced them. */
static void check_held(struct world *w, struct store *s)
{
	struct error err = { "" };

	if (store_each_hash(s, w->iterations, compare_held, w->held, &err) != 0)
		go_wrong(w, "%s", err.text);
	for (uint32_t i = 0; i < w->n_agents; i++)
		if (w->held[i].announced && !w->held[i].matches)
			go_wrong(w, "agent %u holds other weights of stage %d than announced", i,
				 w->held[i].stage);
}

/* Checks the rules of verify/audit.h and recomputes every weight and loss. */
static void check_record(struct world *w)
{
	const struct compare_options o = { .from = 1, .workers = 1 };
	struct compare_result r;
	struct error err = { "" };
	struct store *s;

	if (store_open(&s, w->ground->run, &err) != 0) {
		go_wrong(w, "%s", err.text);
		return;
	}
	if (compare_run(s, &o, &r, &err) != 0)
		go_wrong(w, "verify: %s", err.text);
	else if (r.broken_rule.text[0])
		go_wrong(w, "verify: a rule is broken: %s", r.broken_rule.text);
	else if (r.weights.differing)
		go_wrong(w, "verify: %" PRIu64 " of %" PRIu64 " hashes differ, the first of node "
			    "%u in stage %u after %" PRIu64,
			 r.weights.differing, r.weights.compared, r.weights.first_differing.node,
			 r.weights.first_differing.stage, r.weights.first_differing.iteration);
	else if (!compare_equal(&r) || r.last != w->iterations || r.tolerance_from ||
		 r.losses.equal_bits != r.losses.compared)
		go_wrong(w, "verify: %" PRIu64 " iterations, %" PRIu64 " of %" PRIu64
			    " losses equal", r.last, r.losses.equal_bits, r.losses.compared);
	else
		w->out->commits = r.last;
	check_held(w, s);
	store_close(s);
}

void world_run(struct ground *g, uint64_t seed, bool prints, struct outcome *out)
{
	struct world *w = alloc_new(sizeof(*w));

	*out = (struct outcome){ .hash = 0 };
	current = w;
	w->ground = g;
	w->out = out;
	ground_remove(g->run);
	draw_world(w, seed);
	sim.prints = prints;
	write_cluster(w);
	while (!w->over)
		do_next(w);
	out->lasted_s = (double)sim.now_us * 1e-6;
	ask_agents(w);
	for (uint32_t i = 0; i < SIM_PROCESSES; i++)
		if (i == CONTROLLER ? w->controller != NULL : w->agents[i] != NULL)
			end_process(w, i, false);
	sim_note("the end: %s", out->wrong[0] ? out->wrong : "no failure");
	out->hash = sim.hash;
	out->delivered = sim.delivered;
	if (!out->wrong[0])
		check_record(w);
	free(w);
}
