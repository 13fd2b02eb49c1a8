/* Implements cluster.h: the test controller, the turns of all agents, and the records of their
 * reports. A test thus drives complete agents in one process and can inspect their state. */
#include "agent/tests/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"

enum { PATIENCE_US = 20000000, M = CLUSTER_BATCHES };

const struct adamw cluster_adamw = { 0.01f, 0.9f, 0.99f, 1e-8f, 0.1f };

static void must(int rc, const struct error *err, const char *what)
{
	if (rc < 0)
		fail_msg("%s: %d %s", what, rc, err ? err->text : "");
}

/* ---- setup ---- */

static void write_corpus(struct cluster *c)
{
	char text[60000], *paths[1] = { c->corpus_path };
	struct error err = { "" };
	struct rng g;
	FILE *f;

	rng_init(&g, 5);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + rng_below(&g, 20));
	snprintf(c->corpus_path, sizeof(c->corpus_path), "/tmp/agent-test-%d.txt", getpid());
	f = fopen(c->corpus_path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, sizeof(text), f), sizeof(text));
	assert_int_equal(fclose(f), 0);
	must(corpus_new(&c->corpus, paths, 1, CLUSTER_SEQUENCE, 42, &err), &err, "corpus");
}

static void make_twins(struct cluster *c)
{
	const struct stage_options o = { .slots = M,
					 .batch = CLUSTER_BATCH,
					 .sequence = CLUSTER_SEQUENCE,
					 .threads = 1,
					 .seed = 42,
					 .device = c->options.twin_device };
	struct error err = { "" };

	for (uint32_t i = 0; i < c->n_nodes; i++)
		must(stage_new(&c->twins[i], &c->config, c->nodes[i].stage, &o, &err), &err,
		     "stage");
}

static void open_controller(struct cluster *c)
{
	struct post_options o = { .identity = c->identity, .admitted = c->admitted,
				  .roles = KEYS_ROLE_BIT(KEYS_AGENT) };
	struct error err = { "" };

	must(post_open(&c->post, &o, &err), &err, "post");
	must(post_listen(c->post, c->address[0] ? c->address : "tcp://127.0.0.1:0", c->address,
			 &err), &err, "listen");
}

void cluster_init(struct cluster *c, uint32_t n_nodes, const uint8_t *stages)
{
	struct error err = { "" };
	char name[32];

	c->n_nodes = n_nodes;
	c->config = (struct model_config){ .vocab = 256,
					   .dim = c->options.dim ? c->options.dim : 16,
					   .n_heads = 2,
					   .n_kv_heads = 1,
					   .ffn_dim = 24,
					   .context = 32,
					   .rope_theta = 10000,
					   .norm_eps = 1e-5f,
					   .init_std = 0.02f };
	for (uint32_t i = 0; i < n_nodes; i++) {
		c->nodes[i].stage = stages[i];
		c->nodes[i].keeps = -1;
		c->n_shards += stages[i] == 0;
		if (stages[i] >= c->n_stages)
			c->n_stages = stages[i] + 1u;
	}
	c->config.n_stages = c->config.n_layers = c->n_stages;
	must(model_config_check(&c->config, &err), &err, "config");
	c->model = model_config_print(&c->config, NULL);
	assert_non_null(c->model);
	write_corpus(c);
	make_twins(c);
	must(keys_generate(&c->identity, &err), &err, "key");
	c->admitted = keys_list_new();
	for (uint32_t i = 0; i < n_nodes; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		must(keys_generate(&c->nodes[i].identity, &err), &err, "key");
		must(keys_list_admit(c->admitted, keys_public_of(c->nodes[i].identity),
				     KEYS_AGENT, name, &err), &err, "admit");
	}
	open_controller(c);
	for (uint32_t i = 0; i < n_nodes; i++)
		cluster_start_agent(c, i);
}

void cluster_fini(struct cluster *c)
{
	for (uint32_t i = 0; i < c->n_nodes; i++) {
		agent_free(c->nodes[i].agent);
		keys_free(c->nodes[i].identity);
		stage_free(c->twins[i]);
	}
	post_close(c->post);
	keys_list_free(c->admitted);
	keys_free(c->identity);
	corpus_free(c->corpus);
	unlink(c->corpus_path);
	free(c->model);
}

void cluster_start_agent(struct cluster *c, uint32_t node)
{
	struct node *n = &c->nodes[node];
	struct error err = { "" };
	struct agent_options o = { .join = c->address,
				   .identity = n->identity,
				   .piece_bytes = 1024,
				   .controller = *keys_public_of(c->identity),
				   .listen = "tcp://127.0.0.1:0",
				   .device = c->options.device ? c->options.device : "cpu",
				   .node = (int32_t)node,
				   .orphan_s = 60,
				   .stuck_s = 60,
				   .memory_bytes = c->options.memory_bytes,
				   .chunk_bytes = c->options.chunk_bytes,
				   .threads_from_bytes = c->options.threads_from_bytes
							     ? c->options.threads_from_bytes
							     : 1,
				   .piece_least_bytes = 1,
				   .message_bytes = c->options.message_bytes,
				   .retained_bytes = c->options.retained_bytes,
				   .log = &n->log };

	n->log.to = getenv("AGENT_TEST_LOG") ? stderr : NULL;
	n->log.least = LOG_DEBUG;
	n->said_hello = n->ready = false;
	must(agent_new(&n->agent, &o, clock_monotonic_us(), &err), &err, "agent");
}

void cluster_kill(struct cluster *c, uint32_t node)
{
	agent_free(c->nodes[node].agent);
	c->nodes[node].agent = NULL;
	c->nodes[node].ready = false;
}

void cluster_restart_controller(struct cluster *c)
{
	post_close(c->post);
	for (uint32_t i = 0; i < c->n_nodes; i++) {
		c->nodes[i].peer = 0;
		c->nodes[i].said_hello = false;
	}
	open_controller(c);
}

/* ---- turns ---- */

static void take_events(struct cluster *c, uint16_t node, const struct msg_report *r)
{
	for (uint32_t i = 0; i < r->n_events; i++) {
		struct msg_task_event *e = &c->now.events[c->now.n_events++];

		assert_true(c->now.n_events < CLUSTER_EVENTS);
		assert_int_equal(r->iteration, c->now.iteration);
		*e = r->events[i];
		assert_int_equal(e->node, node);
		assert_true(e->microbatch < c->now.n_batches);
		assert_true(e->slots <= CLUSTER_SLOTS);
		if (e->type != WORK_ENDS)
			continue;
		if (e->kind == TASK_LOSS)
			c->now.loss[e->microbatch] = e->loss;
	}
}

static void take(struct cluster *c, uint16_t node, const struct msg *m)
{
	struct node *n = &c->nodes[node];

	switch (m->type) {
	case MSG_READY:
		n->ready_said = m->u.ready;
		n->ready = true;
		if (n->keeps == n->stage) /* the node's standby copy became its stage */
			cluster_keep(c, node, -1, 0);
		break;
	case MSG_HEARTBEAT:
		n->beat = m->u.heartbeat;
		break;
	case MSG_REPORT:
		take_events(c, node, &m->u.report);
		break;
	case MSG_REDUCED:
		if (m->u.reduced.stage != n->stage) {
			n->copy_reduced_said = m->u.reduced;
			n->copy_reduced = true;
			break;
		}
		n->reduced_said = m->u.reduced;
		n->reduced = true;
		break;
	case MSG_COMMITTED:
		n->n_committed += !m->u.committed.copy;
		if (m->u.committed.stage != n->stage)
			n->copy_committed = m->u.committed;
		else
			n->committed = m->u.committed;
		break;
	case MSG_KEPT:
		n->kept_said = m->u.kept;
		n->kept = true;
		break;
	case MSG_EVALUATED:
		assert_true(m->u.evaluated.microbatch < M);
		c->now.evaluated[m->u.evaluated.microbatch] = m->u.evaluated.loss;
		c->now.n_evaluated++;
		break;
	case MSG_TROUBLE:
		n->troubles++;
		memcpy(n->trouble, m->u.trouble.text, sizeof(n->trouble));
		if (m->u.trouble.fatal && !c->options.may_give_up)
			fail_msg("node %u: %s", node, m->u.trouble.text);
		break;
	case MSG_LOG:
		if (n->n_logs < 8)
			n->logs[n->n_logs++] = m->u.log;
		break;
	case MSG_LINKS:
		c->links_reported += m->u.links.n_links;
		break;
	default:
		fail_msg("node %u sent a %s", node, msg_name(m->type));
	}
}

static void take_post(struct cluster *c, const struct post_message *p)
{
	struct msg m;

	if (p->kind != POST_DATA)
		return;
	assert_int_equal(msg_decode(&m, p->data, p->size), 0);
	if (m.type == MSG_HELLO) {
		struct node *n;

		assert_true(m.u.hello.node >= 0 && m.u.hello.node < (int)c->n_nodes);
		n = &c->nodes[m.u.hello.node];
		n->peer = p->peer;
		n->hello = m.u.hello;
		n->said_hello = true;
	} else {
		for (uint16_t i = 0; i < c->n_nodes; i++)
			if (c->nodes[i].peer == p->peer && c->nodes[i].agent)
				take(c, i, &m);
	}
	msg_clear(&m);
}

static int64_t agents_now(const struct cluster *c)
{
	return c->stopped_us ? c->stopped_us : clock_monotonic_us();
}

void cluster_turn(struct cluster *c)
{
	struct post_message p;
	int64_t now = clock_monotonic_us();

	post_tick(c->post, now);
	for (int i = 0; i < 64 && post_receive(c->post, now, &p) == 0; i++)
		take_post(c, &p);
	post_tick(c->post, now);
	for (uint32_t i = 0; i < c->n_nodes; i++) {
		struct agent *a = c->nodes[i].agent;

		if (!a)
			continue;
		agent_receive(a, agents_now(c));
		agent_work(a, agents_now(c));
		agent_send(a, agents_now(c));
	}
}

void cluster_turns(struct cluster *c, int n)
{
	for (int i = 0; i < n; i++) {
		cluster_turn(c);
		poll(NULL, 0, 1);
	}
}

void cluster_until(struct cluster *c, bool (*done)(struct cluster *c), const char *what)
{
	int64_t by = clock_monotonic_us() +
		     (c->options.patience_us ? c->options.patience_us : PATIENCE_US);

	for (int i = 0; !done(c); i++) {
		cluster_turn(c);
		if (clock_monotonic_us() > by)
			fail_msg("waited in vain: %s", what);
		if (i % 4 == 3)
			poll(NULL, 0, 1);
	}
}

/* ---- messages of the controller ---- */

void cluster_send(struct cluster *c, uint32_t node, const struct msg *m)
{
	size_t size = msg_size(m);
	char *bytes = malloc(size + 1);
	struct post_part part = { bytes, size };

	assert_non_null(bytes);
	assert_int_equal(msg_encode(m, bytes, size), (long)size);
	assert_int_equal(post_send(c->post, c->nodes[node].peer, &part, 1, POST_RELIABLE,
				   clock_monotonic_us()), 0);
	free(bytes);
}

static void send_living(struct cluster *c, const struct msg *m)
{
	for (uint32_t i = 0; i < c->n_nodes; i++)
		if (c->nodes[i].ready)
			cluster_send(c, i, m);
}

void cluster_welcome(struct cluster *c, uint32_t node)
{
	struct msg m = { .type = MSG_WELCOME };
	struct msg_welcome *w = &m.u.welcome;

	*w = (struct msg_welcome){
		.node = (uint16_t)node,
		.n_nodes = c->n_nodes,
		.run = c->options.run ? c->options.run : 77,
		.seed = 42,
		.batch = CLUSTER_BATCH,
		.sequence = CLUSTER_SEQUENCE,
		.n_shards = c->n_shards,
		.threads = 1,
		.slots = CLUSTER_SLOTS,
		.time_scale = c->options.time_scale,
		.forward_s = c->options.task_s,
		.backward_s = 2 * c->options.task_s,
		.loss_s = c->options.task_s,
		.dispatch_overhead_s = c->options.overhead_s,
		.serialise = c->options.serialise,
		.n_delays = c->n_nodes,
		.delay_s = c->options.delay_s,
		.n_syncs = c->n_nodes,
		.sync_s = c->options.sync_s,
		.corpus = c->corpus_path,
	};
	w->n_corpus = (uint32_t)strlen(c->corpus_path) + 1;
	snprintf(w->model, sizeof(w->model), "%s", c->model);
	cluster_send(c, node, &m);
}

void cluster_peers(struct cluster *c)
{
	struct msg_peer peers[CLUSTER_NODES];
	struct msg m = { .type = MSG_PEERS, .u.peers = { c->n_nodes, peers } };

	for (uint32_t i = 0; i < c->n_nodes; i++) {
		peers[i] = (struct msg_peer){ .node = (uint16_t)i };
		memcpy(peers[i].key, keys_public_of(c->nodes[i].identity)->bytes, 32);
		snprintf(peers[i].address, sizeof(peers[i].address), "%s",
			 c->nodes[i].hello.address);
	}
	for (uint32_t i = 0; i < c->n_nodes; i++)
		if (c->nodes[i].agent)
			cluster_send(c, i, &m);
}

void cluster_expel(struct cluster *c, uint32_t node)
{
	struct msg_peer peer = { .node = (uint16_t)node };
	struct msg m = { .type = MSG_PEERS, .u.peers = { 1, &peer } };

	for (uint32_t i = 0; i < c->n_nodes; i++)
		if (c->nodes[i].agent)
			cluster_send(c, i, &m);
}

void cluster_keep(struct cluster *c, uint32_t node, int stage, uint16_t source)
{
	struct msg m = { .type = MSG_KEEP };

	c->nodes[node].keeps = stage;
	c->nodes[node].kept = false;
	m.u.keep = (struct msg_keep){ ++c->assignments,
				      stage < 0 ? MSG_NO_STAGE : (uint8_t)stage, source };
	cluster_send(c, node, &m);
}

static bool all_copies_complete(struct cluster *c)
{
	for (uint32_t i = 0; i < c->n_nodes; i++)
		if (c->nodes[i].agent && c->nodes[i].keeps >= 0 && !c->nodes[i].kept)
			return false;
	return true;
}

void cluster_assign(struct cluster *c, uint32_t node, int source)
{
	struct msg m = { .type = MSG_ASSIGN };

	c->nodes[node].ready = false;
	if (source >= 0) {
		cluster_keep(c, node, c->nodes[node].stage, (uint16_t)source);
		cluster_until(c, all_copies_complete, "the copy");
	}
	m.u.assign = (struct msg_assign){ ++c->assignments, c->nodes[node].stage, source >= 0 };
	cluster_send(c, node, &m);
}

bool cluster_all_sent_hello(struct cluster *c)
{
	for (uint32_t i = 0; i < c->n_nodes; i++)
		if (c->nodes[i].agent && !c->nodes[i].said_hello)
			return false;
	return true;
}

bool cluster_all_ready(struct cluster *c)
{
	for (uint32_t i = 0; i < c->n_nodes; i++)
		if (c->nodes[i].agent && !c->nodes[i].ready)
			return false;
	return true;
}

void cluster_gather(struct cluster *c)
{
	cluster_until(c, cluster_all_sent_hello, "hello");
	for (uint32_t i = 0; i < c->n_nodes; i++)
		cluster_welcome(c, i);
	cluster_peers(c);
	for (uint32_t i = 0; i < c->n_nodes; i++)
		cluster_assign(c, i, -1);
	cluster_until(c, cluster_all_ready, "ready");
	for (uint32_t i = 0; i < c->n_nodes; i++) {
		const struct msg_ready *r = &c->nodes[i].ready_said;

		assert_int_equal(r->iteration, 0);
		assert_true(r->hash == stage_hash(c->twins[i]));
		assert_true(r->forward_s > 0 && r->backward_s > 0);
		assert_true((r->loss_s > 0) == (r->stage == 0));
		assert_true(r->corpus_hash ==
			    (r->stage == 0 ? corpus_hash(c->corpus) : 0));
	}
}

void cluster_route(struct cluster *c, uint32_t m, uint32_t n, const uint16_t *nodes)
{
	struct route *r = &c->now.routes[m];

	r->microbatch = m;
	r->shard = m % c->n_shards;
	r->wave = m / c->n_shards;
	r->n_hops = n;
	for (uint32_t i = 0; i < n; i++) {
		r->nodes[i] = nodes[i];
		r->stages[i] = c->nodes[nodes[i]].stage;
	}
	if (m >= c->now.n_batches)
		c->now.n_batches = m + 1;
}

void cluster_start(struct cluster *c)
{
	struct route routes[M];
	struct msg m = { .type = MSG_PLAN };

	c->now.iteration++;
	c->now.epoch++;
	c->now.per_shard = (c->now.n_batches + c->n_shards - 1) / c->n_shards;
	c->now.n_events = 0;
	c->now.first_attempt = c->now.routes[0].attempt;
	for (uint32_t i = 0; i < c->now.n_batches; i++) {
		c->now.routes[i].since = c->now.routes[i].attempt;
		routes[i] = c->now.routes[i];
		if (c->now.routes[i].attempt < c->now.first_attempt)
			c->now.first_attempt = c->now.routes[i].attempt;
	}
	m.u.plan = (struct msg_plan){ c->now.epoch, c->now.n_batches, routes, c->now.n_ranks,
				      c->now.ranks };
	send_living(c, &m);
	m.type = MSG_START;
	m.u.start = (struct msg_start){ c->now.iteration, c->now.epoch, c->now.per_shard,
					(c->now.iteration - 1) * c->now.per_shard,
					(uint8_t)c->options.wire };
	send_living(c, &m);
}

void cluster_fault(struct cluster *c, uint32_t node, uint32_t fault, uint8_t kind, int32_t peer,
		   float factor)
{
	struct msg m = { .type = MSG_FAULT,
			 .u.fault = { fault, kind, peer, factor, kind ? 60000 : 0 } };

	cluster_send(c, node, &m);
}

void cluster_reroute(struct cluster *c, uint32_t which, int gone)
{
	struct msg m = { .type = MSG_REROUTE };
	uint16_t g = (uint16_t)(gone < 0 ? 0 : gone);
	struct route routes[M];
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->now.n_batches; i++)
		if (which >> i & 1) {
			c->now.routes[i].attempt++;
			routes[n++] = c->now.routes[i];
		}
	m.u.reroute = (struct msg_reroute){
		c->now.iteration, c->now.epoch, n, routes, gone >= 0, &g, (uint8_t)c->options.wire
	};
	send_living(c, &m);
}

/* Returns true if all nodes on the route have reported that they counted microbatch m. If the
 * data node has ended its last task, other nodes may still lack a count, because a substitute's
 * task may end later. */
bool cluster_through(const struct cluster *c, uint32_t m)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->now.n_events; i++) {
		const struct msg_task_event *e = &c->now.events[i];

		n += e->counted && e->microbatch == m && e->kind != TASK_LOSS &&
		     e->attempt >= c->now.first_attempt && c->nodes[e->node].ready;
	}
	return n == c->now.routes[m].n_hops;
}

bool cluster_all_through(struct cluster *c)
{
	for (uint32_t i = 0; i < c->now.n_batches; i++)
		if (!cluster_through(c, i))
			return false;
	return true;
}

static uint32_t stage_nodes(const struct cluster *c, uint8_t stage, uint16_t *nodes)
{
	uint32_t n = 0;

	for (uint16_t i = 0; i < c->n_nodes; i++)
		if (c->nodes[i].ready && c->nodes[i].stage == stage)
			nodes[n++] = i;
	return n;
}

static bool all_reduced(struct cluster *c)
{
	for (uint32_t i = 0; i < c->n_nodes; i++)
		if ((c->nodes[i].ready && !c->nodes[i].reduced) ||
		    (c->nodes[i].keeps >= 0 && !c->options.copies_lag && !c->nodes[i].copy_reduced))
			return false;
	return true;
}

void cluster_reduce(struct cluster *c, uint32_t attempt)
{
	uint16_t nodes[CLUSTER_NODES], copies[CLUSTER_NODES];
	struct msg m = { .type = MSG_REDUCE };

	for (uint8_t s = 0; s < c->n_stages; s++) {
		uint32_t n = stage_nodes(c, s, nodes), k = 0;

		for (uint16_t i = 0; i < c->n_nodes; i++)
			if (c->nodes[i].agent && c->nodes[i].keeps == s)
				copies[k++] = i;
		m.u.reduce = (struct msg_reduce){ c->now.iteration,
						  attempt,
						  s,
						  n,
						  nodes,
						  k,
						  copies,
						  0,
						  (uint8_t)c->options.sum_wire };
		for (uint32_t i = 0; i < n; i++) {
			c->nodes[nodes[i]].reduced = false;
			cluster_send(c, nodes[i], &m);
		}
		for (uint32_t i = 0; i < k; i++) {
			c->nodes[copies[i]].copy_reduced = false;
			cluster_send(c, copies[i], &m);
		}
	}
	cluster_until(c, all_reduced, "reduced");
	for (uint32_t i = 0; i < c->n_nodes; i++)
		if (c->nodes[i].ready) {
			assert_int_equal(c->nodes[i].reduced_said.iteration, c->now.iteration);
			assert_int_equal(c->nodes[i].reduced_said.attempt, attempt);
		}
}

static bool all_committed(struct cluster *c)
{
	for (uint32_t i = 0; i < c->n_nodes; i++)
		if ((c->nodes[i].ready && c->nodes[i].committed.iteration != c->now.iteration) ||
		    (c->nodes[i].kept && c->nodes[i].keeps >= 0 && !c->options.copies_lag &&
		     c->nodes[i].keeps != c->nodes[i].stage &&
		     c->nodes[i].copy_committed.iteration != c->now.iteration))
			return false;
	return true;
}

float cluster_scale(const struct cluster *c)
{
	return 1.0f / (float)c->now.n_batches;
}

void cluster_commit(struct cluster *c, uint32_t attempt)
{
	struct msg m = { .type = MSG_COMMIT };

	m.u.commit = (struct msg_commit){ .iteration = c->now.iteration,
					  .attempt = attempt,
					  .scale = cluster_scale(c),
					  .lr = cluster_adamw.lr,
					  .beta1 = cluster_adamw.beta1,
					  .beta2 = cluster_adamw.beta2,
					  .eps = cluster_adamw.eps,
					  .weight_decay = cluster_adamw.weight_decay,
					  .stack_from = c->options.stack_from };
	send_living(c, &m);
	cluster_until(c, all_committed, "committed");
	for (uint32_t i = 0; i < c->n_nodes; i++)
		if (c->nodes[i].ready)
			assert_true(c->nodes[i].committed.hash == stage_hash(c->twins[i]));
}

static bool all_evaluated(struct cluster *c)
{
	return c->now.n_evaluated >= c->now.wanted_evaluations;
}

void cluster_evaluate(struct cluster *c, uint32_t n)
{
	struct route by = { .attempt = 1, .n_hops = c->n_stages };
	struct msg m = { .type = MSG_EVALUATE };
	uint16_t some[CLUSTER_NODES];
	struct route routes[M];

	for (uint8_t s = 0; s < c->n_stages; s++) {
		assert_true(stage_nodes(c, s, some) > 0);
		by.nodes[s] = some[0];
		by.stages[s] = s;
	}
	for (uint32_t i = 0; i < n; i++) {
		routes[i] = by;
		routes[i].microbatch = routes[i].wave = i;
	}
	c->now.n_evaluated = 0;
	c->now.wanted_evaluations = n;
	m.u.evaluate =
		(struct msg_evaluate){ c->now.iteration, n, routes, (uint8_t)c->options.wire };
	send_living(c, &m);
	cluster_until(c, all_evaluated, "evaluated");
}
