/* A whole controller and agents that are played: they compute nothing and say what honest ones
 * would say, but for one, which lies about its work. The run goes on, the liar is left out, and in the end
 * nobody else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "controller/tests/visitor.h"

enum { AGENTS = 9, BATCHES = 64, FROM = 4 /* the first iteration with a lie */ };

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
	ACCUSES,
	PASSES_NOTHING_ON,
	HOLDS_A_SUM_UP,
	HOLDS_AND_BLAMES, /* and says that it waits for another */
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
	enum lie lie;
	uint16_t liar;
	uint64_t committed;
	enum node_state states[AGENTS];
};

static bool lies(const struct player *p, enum lie lie)
{
	return p->world->lie == lie && p->node == p->world->liar && p->iteration >= FROM;
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
	struct msg m = { .type = MSG_READY };

	p->stage = a->stage;
	p->assignment = a->assignment;
	p->committed = a->fetch ? p->world->committed : 0;
	p->ready = true;
	p->iteration = 0;
	m.u.ready = (struct msg_ready){ a->assignment, a->stage, p->committed,
					weights_hash(a->stage, p->committed), 1e-5, 2e-5, 1e-5,
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
	m.u.heartbeat = (struct msg_heartbeat){ .beat = ++p->beats, .now_us = now_us,
						.iteration = p->iteration,
						.committed = p->committed, .stage = p->stage,
						.awaits = p->awaits };
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
	e.at_us += kind == WORK_BACKWARD ? 20 : 10; /* as measured */
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

static bool reaches(const struct player *p, const struct way *w, int hop)
{
	const struct world *world = p->world;
	int at = hop_of(w, world->liar);

	if (world->lie == MISSES_A_COMMIT && p->iteration == FROM + 1)
		return at < 0 || hop < at;
	return world->lie != PASSES_NOTHING_ON || p->iteration < FROM || at < 0 || hop <= at;
}

static bool has_gradient(const struct player *p, const struct way *w)
{
	const struct world *world = p->world;
	bool starts = world->lie == IS_HOME_EARLY && p->iteration >= FROM &&
		      w->nodes[0] == world->liar;

	return !starts || p->node == world->liar;
}

static void work_on(struct player *p, const struct way *w)
{
	uint32_t id = w->route.microbatch;
	int hop = hop_of(w, p->node);
	bool counts;

	if (hop < 0 && lies(p, COUNTS_OTHERS))
		did(p, w, WORK_BACKWARD, true);
	if (hop < 0 || !reaches(p, w, hop))
		return;
	did(p, w, WORK_FORWARD, false);
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
		m.u.report = (struct msg_report){ p->iteration,
						  p->n_events - i < 16 ? p->n_events - i : 16,
						  p->events + i };
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

static void start(struct player *p, const struct msg_start *m)
{
	struct msg trouble = { .type = MSG_TROUBLE };

	if (m->iteration != p->committed + 1)
		return;
	p->iteration = m->iteration;
	p->ways = p->plans[m->epoch % 2];
	memset(p->counted, 0, sizeof(p->counted));
	for (uint32_t i = 0; i < p->n_ways; i++)
		work_on(p, &p->ways[i]);
	report(p);
	if (!lies(p, ACCUSES))
		return;
	trouble.u.trouble.accused = (p->node + 1 + (int)(p->iteration % (AGENTS - 1))) % AGENTS;
	say(p, &trouble);
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
	bool all = w->lie == EQUIVOCATES, once = w->lie == EQUIVOCATES_ONCE;
	uint64_t right = 1000 * m->iteration + slice;

	if (m->iteration < FROM)
		return right;
	if (m->nodes[slice] == w->liar && p->node != w->liar &&
	    (all || (once && p->node == m->nodes[m->nodes[0] == w->liar ? 1 : 0])))
		return right + 100000u * (1u + p->node);
	if (lies(p, OTHER_SLICE) && m->nodes[slice] != p->node)
		return right + 1;
	return right;
}

static bool sums_come(struct player *p, const struct msg_reduce *m)
{
	const struct world *w = p->world;
	bool holds = w->lie == HOLDS_A_SUM_UP || w->lie == HOLDS_AND_BLAMES, with = false;

	for (uint32_t i = 0; i < m->n_nodes; i++)
		with = with || m->nodes[i] == w->liar;
	p->awaits = 0;
	if (!holds || !with || m->iteration < FROM)
		return true;
	if (p->node != w->liar)
		p->awaits = w->liar + 1;
	else if (w->lie == HOLDS_AND_BLAMES)
		p->awaits = m->nodes[m->nodes[0] == w->liar] + 1;
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

	if (p->world->lie == MISSES_A_COMMIT && p->node == p->world->liar && m->iteration == FROM)
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

static int world_open(void **state)
{
	const char *options[] = { "--agents", "9", "--stages", "3,3,3", "--skip", "1",
				  "--time-scale", "0", "--eval-every", "0", "--iterations", "1000",
				  "--silence-ms", "3000", NULL };
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
		visitor_come_in(&p->v, NULL);
		say_hello(p, i);
	}
	*state = w;
	return 0;
}

static int world_close(void **state)
{
	struct world *w = *state;
	int status = door_free(w->door);

	for (int i = 0; i < AGENTS; i++)
		visitor_free(&w->players[i].v);
	visitor_free(&w->console);
	free(w->players);
	free(w);
	return status;
}

static bool only_the_liar_is_out(const struct world *w)
{
	for (int i = 0; i < AGENTS; i++)
		if ((w->states[i] == NODE_LIVE) == (i == w->liar))
			return false;
	return w->states[w->liar] == NODE_FAILED;
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

/* A node of the stage lies. Until it is out, all others are in, and five more iterations are
 * committed. The journal then says of it what `why` says. */
static void play(struct world *w, enum lie lie, uint8_t stage, const char *why)
{
	int64_t give_up = clock_monotonic_us() + 40000000;
	uint64_t enough = 0;
	char words[128];

	while (!all_ready(w))
		world_turn(w);
	w->lie = lie;
	while (w->players[w->liar].stage != stage)
		w->liar++;
	snprintf(words, sizeof(words), "n%02u S%u %s", w->liar, stage, why);
	while (!enough || w->console.committed < enough) {
		world_turn(w);
		if (!enough && w->console.committed >= FROM && only_the_liar_is_out(w))
			enough = w->console.committed + 5;
		if (!door_alive(w->door) || clock_monotonic_us() > give_up)
			fail_msg("iteration %d, the liar's state %d; the journal:\n%s",
				 (int)w->console.committed, w->states[w->liar], w->console.journal);
	}
	assert_true(only_the_liar_is_out(w));
	if (!strstr(w->console.journal, words))
		fail_msg("no \"%s\" in the journal:\n%s", words, w->console.journal);
}

/* The iteration stands still for want of it; then it is taken out, and catches up. */
static void who_missed_a_commit_catches_up(void **state)
{
	struct world *w = *state;
	int64_t give_up = clock_monotonic_us() + 40000000;
	uint64_t enough = 0;

	w->lie = MISSES_A_COMMIT;
	w->liar = 4;
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_open, world_close)

int main(void)
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
