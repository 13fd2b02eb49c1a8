/* A whole controller and agents that are played: they compute nothing and say what honest ones
 * would say, but for one or two, which lie about their work. The run goes on, who lies is left out, and in the
 * end nobody else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "controller/tests/visitor.h"

enum { AGENTS = 9, BATCHES = 64, FROM = 4 /* the first iteration with a lie */ };

/* Tasks take so long, as measured and as reported: plans have work for every node. */
enum { DATA_US = 2000, STAGE_US = 6000 };

enum lie {
	HONEST,
	COUNTS_TWICE,
	COUNTS_OTHERS,
	COUNTS_NOT,
	IS_HOME_EARLY, /* says the gradient is back where nobody has made one */
	HIDES_WORK,
	OTHER_SQUARES,
	OTHER_SLICE,      /* of another's sum, as if it had been sent that */
	EQUIVOCATES,      /* sends each another sum of its slice */
	EQUIVOCATES_ONCE, /* to one of them */
	OTHER_LENGTH,
	ACCUSES,     /* in every iteration another */
	ACCUSES_ALL, /* at once */
	PASSES_NOTHING_ON,
	HOLDS_A_SUM_UP,
	HOLDS_AND_BLAMES, /* and says that it waits for another */
	SAYS_NO_SUM,      /* though all others have it */
	ENDS_NOTHING,     /* and says that a task runs */
	ENDS_IN_SECRET,   /* says that it begins one, and then that nothing runs */
	STARTS_NOTHING,   /* and says that tasks wait */
	DOES_NOTHING,     /* and says so */
	KEEPS_TENSORS,    /* passes nothing on, and says that they are on their way */
	COUNTS_TASKS,     /* passes nothing on, and says that it ends one task after another */
	IS_ELSEWHERE,     /* passes nothing on, and says that it waits for the iteration */
	EVALUATES_NOT,    /* and says that a task runs */
	EVALUATES_IN_SECRET,
	ANSWERS_FOR_OTHERS, /* with another loss */
	MISSES_A_COMMIT /* which is no lie */
};

struct way {
	struct msg_route route;
	uint16_t nodes[MSG_STAGES];
	uint8_t stages[MSG_STAGES];
};

struct world;

struct player {
	struct visitor v;
	struct world *world;
	uint16_t node;
	uint8_t stage;
	bool ready;
	uint64_t assignment, committed, iteration, beats;
	int keeps; /* -1 none */
	int64_t beat_us;
	uint16_t awaits; /* 1 + the node; 0 nobody */
	struct way plans[2][BATCHES]; /* of an even and an odd epoch */
	uint32_t n_ways;
	struct way *ways;
	bool counted[BATCHES];
	struct msg_task_event events[4 * BATCHES];
	uint32_t n_events;
};

struct world {
	struct door *door;
	struct visitor console;
	struct player *players; /* (AGENTS) */
	enum lie lies[AGENTS];
	uint64_t committed;
	enum node_state states[AGENTS];
	uint32_t validations;
	float validated; /* the last */
};

static bool lies(const struct player *p, enum lie lie)
{
	return p->world->lies[p->node] == lie && p->iteration >= FROM;
}

static bool evaluates(const struct player *p, enum lie lie)
{
	return p->world->lies[p->node] == lie && p->committed >= FROM;
}

/* ---- saying ---- */

static void say(struct player *p, const struct msg *m)
{
	visitor_send(&p->v, m, POST_RELIABLE);
}

static uint64_t weights_hash(uint8_t stage, uint64_t iteration)
{
	return 1 + stage + 1000 * iteration;
}

static void say_ready(struct player *p, const struct msg_assign *a)
{
	double task_s = 1e-6 * (a->stage == 0 ? DATA_US : STAGE_US);
	struct msg m = { .type = MSG_READY };

	p->stage = a->stage;
	p->assignment = a->assignment;
	p->committed = a->fetch ? p->world->committed : 0;
	p->ready = true;
	p->iteration = 0;
	m.u.ready = (struct msg_ready){ a->assignment, a->stage, p->committed,
					weights_hash(a->stage, p->committed), task_s, task_s, task_s,
					a->stage == 0 ? 7 : 0 };
	say(p, &m);
}

static void say_kept(struct player *p, const struct msg_keep *k)
{
	struct msg m = { .type = MSG_KEPT };

	p->keeps = k->stage == MSG_NO_STAGE ? -1 : k->stage;
	if (p->keeps < 0)
		return;
	m.u.kept = (struct msg_kept){ .assignment = k->assignment, .stage = k->stage,
				      .iteration = p->world->committed,
				      .hash = weights_hash(k->stage, p->world->committed) };
	say(p, &m);
}

static void beat(struct player *p, int64_t now_us)
{
	struct msg m = { .type = MSG_HEARTBEAT };

	if (now_us < p->beat_us)
		return;
	p->beat_us = now_us + 100000;
	m.u.heartbeat = (struct msg_heartbeat){
		.beat = ++p->beats, .now_us = now_us,
		.iteration = lies(p, IS_ELSEWHERE) ? 0 : p->iteration,
		.committed = p->committed, .stage = p->stage, .awaits = p->awaits,
		.running = lies(p, ENDS_NOTHING) || evaluates(p, EVALUATES_NOT),
		.queued = lies(p, STARTS_NOTHING) ? 7 : 0,
		.in_flight = lies(p, KEEPS_TENSORS),
		.tasks_done = lies(p, COUNTS_TASKS) ? p->beats : 0,
	};
	say(p, &m);
}

/* ---- an iteration ---- */

static void did(struct player *p, const struct way *w, enum work_kind kind, bool counts)
{
	struct msg_task_event e = { .kind = (uint8_t)kind, .node = p->node, .blocker_node = p->node,
				    .microbatch = w->route.microbatch, .attempt = w->route.attempt,
				    .blocker = UINT32_MAX, .at_us = clock_monotonic_us() };

	assert_true(p->n_events + 2 < sizeof(p->events) / sizeof(p->events[0]));
	e.arrived_us = e.at_us;
	e.type = WORK_STARTS;
	p->events[p->n_events++] = e;
	e.type = WORK_ENDS;
	e.at_us += p->stage == 0 ? DATA_US : STAGE_US;
	e.counted = counts;
	e.loss = kind == WORK_LOSS ? 3.0f : 0;
	p->events[p->n_events++] = e;
}

static int hop_of(const struct way *w, uint16_t node)
{
	for (uint32_t h = 0; h < w->route.n_hops; h++)
		if (w->nodes[h] == node)
			return (int)h;
	return -1;
}

static bool passes_on(const struct player *p, uint16_t node)
{
	switch (p->world->lies[node]) {
	case MISSES_A_COMMIT:
		return p->iteration != FROM + 1;
	case PASSES_NOTHING_ON:
	case ENDS_NOTHING:
	case ENDS_IN_SECRET:
	case STARTS_NOTHING:
	case DOES_NOTHING:
	case KEEPS_TENSORS:
	case COUNTS_TASKS:
	case IS_ELSEWHERE:
		return p->iteration < FROM;
	default:
		return true;
	}
}

/* Whether the microbatch gets to this hop. */
static bool reaches(const struct player *p, const struct way *w, int hop)
{
	for (int h = 0; h < hop && h < (int)w->route.n_hops; h++)
		if (!passes_on(p, w->nodes[h]))
			return false;
	return true;
}

static bool has_gradient(const struct player *p, const struct way *w)
{
	bool starts = p->world->lies[w->nodes[0]] == IS_HOME_EARLY && p->iteration >= FROM;

	return !starts || p->node == w->nodes[0];
}

static void work_on(struct player *p, const struct way *w)
{
	bool missed = p->world->lies[p->node] == MISSES_A_COMMIT && p->iteration == FROM + 1;
	uint32_t id = w->route.microbatch;
	int hop = hop_of(w, p->node);
	bool counts;

	if (hop < 0 && lies(p, COUNTS_OTHERS))
		did(p, w, WORK_BACKWARD, true);
	if (hop < 0 || missed || !reaches(p, w, hop) || lies(p, STARTS_NOTHING) ||
	    lies(p, DOES_NOTHING))
		return;
	did(p, w, WORK_FORWARD, false);
	if (lies(p, ENDS_NOTHING) || lies(p, ENDS_IN_SECRET))
		p->n_events--;
	if (!reaches(p, w, 1 << 20)) /* nothing comes back */
		return;
	counts = (!p->counted[id] || lies(p, COUNTS_TWICE)) && !lies(p, COUNTS_NOT);
	if (hop == 0)
		did(p, w, WORK_LOSS, counts);
	if (!has_gradient(p, w) || (lies(p, HIDES_WORK) && hop > 0))
		return;
	did(p, w, WORK_BACKWARD, counts);
	if (lies(p, COUNTS_TWICE))
		did(p, w, WORK_BACKWARD, counts);
	p->counted[id] = true;
}

static void report(struct player *p)
{
	struct msg m = { .type = MSG_REPORT };

	for (uint32_t i = 0; i < p->n_events; i += 16) { /* visitors send what is short */
		m.u.report = (struct msg_report){ .iteration = p->iteration,
						  .n_events = p->n_events - i < 16 ? p->n_events - i : 16,
						  .events = p->events + i };
		say(p, &m);
	}
	p->n_events = 0;
}

static void keep_way(struct way *w, const struct msg_route *r)
{
	w->route = *r;
	memcpy(w->nodes, r->nodes, r->n_hops * sizeof(w->nodes[0]));
	memcpy(w->stages, r->stages, r->n_hops);
}

static void plan(struct player *p, const struct msg_plan *m)
{
	assert_true(m->n_routes <= BATCHES);
	p->n_ways = m->n_routes;
	for (uint32_t i = 0; i < m->n_routes; i++)
		keep_way(&p->plans[m->epoch % 2][m->routes[i].microbatch], &m->routes[i]);
}

static void accuse(struct player *p, int node)
{
	struct msg m = { .type = MSG_TROUBLE };

	m.u.trouble.accused = node;
	say(p, &m);
}

static void start(struct player *p, const struct msg_start *m)
{
	if (m->iteration != p->committed + 1)
		return;
	p->iteration = m->iteration;
	p->ways = p->plans[m->epoch % 2];
	memset(p->counted, 0, sizeof(p->counted));
	for (uint32_t i = 0; i < p->n_ways; i++)
		work_on(p, &p->ways[i]);
	report(p);
	if (lies(p, ACCUSES))
		accuse(p, (p->node + 1 + (int)(p->iteration % (AGENTS - 1))) % AGENTS);
	for (int i = 1; lies(p, ACCUSES_ALL) && i < AGENTS; i++)
		accuse(p, (p->node + i) % AGENTS);
}

static void reroute(struct player *p, const struct msg_reroute *m)
{
	if (m->iteration != p->iteration)
		return;
	for (uint32_t i = 0; i < m->n_routes; i++) {
		keep_way(&p->ways[m->routes[i].microbatch], &m->routes[i]);
		work_on(p, &p->ways[m->routes[i].microbatch]);
	}
	report(p);
}

/* A slice's sum as p has it. */
static uint64_t slice_hash(const struct player *p, const struct msg_reduce *m, uint32_t slice)
{
	const struct world *w = p->world;
	uint64_t right = 1000 * m->iteration + slice;
	uint16_t owner = m->nodes[slice];

	if (m->iteration < FROM)
		return right;
	if (owner != p->node &&
	    (w->lies[owner] == EQUIVOCATES ||
	     (w->lies[owner] == EQUIVOCATES_ONCE && p->node == m->nodes[m->nodes[0] == owner])))
		return right + 100000u * (1u + p->node);
	if (lies(p, OTHER_SLICE) && m->nodes[slice] != p->node)
		return right + 1;
	return right;
}

/* Who of its stage holds the sum up, as the player sees it; AGENTS: nobody. */
static uint16_t holder(const struct player *p, const struct msg_reduce *m)
{
	for (uint32_t i = 0; m->iteration >= FROM && i < m->n_nodes; i++) {
		enum lie lie = p->world->lies[m->nodes[i]];

		if (lie == HOLDS_A_SUM_UP || lie == HOLDS_AND_BLAMES)
			return m->nodes[i];
	}
	return AGENTS;
}

static bool sums_come(struct player *p, const struct msg_reduce *m)
{
	uint16_t by = holder(p, m);

	p->awaits = 0;
	if (by == AGENTS)
		return !lies(p, SAYS_NO_SUM);
	if (p->node != by)
		p->awaits = by + 1;
	else if (p->world->lies[by] == HOLDS_AND_BLAMES)
		p->awaits = m->nodes[m->nodes[0] == by] + 1;
	return false;
}

static void reduce(struct player *p, const struct msg_reduce *m)
{
	uint64_t slices[AGENTS + 1] = { 0 };
	struct msg said = { .type = MSG_REDUCED };
	uint32_t n = m->n_nodes;

	if (!sums_come(p, m))
		return;
	for (uint32_t j = 0; j < n; j++)
		slices[j] = slice_hash(p, m, j);
	said.u.reduced = (struct msg_reduced){ .iteration = m->iteration, .attempt = m->attempt,
					       .stage = m->stage, .sum_squares = 2 + m->stage,
					       .n_slices = lies(p, OTHER_LENGTH) ? n + 1 : n,
					       .slices = slices };
	if (lies(p, OTHER_SQUARES))
		said.u.reduced.sum_squares++;
	say(p, &said);
}

static void commit(struct player *p, const struct msg_commit *m)
{
	struct msg said = { .type = MSG_COMMITTED };

	if (p->world->lies[p->node] == MISSES_A_COMMIT && m->iteration == FROM)
		return;
	p->committed = m->iteration;
	if (p->world->committed < m->iteration)
		p->world->committed = m->iteration;
	said.u.committed = (struct msg_committed){ m->iteration, p->stage,
						   weights_hash(p->stage, m->iteration) };
	if (p->ready)
		say(p, &said);
	if (p->keeps < 0 || (p->ready && p->keeps == p->stage))
		return;
	said.u.committed.stage = (uint8_t)p->keeps;
	said.u.committed.hash = weights_hash((uint8_t)p->keeps, m->iteration);
	say(p, &said);
}

/* Whoever is not on its way sees to it that it comes back to the data node. */
static void evaluate(struct player *p, const struct msg_evaluate *m)
{
	struct msg said = { .type = MSG_EVALUATED };

	for (uint32_t i = 0; i < m->n_routes; i++) {
		const struct msg_route *r = &m->routes[i];
		bool through = r->nodes[0] == p->node;

		for (uint32_t h = 0; h < r->n_hops && m->iteration >= FROM; h++) {
			enum lie lie = p->world->lies[r->nodes[h]];

			through = through && lie != EVALUATES_NOT && lie != EVALUATES_IN_SECRET;
		}
		said.u.evaluated = (struct msg_evaluated){ m->iteration, r->microbatch, 3 };
		if (p->world->lies[p->node] == ANSWERS_FOR_OTHERS)
			said.u.evaluated.loss = 1;
		if (through || said.u.evaluated.loss < 3)
			say(p, &said);
	}
}

static void hear(void *context, const struct msg *m)
{
	struct player *p = context;

	switch (m->type) {
	case MSG_WELCOME:
		p->node = m->u.welcome.node;
		break;
	case MSG_ASSIGN:
		say_ready(p, &m->u.assign);
		break;
	case MSG_KEEP:
		say_kept(p, &m->u.keep);
		break;
	case MSG_PLAN:
		plan(p, &m->u.plan);
		break;
	case MSG_START:
		start(p, &m->u.start);
		break;
	case MSG_REROUTE:
		reroute(p, &m->u.reroute);
		break;
	case MSG_REDUCE:
		reduce(p, &m->u.reduce);
		break;
	case MSG_COMMIT:
		commit(p, &m->u.commit);
		break;
	case MSG_EVALUATE:
		evaluate(p, &m->u.evaluate);
		break;
	default:
		break;
	}
}

/* ---- the world ---- */

static void watch(void *context, const struct msg *m)
{
	struct world *w = context;

	if (m->type == MSG_SEE_NODE)
		w->states[m->u.see_node.node] = (enum node_state)m->u.see_node.state;
	if (m->type == MSG_SEE_VALIDATION) {
		w->validations++;
		w->validated = m->u.see_validation.loss;
	}
}

static void say_hello(struct player *p, int32_t node)
{
	struct msg m = { .type = MSG_HELLO };

	m.u.hello = (struct msg_hello){ .protocol = MSG_VERSION, .node = node,
					.incarnation = 1 + (uint64_t)node,
					.address = "tcp://127.0.0.1:9", .device = "none",
					.keeps = MSG_NO_STAGE };
	p->keeps = -1;
	say(p, &m);
}

static void world_turn(struct world *w)
{
	for (int i = 0; i < AGENTS; i++) {
		visitor_turn(&w->players[i].v);
		beat(&w->players[i], clock_monotonic_us());
	}
	visitor_turn(&w->console);
}

static int open_with(void **state, const char *eval_every)
{
	const char *options[] = { "--agents", "9", "--stages", "3,3,3", "--skip", "1",
				  "--time-scale", "0", "--eval-every", eval_every, "--iterations",
				  "1000", "--silence-ms", "3000", "--overdue-s", "1", NULL };
	struct world *w = calloc(1, sizeof(*w));

	w->players = calloc(AGENTS, sizeof(*w->players));
	w->door = door_new(options);
	visitor_new(&w->console, w->door, KEYS_CONSOLE, "operator");
	w->console.hear = watch;
	w->console.context = w;
	visitor_attach(&w->console);
	for (int i = 0; i < AGENTS; i++) {
		struct player *p = &w->players[i];
		char name[16];

		snprintf(name, sizeof(name), "agent%d", i);
		visitor_new(&p->v, w->door, KEYS_AGENT, name);
		p->v.hear = hear;
		p->v.context = p;
		p->world = w;
	}
	for (int i = 0; i < AGENTS; i++) { /* once all are on the list */
		visitor_come_in(&w->players[i].v, NULL);
		say_hello(&w->players[i], i);
	}
	*state = w;
	return 0;
}

static int world_open(void **state)
{
	return open_with(state, "0");
}

static int world_open_evaluating(void **state)
{
	return open_with(state, "3");
}

static int world_close(void **state)
{
	struct world *w = *state;
	int status;

	kill(w->door->pid, SIGKILL); /* nobody waits for its last words */
	status = door_free(w->door);

	for (int i = 0; i < AGENTS; i++)
		visitor_free(&w->players[i].v);
	visitor_free(&w->console);
	free(w->players);
	free(w);
	return status;
}

static bool only_liars_are_out(const struct world *w)
{
	for (int i = 0; i < AGENTS; i++)
		if (w->states[i] != (w->lies[i] == HONEST ? NODE_LIVE : NODE_FAILED))
			return false;
	return true;
}

static bool all_live(const struct world *w)
{
	for (int i = 0; i < AGENTS; i++)
		if (w->states[i] != NODE_LIVE)
			return false;
	return true;
}

static bool all_ready(const struct world *w)
{
	for (int i = 0; i < AGENTS; i++)
		if (!w->players[i].ready)
			return false;
	return true;
}

/* The first nodes of those stages lie, but for lie HONEST. Until they are out, all others are in, and
 * five more iterations are committed. The journal then says of them what `why` says. */
struct part {
	enum lie lie;
	uint8_t stage;
	const char *why;
};

static void said_of(const struct world *w, int node, const char *why)
{
	char words[128];

	snprintf(words, sizeof(words), "n%02d S%d %s", node, w->players[node].stage, why);
	if (!strstr(w->console.journal, words))
		fail_msg("no \"%s\" in the journal:\n%s", words, w->console.journal);
}

static void play_two(struct world *w, struct part a, struct part b)
{
	int64_t give_up = clock_monotonic_us() + 40000000;
	uint64_t enough = 0;
	int one = 0, two = 0;

	while (!all_ready(w))
		world_turn(w);
	while (w->players[one].stage != a.stage)
		one++;
	while (w->players[two].stage != b.stage || two == one)
		two++;
	w->lies[one] = a.lie;
	w->lies[two] = b.lie;
	while (!enough || w->console.committed < enough) {
		world_turn(w);
		if (!enough && w->console.committed >= FROM && only_liars_are_out(w))
			enough = w->console.committed + 5;
		if (!door_alive(w->door) || clock_monotonic_us() > give_up)
			fail_msg("iteration %d, the liars' states %d, %d; the journal:\n%s",
				 (int)w->console.committed, w->states[one], w->states[two],
				 w->console.journal);
	}
	assert_true(only_liars_are_out(w));
	said_of(w, one, a.why);
	if (b.lie)
		said_of(w, two, b.why);
}

static void play(struct world *w, enum lie lie, uint8_t stage, const char *why)
{
	play_two(w, (struct part){ lie, stage, why }, (struct part){ HONEST, stage, "" });
}

/* The iteration stands still for want of it; then it is taken out, and catches up. */
static void who_missed_a_commit_catches_up(void **state)
{
	struct world *w = *state;
	int64_t give_up = clock_monotonic_us() + 40000000;
	uint64_t enough = 0;

	w->lies[4] = MISSES_A_COMMIT;
	while (!enough || w->console.committed < enough) {
		world_turn(w);
		if (!enough && all_live(w) && strstr(w->console.journal, "n04 is heard again"))
			enough = w->console.committed + 5;
		if (!door_alive(w->door) || clock_monotonic_us() > give_up)
			fail_msg("iteration %d; the journal:\n%s", (int)w->console.committed,
				 w->console.journal);
	}
	assert_non_null(strstr(w->console.journal, "holds the weights of another iteration"));
	assert_true(w->players[4].committed >= enough - 1);
}

static void who_counts_twice(void **state)
{
	play(*state, COUNTS_TWICE, 1, "counted what it must not");
}

static void who_counts_what_others_do(void **state)
{
	play(*state, COUNTS_OTHERS, 2, "counted what it must not");
}

static void who_does_not_count(void **state)
{
	play(*state, COUNTS_NOT, 1, "left a gradient out");
}

static void a_data_node_that_is_home_early(void **state)
{
	play(*state, IS_HOME_EARLY, 0, "contradicts others about what was done");
}

static void who_hides_work(void **state)
{
	play(*state, HIDES_WORK, 2, "contradicts others about what was done");
}

static void who_tells_another_square(void **state)
{
	play(*state, OTHER_SQUARES, 2, "contradicts others about a sum");
}

static void who_tells_another_slice(void **state)
{
	play(*state, OTHER_SLICE, 0, "contradicts others about a sum");
}

static void who_sends_each_another_sum(void **state)
{
	play(*state, EQUIVOCATES, 2, "contradicts others about a sum");
}

static void who_sends_one_another_sum(void **state)
{
	play(*state, EQUIVOCATES_ONCE, 1, "contradicts others about a sum");
}

static void who_sums_among_others_than_told(void **state)
{
	play(*state, OTHER_LENGTH, 0, "has another sum than it was told to make");
}

static void who_holds_a_sum_up(void **state)
{
	play(*state, HOLDS_A_SUM_UP, 2, "holds a sum up");
}

static void who_holds_a_sum_up_and_blames_another(void **state)
{
	play(*state, HOLDS_AND_BLAMES, 1, "holds a sum up");
}

static void who_accuses_one_after_another(void **state)
{
	play(*state, ACCUSES, 1, "accused one after another");
}

static void who_passes_nothing_on(void **state)
{
	play(*state, PASSES_NOTHING_ON, 1, "passes nothing on");
}

static void who_says_no_sum(void **state)
{
	play(*state, SAYS_NO_SUM, 1, "does not say its sum");
}

static void who_ends_nothing(void **state)
{
	play(*state, ENDS_NOTHING, 1, "does not end a task");
}

static void a_data_node_that_ends_nothing(void **state)
{
	play(*state, ENDS_NOTHING, 0, "does not end a task");
}

static void who_begins_a_task_and_denies_it(void **state)
{
	play(*state, ENDS_IN_SECRET, 2, "does not end a task");
}

static void who_starts_nothing(void **state)
{
	play(*state, STARTS_NOTHING, 2, "does not start a task");
}

static void a_data_node_that_does_nothing(void **state)
{
	play(*state, DOES_NOTHING, 0, "does not start a task");
}

static void who_does_nothing(void **state)
{
	play(*state, DOES_NOTHING, 1, "passes nothing on");
}

static void who_keeps_tensors(void **state)
{
	play(*state, KEEPS_TENSORS, 1, "does not get rid of a tensor");
}

static void who_says_that_it_ends_tasks(void **state)
{
	play(*state, COUNTS_TASKS, 1, "ends tasks that nobody gave it");
}

static void who_says_that_it_has_not_begun(void **state)
{
	play(*state, IS_ELSEWHERE, 1, "does not begin the iteration");
}

static void who_does_not_end_a_validation(void **state)
{
	play(*state, EVALUATES_NOT, 1, "does not end a task");
}

/* Nobody can say who. */
static void a_validation_that_does_not_come(void **state)
{
	struct world *w = *state;
	int64_t give_up = clock_monotonic_us() + 40000000;

	while (!all_ready(w))
		world_turn(w);
	w->lies[0] = EVALUATES_IN_SECRET;
	while (w->console.committed < FROM + 9) {
		world_turn(w);
		if (!door_alive(w->door) || clock_monotonic_us() > give_up)
			fail_msg("iteration %d; the journal:\n%s", (int)w->console.committed,
				 w->console.journal);
	}
	assert_true(all_live(w));
	assert_non_null(strstr(w->console.journal, "no validation of it"));
}

/* The loss is the data nodes' to tell. */
static void who_answers_for_others_is_not_heard(void **state)
{
	struct world *w = *state;
	int64_t give_up = clock_monotonic_us() + 40000000;

	while (!all_ready(w))
		world_turn(w);
	for (int i = 0; i < AGENTS; i++)
		if (w->players[i].stage == 1)
			w->lies[i] = ANSWERS_FOR_OTHERS;
	while (w->validations < 4 && clock_monotonic_us() < give_up) {
		world_turn(w);
		assert_true(w->validations == 0 || w->validated == 3.0f);
	}
	assert_true(w->validations >= 4);
}

/* ---- two at once ---- */

static void two_that_accuse_all(void **state)
{
	play_two(*state, (struct part){ ACCUSES_ALL, 0, "accused one after another" },
		 (struct part){ ACCUSES_ALL, 2, "accused one after another" });
}

static void two_that_tell_other_slices(void **state)
{
	play_two(*state, (struct part){ OTHER_SLICE, 1, "contradicts others about a sum" },
		 (struct part){ EQUIVOCATES, 2, "contradicts others about a sum" });
}

static void two_that_pass_nothing_on(void **state)
{
	play_two(*state, (struct part){ PASSES_NOTHING_ON, 1, "passes nothing on" },
		 (struct part){ PASSES_NOTHING_ON, 2, "passes nothing on" });
}

static void two_that_hold_sums_up(void **state)
{
	play_two(*state, (struct part){ HOLDS_A_SUM_UP, 0, "holds a sum up" },
		 (struct part){ HOLDS_AND_BLAMES, 2, "holds a sum up" });
}

static void two_that_count_what_they_must_not(void **state)
{
	play_two(*state, (struct part){ COUNTS_TWICE, 1, "counted what it must not" },
		 (struct part){ COUNTS_OTHERS, 1, "counted what it must not" });
}

static void two_that_end_nothing(void **state)
{
	play_two(*state, (struct part){ ENDS_NOTHING, 1, "does not end a task" },
		 (struct part){ STARTS_NOTHING, 2, "does not start a task" });
}

static void one_that_ends_nothing_and_one_with_another_sum(void **state)
{
	play_two(*state, (struct part){ ENDS_NOTHING, 0, "does not end a task" },
		 (struct part){ OTHER_SQUARES, 2, "contradicts others about a sum" });
}

static void one_that_hides_work_and_one_that_accuses(void **state)
{
	play_two(*state, (struct part){ HIDES_WORK, 2, "contradicts others about what was done" },
		 (struct part){ ACCUSES, 1, "accused one after another" });
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_open, world_close)
#define EVALUATING(name) cmocka_unit_test_setup_teardown(name, world_open_evaluating, world_close)

/* liar_test [PATTERN]: of the tests, those with such names. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(who_counts_twice),
		TEST(who_counts_what_others_do),
		TEST(who_does_not_count),
		TEST(a_data_node_that_is_home_early),
		TEST(who_hides_work),
		TEST(who_tells_another_square),
		TEST(who_tells_another_slice),
		TEST(who_sends_each_another_sum),
		TEST(who_sends_one_another_sum),
		TEST(who_sums_among_others_than_told),
		TEST(who_accuses_one_after_another),
		TEST(who_passes_nothing_on),
		TEST(who_holds_a_sum_up),
		TEST(who_holds_a_sum_up_and_blames_another),
		TEST(who_missed_a_commit_catches_up),
		TEST(who_says_no_sum),
		TEST(who_ends_nothing),
		TEST(a_data_node_that_ends_nothing),
		TEST(who_begins_a_task_and_denies_it),
		TEST(who_starts_nothing),
		TEST(a_data_node_that_does_nothing),
		TEST(who_does_nothing),
		TEST(who_keeps_tensors),
		TEST(who_says_that_it_ends_tasks),
		TEST(who_says_that_it_has_not_begun),
		EVALUATING(who_does_not_end_a_validation),
		EVALUATING(a_validation_that_does_not_come),
		EVALUATING(who_answers_for_others_is_not_heard),
		TEST(two_that_accuse_all),
		TEST(two_that_tell_other_slices),
		TEST(two_that_pass_nothing_on),
		TEST(two_that_hold_sums_up),
		TEST(two_that_count_what_they_must_not),
		TEST(two_that_end_nothing),
		TEST(one_that_ends_nothing_and_one_with_another_sum),
		TEST(one_that_hides_work_and_one_that_accuses),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
