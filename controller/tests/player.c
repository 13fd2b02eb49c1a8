/* player.c - for tests: simulated agents that answer a whole controller, and their world.
 *
 * A player answers each message as an agent would, but does not compute. A player's fault changes
 * one kind of answer. */
#include "base/tests/test.h"
#include "controller/tests/player.h"

#include <signal.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Task times that players report, long enough that plans use every node. */
enum { DATA_US = 2000, STAGE_US = 6000 };

static bool has_fault(const struct player *p, enum player_fault fault)
{
	return p->world->faults[p->node] == fault && p->iteration >= FAULTS_FROM;
}

static bool evaluates(const struct player *p, enum player_fault fault)
{
	return p->world->faults[p->node] == fault && p->committed >= FAULTS_FROM;
}

/* ---- messages ---- */

static void send_to_controller(struct player *p, const struct msg *m)
{
	visitor_send(&p->v, m, POST_RELIABLE);
}

static uint64_t weights_hash(uint8_t stage, uint64_t iteration)
{
	return 1 + stage + 1000 * iteration;
}

static double task_s(uint8_t stage)
{
	return 1e-6 * (stage == 0 ? DATA_US : STAGE_US);
}

static void beat(struct player *p, int64_t now_us)
{
	struct msg m = { .type = MSG_HEARTBEAT };

	if (now_us < p->beat_us)
		return;
	p->beat_us = now_us + 100000;
	m.u.heartbeat = (struct msg_heartbeat){
		.beat = ++p->beats,
		.now_us = now_us,
		.iteration = p->iteration,
		.committed = p->committed,
		.stage = p->ready ? p->stage : MSG_NO_STAGE,
		.awaits = p->awaits,
		.running = has_fault(p, ENDS_NOTHING) || evaluates(p, EVALUATES_NOT),
		.queued = has_fault(p, STARTS_NOTHING) ? 7 : 0,
		.in_flight = has_fault(p, KEEPS_TENSORS),
	};
	send_to_controller(p, &m);
}

static void say_ready(struct player *p, const struct msg_assign *a)
{
	double each_s = task_s(a->stage);
	struct msg m = { .type = MSG_READY };

	p->stage = a->stage;
	p->assignment = a->assignment;
	p->committed = a->fetch ? p->world->committed : 0;
	p->ready = true;
	p->iteration = 0;
	if (p->world->faults[p->node] == BEATS_FIRST) {
		p->beat_us = 0;
		beat(p, clock_monotonic_us());
	}
	m.u.ready = (struct msg_ready){ a->assignment, a->stage,
					p->committed,  weights_hash(a->stage, p->committed),
					each_s,        each_s,
					each_s,        a->stage == 0 ? 7 : 0 };
	send_to_controller(p, &m);
}

static void report_copy(struct player *p, const struct msg_keep *k)
{
	const struct player *source = &p->world->players[k->source];
	struct msg m = { .type = MSG_KEPT };

	p->keeps = k->stage == MSG_NO_STAGE ? -1 : k->stage;
	if (p->keeps < 0 || p->world->slow_copies || !source->ready || source->asleep)
		return; /* the player does not complete the fetch */
	m.u.kept = (struct msg_kept){ .assignment = k->assignment,
				      .stage = k->stage,
				      .iteration = p->world->committed,
				      .hash = weights_hash(k->stage, p->world->committed) +
					      p->world->forged };
	send_to_controller(p, &m);
}

/* ---- an iteration ---- */

static void happens(struct player *p, const struct msg_task_event *e)
{
	assert_true(p->n_events < sizeof(p->events) / sizeof(p->events[0]));
	p->events[p->n_events++] = *e;
}

static bool data_is_bad(const struct player *p)
{
	return has_fault(p, DATA_IS_BAD) && p->world->data + 1 >= FAULTS_FROM &&
	       p->world->data + 1 < FAULTS_FROM + BAD_DATA;
}

static void did(struct player *p, const struct route *w, enum task_kind kind, bool counts)
{
	struct msg_task_event e = { .kind = (uint8_t)kind,
				    .node = p->node,
				    .blocker_node = p->node,
				    .microbatch = w->microbatch,
				    .attempt = w->attempt,
				    .blocker = UINT32_MAX,
				    .at_us = clock_monotonic_us() };

	e.arrived_us = e.at_us;
	e.type = WORK_STARTS;
	happens(p, &e);
	e.type = WORK_ENDS;
	e.at_us += p->stage == 0 ? DATA_US : STAGE_US;
	e.counted = counts;
	if (kind == TASK_LOSS)
		e.loss = has_fault(p, LOSS_IS_NAN) || data_is_bad(p) ? NAN : 3.0f;
	happens(p, &e);
}

static int hop_of(const struct route *w, uint16_t node)
{
	for (uint32_t h = 0; h < w->n_hops; h++)
		if (w->nodes[h] == node)
			return (int)h;
	return -1;
}

static bool passes_on(const struct player *p, uint16_t node)
{
	switch (p->world->faults[node]) {
	case MISSES_A_COMMIT:
		return p->iteration != FAULTS_FROM + 1;
	case ENDS_NOTHING:
	case STARTS_NOTHING:
	case DOES_NOTHING:
	case KEEPS_TENSORS:
		return p->iteration < FAULTS_FROM;
	default:
		return true;
	}
}

/* Returns true if the microbatch's tensors reach this hop. */
static bool reaches(const struct player *p, const struct route *w, int hop)
{
	for (int h = 0; h < hop && h < (int)w->n_hops; h++)
		if (!passes_on(p, w->nodes[h]))
			return false;
	return true;
}

static void work_on(struct player *p, const struct route *w)
{
	bool missed =
		p->world->faults[p->node] == MISSES_A_COMMIT && p->iteration == FAULTS_FROM + 1;
	uint32_t id = w->microbatch;
	int hop = hop_of(w, p->node);
	bool counts;

	if (hop < 0 && has_fault(p, COUNTS_OTHERS))
		did(p, w, TASK_BACKWARD, true);
	if (hop < 0 || missed || !reaches(p, w, hop) || has_fault(p, STARTS_NOTHING) ||
	    has_fault(p, DOES_NOTHING))
		return;
	did(p, w, TASK_FORWARD, false);
	if (has_fault(p, ENDS_NOTHING))
		p->n_events--;
	/* a hop withholds its output, so no gradient returns along the route */
	if (!reaches(p, w, 1 << 20))
		return;
	counts = (!p->counted[id] || has_fault(p, COUNTS_TWICE)) && !has_fault(p, COUNTS_NOT);
	if (hop == 0)
		did(p, w, TASK_LOSS, counts);
	did(p, w, TASK_BACKWARD, counts);
	if (has_fault(p, COUNTS_TWICE))
		did(p, w, TASK_BACKWARD, counts);
	p->counted[id] = true;
}

static void report(struct player *p)
{
	struct msg m = { .type = MSG_REPORT };

	/* reports 16 events at a time, because a visitor's messages are short */
	for (uint32_t i = 0; i < p->n_events; i += 16) {
		m.u.report = (struct msg_report){ .iteration = p->iteration,
						  .n_events = p->n_events - i < 16 ? p->n_events - i
										   : 16,
						  .events = p->events + i };
		send_to_controller(p, &m);
	}
	p->n_events = 0;
}

/* Checks that the plan ranks each task of the node once, unless microbatches were rerouted after
 * the plan was made. */
static void check_ranks(const struct player *p, const struct msg_plan *m)
{
	uint32_t expected = 0;
	bool ranked[BATCHES][3] = { { false } };

	for (uint32_t i = 0; i < m->n_routes; i++) {
		const struct route *r = &m->routes[i];

		if (r->attempt != m->routes[0].attempt)
			return;
		for (uint32_t h = 0; h < r->n_hops; h++)
			if (r->nodes[h] == p->node)
				expected += h == 0 ? 3 : 2;
	}
	assert_int_equal(m->n_ranks, expected);
	for (uint32_t i = 0; i < m->n_ranks; i++) {
		const struct msg_rank *rank = &m->ranks[i];

		assert_true(rank->microbatch < m->n_routes && rank->kind <= TASK_BACKWARD);
		assert_false(ranked[rank->microbatch][rank->kind]);
		ranked[rank->microbatch][rank->kind] = true;
	}
}

/* Checks that the player was ordered, before the plan arrived, to connect to all nodes to which it
 * sends in this plan. */
static void check_connected(const struct player *p, const struct msg_plan *m)
{
	struct player_connect *c = &p->world->connects[p->node];

	for (uint32_t i = 0; i < m->n_routes; i++) {
		const struct route *r = &m->routes[i];

		for (uint32_t k = 0; k < r->n_hops; k++)
			if (r->nodes[k] == p->node &&
			    !(c->to[r->nodes[(k + 1) % r->n_hops]] &&
			      c->to[r->nodes[(k + r->n_hops - 1) % r->n_hops]]))
				c->came_too_late = true;
	}
}

static void plan(struct player *p, const struct msg_plan *m)
{
	check_ranks(p, m);
	check_connected(p, m);
	assert_true(m->n_routes <= BATCHES);
	p->n_routes = m->n_routes;
	for (uint32_t i = 0; i < m->n_routes; i++)
		p->plans[m->epoch % 2][m->routes[i].microbatch] = m->routes[i];
}

static void report_node(struct player *p, int node, uint64_t epoch)
{
	struct msg m = { .type = MSG_TROUBLE, .u.trouble.epoch = epoch };

	m.u.trouble.refused_node = node;
	send_to_controller(p, &m);
}

/* Returns the hash that player p computes for the sum of a slice. */
static uint64_t slice_hash(const struct player *p, const struct msg_reduce *m, uint32_t slice)
{
	bool other = m->iteration >= FAULTS_FROM && has_fault(p, OTHER_SLICE) &&
		     m->nodes[slice] != p->node;

	return 1000 * m->iteration + slice + other;
}

/* Returns the node that delays the sum of the player's stage; PLAYERS: no node does, as far as the
 * player knows. */
static uint16_t holder(const struct player *p, const struct msg_reduce *m)
{
	for (uint32_t i = 0; m->iteration >= FAULTS_FROM && i < m->n_nodes; i++)
		if (p->world->faults[m->nodes[i]] == HOLDS_A_SUM_UP)
			return m->nodes[i];
	return PLAYERS;
}

static bool sums_come(struct player *p, const struct msg_reduce *m)
{
	uint16_t by = holder(p, m);

	p->awaits = 0;
	if (by == PLAYERS)
		return !has_fault(p, REPORTS_NO_SUM);
	if (p->node != by)
		p->awaits = by + 1;
	return false;
}

static void reduce(struct player *p, const struct msg_reduce *m)
{
	uint64_t slices[PLAYERS + 1] = { 0 };
	struct msg said = { .type = MSG_REDUCED };
	uint32_t n = m->n_nodes;

	if (!sums_come(p, m))
		return;
	for (uint32_t j = 0; j < n; j++)
		slices[j] = slice_hash(p, m, j);
	said.u.reduced = (struct msg_reduced){ .iteration = m->iteration,
					       .attempt = m->attempt,
					       .stage = m->stage,
					       .sum_squares = 2 + m->stage,
					       .n_slices = has_fault(p, OTHER_LENGTH) ? n + 1 : n,
					       .slices = slices };
	if (has_fault(p, OTHER_SQUARES))
		said.u.reduced.sum_squares++;
	send_to_controller(p, &said);
}

/* Returns true if the player has counted all its microbatches, even if a fault makes it report
 * something else. */
static bool has_counted_all(const struct player *p)
{
	for (uint32_t i = 0; i < p->n_routes; i++)
		if (hop_of(&p->routes[i], p->node) >= 0 && !p->counted[p->routes[i].microbatch])
			return false;
	return true;
}

static void reduce_when_counted(struct player *p)
{
	struct msg_reduce m = p->ordered.sum;

	if (m.n_nodes == 0 || m.iteration != p->iteration || !has_counted_all(p))
		return;
	p->ordered.sum.n_nodes = 0;
	m.nodes = p->ordered.nodes;
	reduce(p, &m);
}

static void take_order(struct player *p, const struct msg_reduce *m)
{
	bool adds = false; /* a standby copy receives the sum but adds nothing to it */

	for (uint32_t i = 0; i < m->n_nodes; i++)
		adds = adds || m->nodes[i] == p->node;
	if (!adds || !m->when_counted) {
		p->ordered.sum.n_nodes = adds ? 0 : p->ordered.sum.n_nodes;
		reduce(p, m);
		return;
	}
	assert_true(m->n_nodes <= PLAYERS);
	p->ordered.sum = *m;
	memcpy(p->ordered.nodes, m->nodes, m->n_nodes * sizeof(m->nodes[0]));
	reduce_when_counted(p);
}

static void work(struct player *p)
{
	for (uint32_t i = 0; i < p->n_routes; i++)
		work_on(p, &p->routes[i]);
	report(p);
	reduce_when_counted(p);
}

static void take_connect(struct player *p, const struct msg_connect *m)
{
	struct msg said = { .type = MSG_CONNECTED, .u.connected.id = m->id };
	struct player_connect *c = &p->world->connects[p->node];

	c->id = m->id;
	memset(c->to, 0, sizeof(c->to));
	for (uint32_t i = 0; i < m->n_nodes; i++) {
		assert_int_not_equal(m->nodes[i].node, p->node);
		c->to[m->nodes[i].node] = true;
	}
	if (!p->world->never_connected)
		send_to_controller(p, &said);
}

static void start(struct player *p, const struct msg_start *m)
{
	if (m->iteration != p->committed + 1)
		return;
	p->iteration = m->iteration;
	p->wire = m->wire;
	p->world->data = m->position / m->per_shard;
	memcpy(p->routes, p->plans[m->epoch % 2], sizeof(p->routes));
	p->ordered.sum.n_nodes = 0;
	memset(p->counted, 0, sizeof(p->counted));
	if (p->world->waits != m->iteration)
		work(p);
	for (int i = 0; i < PLAYERS; i++)
		if (i != p->node && p->knows[i].key &&
		    has_fault(&p->world->players[i], SENDS_ABSURD))
			report_node(p, i, m->epoch);
}

static void reroute(struct player *p, const struct msg_reroute *m)
{
	if (m->iteration != p->iteration)
		return;
	for (uint32_t i = 0; i < m->n_routes; i++) {
		p->routes[m->routes[i].microbatch] = m->routes[i];
		if (p->world->waits != m->iteration)
			work_on(p, &p->routes[m->routes[i].microbatch]);
	}
	report(p);
}

static void commit(struct player *p, const struct msg_commit *m)
{
	struct msg said = { .type = MSG_COMMITTED };

	if (p->world->faults[p->node] == MISSES_A_COMMIT && m->iteration == FAULTS_FROM)
		return;
	p->committed = m->iteration;
	if (p->world->committed < m->iteration)
		p->world->committed = m->iteration;
	said.u.committed = (struct msg_committed){ m->iteration, p->stage,
						   weights_hash(p->stage, m->iteration), 0,
						   { { 0 } } };
	if (has_fault(p, OTHER_WEIGHTS) ||
	    (has_fault(p, A_FLIPPED_BIT) && m->iteration == FAULTS_FROM))
		said.u.committed.hash++;
	if (p->ready)
		send_to_controller(p, &said);
	if (p->keeps < 0 || (p->ready && p->keeps == p->stage))
		return;
	said.u.committed.stage = (uint8_t)p->keeps;
	said.u.committed.hash = weights_hash((uint8_t)p->keeps, m->iteration);
	send_to_controller(p, &said);
}

/* Makes the data node answer, unless a hop on the route withholds its output. */
static void evaluate(struct player *p, const struct msg_evaluate *m)
{
	struct msg said = { .type = MSG_EVALUATED };

	for (uint32_t i = 0; i < m->n_routes; i++) {
		const struct route *r = &m->routes[i];
		bool through = r->nodes[0] == p->node;

		for (uint32_t h = 0; h < r->n_hops && m->iteration >= FAULTS_FROM; h++) {
			enum player_fault fault = p->world->faults[r->nodes[h]];

			through = through && fault != EVALUATES_NOT && fault != EVALUATES_IN_SECRET;
		}
		said.u.evaluated = (struct msg_evaluated){ m->iteration, r->microbatch, 3 };
		if (p->world->faults[p->node] == ANSWERS_FOR_OTHERS)
			said.u.evaluated.loss = 1;
		if (through || said.u.evaluated.loss < 3)
			send_to_controller(p, &said);
	}
}

/* ---- checkpoints and copies ---- */

static void save(struct player *p, const struct msg_save *m)
{
	struct msg said = { .type = MSG_SAVED };

	if (p->world->faults[p->node] == SAVES_NOT)
		return;
	said.u.saved = (struct msg_saved){ .iteration = m->iteration,
					   .stage = p->stage,
					   .bytes = 100,
					   .hash = weights_hash(p->stage, m->iteration) };
	send_to_controller(p, &said);
}

static void restore(struct player *p, const struct msg_restore *m)
{
	struct msg said = { .type = MSG_READY };
	enum player_fault fault = p->world->faults[p->node];

	p->iteration = 0;
	p->owed = *m;
	p->owes = fault == RESTORES_NOT;
	/* the player keeps its weights, because the restore fails */
	if (fault == (m->kind == RESTORE_FILE ? CANNOT_READ : CANNOT_MAKE)) {
		said.type = MSG_UNREADY;
		said.u.unready = (struct msg_unready){ .assignment = m->assignment };
		snprintf(said.u.unready.text, sizeof(said.u.unready.text), "it is not there");
		send_to_controller(p, &said);
		return;
	}
	p->ready = false;
	p->stage = m->stage;
	if (p->owes)
		return;
	p->ready = true;
	p->committed = p->world->committed = m->iteration;
	said.u.ready = (struct msg_ready){ .assignment = m->assignment,
					   .stage = m->stage,
					   .iteration = m->iteration,
					   .hash = weights_hash(m->stage, m->iteration),
					   .corpus_hash = m->stage == 0 ? 7 : 0 };
	said.u.ready.forward_s = said.u.ready.backward_s = said.u.ready.loss_s = task_s(m->stage);
	send_to_controller(p, &said);
}

static void player_knows(struct player *p, const struct msg_peer *peer)
{
	static const uint8_t none[sizeof(peer->key)];

	p->announced[peer->node]++;
	p->knows[peer->node].absence = peer->absence;
	p->knows[peer->node].key = memcmp(peer->key, none, sizeof(none)) != 0;
}

/* Reports measurements as if all nodes were next to each other. */
static void measure(struct player *p, const struct msg_measure *m)
{
	struct msg said = { .type = MSG_MEASURED };

	said.u.measured = (struct msg_measured){ m->id, m->to, 1, 0.0001f, 0.00001f, 1e9f, "" };
	if (p->node == 0 && m->to < PLAYERS && p->world->no_link >> m->to & 1)
		said.u.measured = (struct msg_measured){ m->id, m->to, 0, -1, 0, 0, "closed" };
	send_to_controller(p, &said);
}

static void hear(void *context, const struct msg *m)
{
	struct player *p = context;

	switch (m->type) {
	case MSG_WELCOME:
		p->node = m->u.welcome.node;
		p->run = m->u.welcome.run;
		p->welcomes++;
		for (uint32_t i = 0; i < PLAYERS && i < m->u.welcome.n_delays; i++)
			p->emulates.delay_s[i] = m->u.welcome.delay_s[i];
		for (uint32_t i = 0; i < PLAYERS && i < m->u.welcome.n_syncs; i++)
			p->emulates.sum_s[i] = m->u.welcome.sync_s[i];
		break;
	case MSG_PEERS:
		for (uint32_t i = 0; i < m->u.peers.n_peers; i++)
			player_knows(p, &m->u.peers.peers[i]);
		break;
	case MSG_SAVE:
		save(p, &m->u.save);
		break;
	case MSG_RESTORE:
		restore(p, &m->u.restore);
		break;
	case MSG_ASSIGN:
		p->owes = false;
		say_ready(p, &m->u.assign);
		break;
	case MSG_MEASURE:
		measure(p, &m->u.measure);
		break;
	case MSG_CONNECT:
		take_connect(p, &m->u.connect);
		break;
	case MSG_KEEP:
		report_copy(p, &m->u.keep);
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
		take_order(p, &m->u.reduce);
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

	if (m->type == MSG_SEE_NODE) {
		w->states[m->u.see_node.node] = (enum node_state)m->u.see_node.state;
		w->lost_s[m->u.see_node.node] = m->u.see_node.lost_s;
	}
	if (m->type == MSG_SEE_STATUS)
		w->phase = (enum run_phase)m->u.see_status.phase;
	if (m->type == MSG_SEE_PLAN && !m->u.see_plan.candidate) {
		w->planned = m->u.see_plan.epoch;
		w->planned_s = m->u.see_plan.iteration_s;
	}
	if (m->type == MSG_SEE_RUN)
		w->emulated = m->u.see_run.emulated;
	if (m->type == MSG_SEE_STATUS && m->u.see_status.steps) {
		w->steps_back += m->u.see_status.step < w->step;
		w->steps = m->u.see_status.steps;
		w->step = m->u.see_status.step;
	}
	for (uint32_t i = 0; m->type == MSG_SEE_LINKS && i < m->u.see_links.n_links; i++) {
		const struct msg_link *l = &m->u.see_links.links[i];

		w->links[l->from][l->to] = *l;
		w->link_messages++;
	}
	if (m->type == MSG_SEE_VALIDATION) {
		w->validations++;
		w->validated = m->u.see_validation.loss;
	}
}

static void say_hello(struct player *p)
{
	struct msg m = { .type = MSG_HELLO };
	struct msg_hello *h = &m.u.hello;

	*h = (struct msg_hello){ .protocol = MSG_VERSION,
				 .node = p->node,
				 .incarnation = 1u + p->node + 100 * p->processes,
				 .address = "tcp://127.0.0.1:9",
				 .device = "none",
				 .saves = 1,
				 .keeps = p->keeps < 0 ? MSG_NO_STAGE : (uint8_t)p->keeps,
				 .kept = p->committed };
	if (p->ready) {
		h->run = p->run;
		h->stage = p->stage;
		h->committed = p->committed;
		h->hash = weights_hash(p->stage, p->committed);
	}
	send_to_controller(p, &m);
}

void player_replace(struct player *p)
{
	p->processes++;
	p->ready = p->owes = false;
	p->keeps = -1;
	p->committed = p->iteration = 0;
	p->world->connects[p->node] = (struct player_connect){ .id = 0 };
	say_hello(p);
}

void player_reports_delays(struct player *p, float times)
{
	struct msg_link links[PLAYERS] = { { .from = 0 } };
	struct msg m = { .type = MSG_LINKS, .u.links = { 0, links, p->wire, 0, 0 } };

	for (uint16_t to = 0; to < PLAYERS; to++)
		if (to != p->node)
			links[m.u.links.n_links++] =
				(struct msg_link){ .from = p->node,
						   .to = to,
						   .measured_delay_s =
							   times *
							   p->emulates.delay_s[to] };
	send_to_controller(p, &m);
}

static void player_turn(struct player *p)
{
	if (p->asleep)
		return;
	visitor_turn(&p->v);
	if (p->restarts != p->v.restarts) {
		p->restarts = p->v.restarts;
		say_hello(p);
	}
	if (p->owes && p->world->faults[p->node] != RESTORES_NOT)
		restore(p, &p->owed);
	beat(p, clock_monotonic_us());
}

void world_turn(struct world *w)
{
	for (int i = 0; i < PLAYERS; i++)
		player_turn(&w->players[i]);
	visitor_turn(&w->console);
	if (w->restarts != w->console.restarts) {
		w->restarts = w->console.restarts;
		visitor_attach(&w->console);
	}
}

void world_work(struct world *w)
{
	w->waits = 0;
	for (int i = 0; i < PLAYERS; i++)
		if (!w->players[i].asleep)
			work(&w->players[i]);
}

static struct door *door_with(const char *const *more)
{
	const char *options[32] = { "--agents",     "9",       "--stages",     "3,3,3",
				    "--skip",       "1",       "--time-scale", "0",
				    "--iterations", "1000000", "--silence-ms", "3000",
				    "--overdue-s",  "1", "--budget", "0.05", "--ahead", "0.02" };
	size_t n = 0;

	while (options[n])
		n++;
	while (*more)
		options[n++] = *more++;
	return door_new(options);
}

struct world *world_new(const char *const *options)
{
	struct world *w = calloc(1, sizeof(*w));

	w->players = calloc(PLAYERS, sizeof(*w->players));
	w->door = door_with(options);
	visitor_new(&w->console, w->door, KEYS_CONSOLE, "operator");
	w->console.hear = watch;
	w->console.context = w;
	visitor_attach(&w->console);
	for (int i = 0; i < PLAYERS; i++) {
		struct player *p = &w->players[i];
		char name[16];

		snprintf(name, sizeof(name), "agent%d", i);
		visitor_new(&p->v, w->door, KEYS_AGENT, name);
		p->v.hear = hear;
		p->v.context = p;
		p->world = w;
		p->node = (uint16_t)i;
		p->keeps = -1;
	}
	for (int i = 0; i < PLAYERS; i++) { /* players join when all their keys are on the list */
		visitor_come_in(&w->players[i].v, NULL);
		say_hello(&w->players[i]);
	}
	return w;
}

int world_free(struct world *w)
{
	int status;

	kill(w->door->pid, SIGKILL); /* no player needs the controller's last messages */
	status = door_free(w->door);
	for (int i = 0; i < PLAYERS; i++)
		visitor_free(&w->players[i].v);
	visitor_free(&w->console);
	free(w->players);
	free(w);
	return status;
}

static void fail_with_states(const struct world *w, const char *what)
{
	char states[8 * PLAYERS] = "";

	for (int i = 0; i < PLAYERS; i++)
		snprintf(states + strlen(states), sizeof(states) - strlen(states), " %d:%d", i,
			 w->states[i]);
	/* The journal is printed here because it may be too long for an error message */
	fprintf(stderr, "the journal:\n%s\n", w->console.journal);
	fail_msg("%s: never, up to iteration %d; the nodes' states%s", what,
		 (int)w->console.committed, states);
}

void world_turn_before(struct world *w, int64_t give_up_us, const char *what)
{
	world_turn(w);
	if (!door_alive(w->door) || clock_monotonic_us() > give_up_us)
		fail_with_states(w, what);
}

bool world_all_live(const struct world *w)
{
	for (int i = 0; i < PLAYERS; i++)
		if (w->states[i] != NODE_LIVE)
			return false;
	return true;
}

/* Returns true if all nodes are ready, and divided evenly over three stages. While the controller
 * measures how fast nodes compute, all nodes have one temporary stage, so the answer is false. */
bool world_all_ready(const struct world *w)
{
	int of_stage[PLAYERS] = { 0 };

	for (int i = 0; i < PLAYERS; i++)
		if (!w->players[i].ready || ++of_stage[w->players[i].stage] > PLAYERS / 3)
			return false;
	return true;
}
