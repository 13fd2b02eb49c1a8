/* failure_detector_test.c - which nodes the controller takes for dead. The test simulates hours of
 * heartbeats over connections that lose and delay packets as TCP does, from overloaded machines and
 * from machines that vanish. The controller must not drop living nodes, and must find dead nodes in
 * time. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "controller/controller.h"
#include "controller/joining/agents.h"
#include "controller/loop.h"
#include "controller/members/members.h"
#include "controller/members/failure_detector.h"
#include "controller/operator/consoles.h"
#include "controller/tests/bare.h"

enum {
	NODES = 6,
	SECOND = 1000000,
	LOOK_US = 20000,
	PING_US = 500000,
	CONNECTIONS = 4,
	LIMIT_US = 450000
};

/* Returns the longest time in which a death must be found: half a second and four round trips. */
static int64_t in_time(int64_t one_way_us)
{
	return SECOND / 2 + 8 * one_way_us;
}

/* ---- connections ---- */

/* A path through the network, on which lost packets are sent again. */
struct connection {
	int64_t one_way_us;
	double loss, jitter;
	uint32_t connections;
};

/* A heartbeat: the times at which the agent sends it and at which it arrives, on the controller's
 * clock. */
struct beat {
	int64_t sent_us, arrives_us;
	uint64_t number;
};

struct trace {
	struct beat *beats; /* array of n, in the order of arrival */
	uint32_t n, next;
	struct connection via;
	/* array of n_pings: times at which the controller's pings arrive at the agent */
	int64_t *pings;
	uint32_t n_pings;
};

static int64_t pass(const struct connection *w, struct rng *rng)
{
	return (int64_t)((double)w->one_way_us * (1 + w->jitter * (2 * rng_uniform(rng) - 1)));
}

/* Returns the time at which a packet arrives if it is sent at time `at`, on a connection that
 * sends a packet every `every_us`. A lost packet is sent again after a later packet was
 * acknowledged (RFC 8985), or when its timer expires. The timer doubles each time. */
static int64_t arrival(const struct connection *w, int64_t at, int64_t every_us, struct rng *rng)
{
	int64_t round = 2 * w->one_way_us, first = at, timer = 2 * round + 200000, later;

	while (rng_uniform(rng) < w->loss) {
		later = first + ((at - first) / every_us + 1) * every_us;
		while (rng_uniform(rng) < w->loss)
			later += every_us;
		later += round + round / 4;
		if (at + timer < later) {
			at += timer;
			timer = 2 * (timer > round + 200000 ? round + 200000 : timer);
		} else {
			at = later;
		}
	}
	return at + pass(w, rng);
}

static int by_arrival(const void *a, const void *b)
{
	const struct beat *x = a, *y = b;

	return (x->arrives_us > y->arrives_us) - (x->arrives_us < y->arrives_us);
}

/* Makes the n heartbeats of an agent. late_us: time by which each heartbeat is sent late; NULL:
 * no heartbeat is late. A late heartbeat delays the heartbeats after it. */
static void trace_init(struct trace *t, const struct connection *w, uint32_t n,
		       const int64_t *late_us, uint64_t seed)
{
	int64_t last[16] = { 0 }, sent_us = 0;
	struct rng rng;

	rng_init(&rng, seed);
	*t = (struct trace){ .via = *w, .n = n, .n_pings = n / 5 + 1 };
	t->beats = calloc(n, sizeof(*t->beats));
	t->pings = calloc(t->n_pings, sizeof(*t->pings));
	assert_true(t->beats && t->pings && w->connections <= 16);
	for (uint32_t i = 0; i < n; i++) {
		int64_t *before = &last[i % w->connections];

		sent_us += TIMEOUT_BEAT_US + (late_us ? late_us[i] : 0);
		t->beats[i] = (struct beat){
			sent_us, arrival(w, sent_us, TIMEOUT_BEAT_US * w->connections, &rng), i + 1
		};
		if (t->beats[i].arrives_us < *before) /* packets of a connection arrive in order */
			t->beats[i].arrives_us = *before;
		*before = t->beats[i].arrives_us;
	}
	qsort(t->beats, n, sizeof(*t->beats), by_arrival);
	for (uint32_t i = 0; i < t->n_pings; i++)
		t->pings[i] = (int64_t)i * PING_US + pass(w, &rng);
}

static void trace_fini(struct trace *t)
{
	free(t->beats);
	free(t->pings);
}

/* ---- the controller ---- */

struct world {
	struct controller *c;
	struct trace traces[NODES];
	/* Time at which the node's machine vanishes; it sends nothing afterwards */
	int64_t vanishes_us[NODES];
	int64_t dead_us[NODES];     /* time at which the node was taken for dead; -1: never */
};

static struct controller *made(void)
{
	struct controller *c = bare_controller(cluster_alloc(NODES, 1, false), 1);

	c->run.phase = PHASE_PAUSED;
	c->run.options.cluster.time_scale = 0;
	c->run.options.limits.silence_us = LIMIT_US;
	c->run.cluster->stages[0] = NODES;
	for (uint16_t i = 0; i < NODES; i++) {
		struct member *m = &c->members.list[i];

		m->compute.machine = i;
		snprintf(m->hello.address, sizeof(m->hello.address), "tcp://10.0.0.%u:7701", i);
		snprintf(m->hello.host, sizeof(m->hello.host), "alike");
	}
	return c;
}

static struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->c = made();
	for (int i = 0; i < NODES; i++)
		w->vanishes_us[i] = INT64_MAX;
	return w;
}

/* Lets all nodes send HELLO. */
static void world_greet(struct world *w)
{
	for (int i = 0; i < NODES; i++) {
		w->dead_us[i] = -1;
		failure_detector_begin(&w->c->members, &w->c->members.list[i]);
	}
}

static void world_free(struct world *w)
{
	for (int i = 0; i < NODES; i++)
		trace_fini(&w->traces[i]);
	bare_free(w->c);
	free(w);
}

static void deliver(struct world *w, uint16_t node, const struct beat *beat)
{
	const struct trace *t = &w->traces[node];
	int64_t ping = beat->sent_us / PING_US;
	struct msg_heartbeat h = { .beat = beat->number,
				   .now_us = beat->sent_us + node * (int64_t)SECOND,
				   .committed = 99 };

	while (ping >= 0 && (ping >= t->n_pings || t->pings[ping] > beat->sent_us))
		ping--;
	if (ping > 0) {
		h.echo_us = ping * PING_US;
		h.echo_age_us = beat->sent_us - t->pings[ping];
	}
	w->c->run.now_us = beat->arrives_us;
	members_heartbeat(&w->c->iteration, &w->c->members.list[node], &h);
	loop_act(&w->c->iteration);
}

/* Delivers, in order, all heartbeats that arrive up to this time. */
static void hear(struct world *w, int64_t until_us)
{
	for (;;) {
		const struct beat *next = NULL;
		uint16_t who = 0;

		for (uint16_t i = 0; i < NODES; i++) {
			struct trace *t = &w->traces[i];

			while (t->next < t->n && t->beats[t->next].sent_us > w->vanishes_us[i] &&
			       t->beats[t->next].sent_us <= until_us)
				t->next++;
			if (t->next < t->n &&
			    (!next || t->beats[t->next].arrives_us < next->arrives_us)) {
				next = &t->beats[t->next];
				who = i;
			}
		}
		if (!next || next->arrives_us > until_us)
			return;
		w->traces[who].next++;
		/* A machine that has vanished does not send lost packets again, so the last packets
		 * may never arrive */
		if (next->arrives_us - 2 * w->traces[who].via.one_way_us <= w->vanishes_us[who])
			deliver(w, who, next);
	}
}

static void look(struct world *w, int64_t now_us)
{
	hear(w, now_us);
	w->c->run.now_us = now_us;
	failure_detector_check(&w->c->members, 0);
	loop_act(&w->c->iteration);
	for (int i = 0; i < NODES; i++)
		if (w->dead_us[i] < 0 && w->c->members.list[i].state == MEMBER_DEAD)
			w->dead_us[i] = now_us;
}

static void go(struct world *w, int64_t from_us, int64_t until_us)
{
	for (int64_t now = from_us; now < until_us; now += LOOK_US)
		look(w, now);
}

static const int64_t delays_us[NODES] = { 500, 5000, 20000, 60000, 100000, 130000 };

static void make_traces(struct world *w, uint32_t beats, uint64_t seed, double loss, double jitter)
{
	for (uint32_t i = 0; i < NODES; i++) {
		struct connection via = { delays_us[i], loss, jitter, CONNECTIONS };

		trace_init(&w->traces[i], &via, beats, NULL, seed + i);
	}
}

static void make_lossy_traces(struct world *w, uint32_t beats, uint64_t seed)
{
	make_traces(w, beats, seed, 0.02, 0.3);
}

static void nobody_died(const struct world *w)
{
	for (int i = 0; i < NODES; i++)
		if (w->dead_us[i] >= 0)
			fail_msg("node %d is taken for dead after %.2f s", i,
				 (double)w->dead_us[i] * 1e-6);
}

/* ---- alive ---- */

TEST(an_hour_of_losses_kills_nobody)
{
	struct world *w = world_new();

	make_lossy_traces(w, 36000, 1);
	world_greet(w);
	go(w, LOOK_US, (int64_t)3590 * SECOND);
	nobody_died(w);
	world_free(w);
}

/* A heartbeat arrives after a newer one. The late heartbeat still proves that the node lives, but
 * the controller ignores its outdated contents. */
TEST(the_contents_of_an_overtaken_heartbeat_are_ignored)
{
	struct world *w = world_new();
	struct member *m = &w->c->members.list[1];
	struct msg_heartbeat h = { .beat = 7, .now_us = 700000, .queued = 7, .committed = 99 };

	world_greet(w);
	w->c->run.now_us = 700000;
	members_heartbeat(&w->c->iteration, m, &h);
	loop_act(&w->c->iteration);
	w->c->run.now_us = 800000;
	h.beat = 6;
	h.queued = 6;
	members_heartbeat(&w->c->iteration, m, &h);
	loop_act(&w->c->iteration);
	assert_int_equal(m->beat.queued, 7);
	assert_int_equal(m->heard.message_us, 700000);
	assert_int_equal(m->heard.any_us, 800000);
	h.beat = 8;
	h.queued = 8;
	members_heartbeat(&w->c->iteration, m, &h);
	loop_act(&w->c->iteration);
	assert_int_equal(m->beat.queued, 8);
	/* A new process numbers its heartbeats from zero */
	failure_detector_begin(&w->c->members, m);
	h.beat = 1;
	h.queued = 1;
	members_heartbeat(&w->c->iteration, m, &h);
	loop_act(&w->c->iteration);
	assert_int_equal(m->beat.queued, 1);
	world_free(w);
}

/* One machine becomes more and more overloaded, until gaps between its heartbeats reach 0.8 s. The
 * allowed silence of other machines stays the same. */
TEST(an_overloaded_machine_is_not_dead)
{
	enum { BEATS = 600 };
	struct world *w = world_new();
	int64_t late[BEATS];

	for (uint16_t i = 0; i < NODES; i++) {
		struct connection via = { 10000, 0, 0.3, CONNECTIONS };
		bool loaded = i < 3;
		struct rng rng;

		rng_init(&rng, i);
		for (int k = 0; k < BEATS; k++)
			late[k] = k < 50 ? 0
					 : (int64_t)(rng_uniform(&rng) *
						     (k < 170 ? (k - 50) * 6000 : 700000));
		trace_init(&w->traces[i], &via, BEATS, loaded ? late : NULL, i);
		snprintf(w->c->members.list[i].hello.address, 64, "tcp://10.0.0.%d:77%02u",
			 loaded ? 1 : 2, i);
	}
	world_greet(w);
	go(w, LOOK_US, (int64_t)(BEATS / 10 - 1) * SECOND);
	nobody_died(w);
	for (int i = 3; i < NODES; i++)
		assert_in_range(w->c->members.list[i].heard.allowed_us, LIMIT_US,
				LIMIT_US + 3 * 26000);
	assert_true(w->c->members.list[0].heard.allowed_us > 2 * LIMIT_US);
	world_free(w);
}

/* The controller hears no node for a second, and then all nodes again. The cause must be its own
 * machine or network, so no node is taken for dead. */
TEST(silence_of_most_machines_is_the_controllers_fault)
{
	for (int embedded = 0; embedded < 2; embedded++) {
		struct world *w = world_new();
		struct connection via = { 5000, 0, 0, 1 };

		(void)state;
		w->c->run.options.mode.embedded = embedded;
		for (uint16_t i = 0; i < NODES; i++) {
			trace_init(&w->traces[i], &via, 300, NULL, i);
			if (embedded)
				snprintf(w->c->members.list[i].hello.address, 64, "ipc:///run/%u",
					 i);
			w->vanishes_us[i] = 10 * SECOND;
		}
		world_greet(w);
		go(w, LOOK_US, 11 * SECOND);
		nobody_died(w);
		for (int i = 0; i < NODES; i++)
			w->vanishes_us[i] = INT64_MAX;
		go(w, 11 * SECOND, 20 * SECOND);
		nobody_died(w);
		for (int i = 0; i < NODES; i++)
			w->vanishes_us[i] = 20 * SECOND;
		go(w, 20 * SECOND, 22 * SECOND);
		for (int i = 0; i < NODES; i++)
			/* all nodes have been silent for longer, so all count as dead */
			assert_true(w->dead_us[i] > 0);
		world_free(w);
	}
}

/* Time in which the controller's own loop slept does not count as silence of the nodes. */
TEST(a_controller_that_slept_does_not_judge)
{
	struct world *w = world_new();

	make_lossy_traces(w, 300, 1);
	world_greet(w);
	go(w, LOOK_US, 10 * SECOND);
	/* All messages that were sent during the sleep are still unread */
	w->c->run.now_us = 13 * SECOND;
	failure_detector_check(&w->c->members, 3 * SECOND);
	loop_act(&w->c->iteration);
	go(w, 13 * SECOND, 20 * SECOND);
	nobody_died(w);
	world_free(w);
}

/* ---- dead ---- */

TEST(a_vanished_machine_is_detected_in_time)
{
	for (uint64_t seed = 0; seed < 120; seed++) {
		struct world *w = world_new();
		uint16_t who = (uint16_t)(seed % NODES);
		int64_t at = 10 * SECOND + (int64_t)seed * 7919;

		make_lossy_traces(w, 300, 1000 * seed);
		w->vanishes_us[who] = at;
		world_greet(w);
		go(w, LOOK_US, 15 * SECOND);
		if (w->dead_us[who] < 0 || w->dead_us[who] - at > in_time(delays_us[who]))
			fail_msg("node %u, seed %u: dead after %.3f s, expected within %.3f", who,
				 (unsigned)seed, (double)(w->dead_us[who] - at) * 1e-6,
				 (double)in_time(delays_us[who]) * 1e-6);
		w->dead_us[who] = -1;
		nobody_died(w);
		world_free(w);
	}
}

/* All agents of a vanished machine are dropped at the same moment, so that none of them receives
 * the work of another. The result does not depend on which of the agents' last packets were
 * lost. */
TEST(all_agents_of_a_vanished_machine_are_dropped)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct world *w = world_new();
		int64_t at = 10 * SECOND + (int64_t)seed * 7919;

		for (uint16_t i = 0; i < NODES; i++) {
			struct connection via = { i < 3 ? 130000 : 1000, 0.02, 0.3, CONNECTIONS };

			trace_init(&w->traces[i], &via, 300, NULL, 10 * seed + i);
			if (i < 3) {
				snprintf(w->c->members.list[i].hello.address, 64,
					 "tcp://[fe80::1]:77%02u", i);
				w->vanishes_us[i] = at;
			}
		}
		world_greet(w);
		go(w, LOOK_US, 15 * SECOND);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(w->dead_us[i], w->dead_us[0]);
			assert_true(w->dead_us[i] > 0 && w->dead_us[i] - at <= in_time(130000));
			assert_non_null(strstr(w->c->members.list[i].why, "as of all on alike"));
		}
		for (int i = 0; i < 3; i++)
			w->dead_us[i] = -1;
		nobody_died(w);
		world_free(w);
	}
}

/* Only one of a machine's three agents falls silent. The machine itself is therefore alive, and
 * only this agent is dropped. */
TEST(one_silent_agent_is_dropped_alone)
{
	struct world *w = world_new();
	struct connection via = { 1000, 0, 0, CONNECTIONS };

	for (uint16_t i = 0; i < NODES; i++) {
		trace_init(&w->traces[i], &via, 300, NULL, i);
		snprintf(w->c->members.list[i].hello.address, 64, "tcp://10.0.0.%d:77%02u", i / 3,
			 i);
	}
	w->vanishes_us[1] = 10 * SECOND;
	world_greet(w);
	go(w, LOOK_US, 15 * SECOND);
	assert_true(w->dead_us[1] > 0);
	assert_null(strstr(w->c->members.list[1].why, "as of all"));
	w->dead_us[1] = -1;
	nobody_died(w);
	world_free(w);
}

/* A node's connections end, and the controller drops the node without waiting for the usual
 * silence. The end of a connection is reported after its data, so lost packets delay this report,
 * too. If packets are lost, the node must be dropped within the usual limit. */
TEST(a_hang_up_is_detected_at_once)
{
	for (uint64_t seed = 0; seed < 120; seed++) {
		struct world *w = world_new();
		uint16_t who = (uint16_t)(seed % NODES);
		int64_t at = 10 * SECOND + (int64_t)seed * 7919,
			noticed_us = at + 13 * delays_us[who] / 10;
		int64_t most =
			seed / NODES % 2 ? in_time(delays_us[who]) : 220000 + 3 * delays_us[who];

		if (seed / NODES % 2)
			make_lossy_traces(w, 300, 1000 * seed + 500);
		else
			make_traces(w, 300, 1000 * seed + 500, 0, 0.05);
		w->vanishes_us[who] = at;
		world_greet(w);
		go(w, LOOK_US, noticed_us);
		w->c->members.detector.n_hung_up = 1;
		w->c->members.detector.hung_up_us = noticed_us;
		go(w, noticed_us, 15 * SECOND);
		if (w->dead_us[who] < 0 || w->dead_us[who] - noticed_us > most)
			fail_msg("node %u, seed %u: dead %.3f s after its connections ended", who,
				 (unsigned)seed, (double)(w->dead_us[who] - noticed_us) * 1e-6);
		w->dead_us[who] = -1;
		nobody_died(w);
		world_free(w);
	}
}

/* The connections that end belong to a console. No node is taken for dead because of this. */
TEST(a_node_that_is_heard_has_not_hung_up)
{
	struct world *w = world_new();

	make_traces(w, 300, 7, 0, 0.3);
	world_greet(w);
	for (int i = 1; i < 200; i++) {
		go(w, (i - 1) * (int64_t)140000 + LOOK_US, i * (int64_t)140000);
		w->c->members.detector.n_hung_up = CONNECTIONS;
		w->c->members.detector.connections = CONNECTIONS;
		w->c->members.detector.hung_up_us = w->c->run.now_us;
	}
	nobody_died(w);
	world_free(w);
}

/* A vanished machine returns, and its old connections end. On lossy links another node is often
 * silent at that moment. The controller must not conclude that this node's connections have
 * ended. */
TEST(a_returning_node_ends_its_old_connections)
{
	for (uint64_t seed = 0; seed < 40; seed++) {
		struct world *w = world_new();
		struct failure_detector *d = &w->c->members.detector;

		make_lossy_traces(w, 600, 1000 * seed + 500);
		w->vanishes_us[1] = 10 * SECOND;
		world_greet(w);
		d->connections = CONNECTIONS;
		go(w, LOOK_US, 20 * SECOND);
		assert_true(w->dead_us[1] > 0);
		assert_int_equal(d->n_hung_up, 0);
		for (int i = 0; i < CONNECTIONS; i++)
			failure_detector_ended(&w->c->members, 1);
		assert_int_equal(d->n_hung_up, 0);
		go(w, 20 * SECOND, 21 * SECOND);
		failure_detector_ended(&w->c->members, 1); /* the connection of another node ends */
		assert_int_equal(d->n_hung_up, 1);
		w->dead_us[1] = -1;
		nobody_died(w);
		world_free(w);
	}
}

/* A node that was suspended returns and keeps its connections. A connection that ends much later
 * therefore belongs to another node. */
TEST(a_node_on_old_connections_ends_none)
{
	struct world *w = world_new();
	struct member *m = &w->c->members.list[1];

	world_greet(w);
	m->heard.lingering_connections = CONNECTIONS;
	m->state = MEMBER_LIVE;
	m->since_us = w->c->run.now_us;
	w->c->run.now_us += 11 * SECOND;
	failure_detector_ended(&w->c->members, 0);
	failure_detector_ended(&w->c->members, 1);
	assert_int_equal(w->c->members.detector.n_hung_up, 1);
	world_free(w);
}

/* The round trip of a new node is unknown, so the node may be silent for longer, but not
 * forever. */
TEST(a_new_node_has_more_time)
{
	struct world *w = world_new();

	world_greet(w);
	look(w, LOOK_US);
	look(w, SECOND);
	nobody_died(w);
	look(w, TIMEOUT_PATIENCE * LIMIT_US + LOOK_US);
	for (int i = 0; i < NODES; i++)
		assert_true(w->dead_us[i] > 0);
	world_free(w);
}
