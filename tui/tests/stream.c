#include "tui/tests/stream.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"

static const char *const places[12] = { "Australia", "Belgium",   "Canada", "Germany",
					"Iowa",      "Japan",     "LA",     "NL",
					"Oregon",    "Singapore", "Taiwan", "London" };

/* Positions of the places on a plane. The planned transfer time between two places is their
 * distance times 0.4, plus 0.1, in plan seconds (delay_s). */
static const float plane[12][2] = { { 2.6f, 1.1f },  { 0.0f, 0.1f },  { -1.0f, -0.1f },
				    { 0.15f, 0.0f }, { -1.4f, 0.2f }, { 2.3f, -0.1f },
				    { -1.9f, 0.5f }, { 0.0f, -0.1f }, { -1.9f, 0.0f },
				    { 1.9f, 0.7f },  { 2.2f, 0.3f },  { -0.2f, 0.0f } };

struct arrival {
	int64_t at;
	uint32_t microbatch, position;
	uint32_t node; /* node of the arrival; position UINT32_MAX: node whose task ends */
};

struct worker {
	int busy; /* 0: idle; otherwise 1 + the microbatch whose task runs */
	uint32_t position;
	uint32_t held;
	struct arrival queue[256];
	uint32_t n;
};

struct run {
	struct stream_options o;
	struct rng rng;
	uint32_t n_microbatches, n_data;
	/* Array of `nodes`: stage of each node. Array of `stages` + 1: first node of each
	 * stage. */
	uint32_t *stage_of, *first;
	struct route *routes;
	struct msg_task_event *events;
	uint32_t n_events, most_events;
	struct arrival *heap;
	uint32_t n_heap;
	struct worker *workers;
	int64_t now;
	uint64_t sequence;
	stream_sink *sink;
	void *context;
	double jitter;
};

void stream_defaults(struct stream_options *o)
{
	*o = (struct stream_options){ .nodes = 20,
				      .stages = 6,
				      .path_length = 4,
				      .waves = 6,
				      .past = 40,
				      .live = 4,
				      .time_scale = 0.07,
				      .seed = 7,
				      .dead = -1 };
}

static void send(struct run *r, struct msg *m)
{
	m->sequence = ++r->sequence;
	r->sink(r->context, r->now, m);
}

/* ---- the routes: the first nodes are data nodes, the others share the other stages ---- */

static void make_routes(struct run *r)
{
	uint32_t S = r->o.stages, others = S - 1, k = 0;

	for (uint32_t m = 0; m < r->n_microbatches; m++) {
		struct route *p = &r->routes[m];
		uint8_t visit[MSG_STAGES] = { 0 };
		uint32_t h = 1;

		for (uint32_t i = 0; i + 1 < r->o.path_length; i++)
			visit[1 + k++ % others] = 1;
		p->nodes[0] = (uint16_t)(m % r->n_data);
		p->stages[0] = 0;
		for (uint32_t s = 1; s < S; s++) {
			uint32_t n = r->first[s + 1] - r->first[s];

			if (!visit[s])
				continue;
			p->nodes[h] = (uint16_t)(r->first[s] + (m / 2 + s) % n);
			if ((int)p->nodes[h] == r->o.dead)
				p->nodes[h] = (uint16_t)(r->first[s] + (m / 2 + s + 1) % n);
			p->stages[h++] = (uint8_t)s;
		}
		p->microbatch = m;
		p->shard = m % r->n_data;
		p->wave = m / r->n_data;
		p->n_hops = h;
	}
}

/* ---- simulation of one iteration ---- */

static void push(struct run *r, struct arrival a)
{
	uint32_t i = r->n_heap++;

	while (i > 0 && r->heap[(i - 1) / 2].at > a.at) {
		r->heap[i] = r->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	r->heap[i] = a;
}

static struct arrival pop(struct run *r)
{
	struct arrival top = r->heap[0], last = r->heap[--r->n_heap];
	uint32_t i = 0;

	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c >= r->n_heap)
			break;
		if (c + 1 < r->n_heap && r->heap[c + 1].at < r->heap[c].at)
			c++;
		if (r->heap[c].at >= last.at)
			break;
		r->heap[i] = r->heap[c];
		i = c;
	}
	r->heap[i] = last;
	return top;
}

static uint32_t node_at(const struct run *r, uint32_t m, uint32_t p)
{
	uint32_t n = r->routes[m].n_hops;

	return r->routes[m].nodes[p < n ? p : p == n ? 0 : p == 2 * n ? 0 : 2 * n - p];
}

static uint8_t kind_at(const struct run *r, uint32_t m, uint32_t p)
{
	uint32_t n = r->routes[m].n_hops;

	return p < n ? TASK_FORWARD : p == n ? TASK_LOSS : TASK_BACKWARD;
}

static void note(struct run *r, uint8_t type, const struct arrival *a, uint32_t node, int64_t at,
		 uint32_t blocker)
{
	uint8_t kind = kind_at(r, a->microbatch, a->position);

	if (r->n_events < r->most_events)
		r->events[r->n_events++] =
			(struct msg_task_event){ type,
						 kind,
						 (uint16_t)node,
						 (uint16_t)node,
						 a->microbatch,
						 0,
						 blocker,
						 at,
						 a->at,
						 0,
						 type == WORK_ENDS && kind == TASK_LOSS ? 3.2f : 0,
						 0,
						 (uint8_t)r->workers[node].held };
}

static int64_t cost(struct run *r, uint32_t node, uint8_t kind)
{
	double s = kind == TASK_FORWARD ? 0.44 : kind == TASK_LOSS ? 0.11 : 0.66;

	s *= 1 + 0.05 * (node % 7);
	return (int64_t)(s * (1 + r->jitter * (rng_uniform(&r->rng) - 0.3)) * r->o.time_scale *
			 1e6) +
	       1;
}

/* Returns the planned transfer time between two nodes, from the positions of their places. */
static double delay_s(uint32_t a, uint32_t b)
{
	const float *p = plane[a * 5 % 12], *q = plane[b * 5 % 12];

	return 0.1 + 0.4 * hypot((double)(p[0] - q[0]), (double)(p[1] - q[1]));
}

static int64_t delay(struct run *r, uint32_t a, uint32_t b)
{
	double s = a == b ? 0 : delay_s(a, b);

	return (int64_t)(s * (1 + r->jitter * rng_uniform(&r->rng)) * r->o.time_scale * 1e6);
}

static void begin(struct run *r, uint32_t node, int64_t at)
{
	struct worker *w = &r->workers[node];

	for (uint32_t i = 0; !w->busy && i < w->n; i++) {
		struct arrival a = w->queue[i];
		uint8_t kind = kind_at(r, a.microbatch, a.position);

		if (kind == TASK_FORWARD && w->held >= 3)
			continue;
		memmove(&w->queue[i], &w->queue[i + 1], (--w->n - i) * sizeof(a));
		w->busy = (int)a.microbatch + 1;
		w->position = a.position;
		w->held += kind == TASK_FORWARD;
		note(r, WORK_STARTS, &a, node, at, UINT32_MAX);
		push(r,
		     (struct arrival){ at + cost(r, node, kind), a.microbatch, UINT32_MAX, node });
	}
}

static void arrive(struct run *r, struct arrival a)
{
	uint32_t node = node_at(r, a.microbatch, a.position);
	struct worker *w = &r->workers[node];

	w->queue[w->n++] = a;
	begin(r, node, a.at);
	if (w->n > 0 && w->queue[w->n - 1].microbatch == a.microbatch &&
	    w->queue[w->n - 1].position == a.position)
		note(r, WORK_WAITS, &a, node, a.at, w->busy ? (uint32_t)w->busy - 1 : UINT32_MAX);
}

static void finish(struct run *r, struct arrival e)
{
	struct worker *w = &r->workers[e.node];
	struct arrival a = { e.at, e.microbatch, w->position, e.node };
	uint32_t last = 2 * r->routes[e.microbatch].n_hops;

	w->busy = 0;
	if (kind_at(r, a.microbatch, a.position) == TASK_BACKWARD)
		w->held--;
	note(r, WORK_ENDS, &a, e.node, e.at, UINT32_MAX);
	if (a.position < last)
		push(r, (struct arrival){
				e.at + delay(r, e.node, node_at(r, a.microbatch, a.position + 1)),
				a.microbatch, a.position + 1, 0 });
	begin(r, e.node, e.at);
}

/* Simulates an iteration that begins at the time `start`, and fills in its events. Returns the time
 * of the last event. */
static int64_t simulate(struct run *r, int64_t start, double jitter)
{
	int64_t end = start;

	r->jitter = jitter;
	r->n_events = r->n_heap = 0;
	memset(r->workers, 0, r->o.nodes * sizeof(*r->workers));
	for (uint32_t m = 0; m < r->n_microbatches; m++)
		push(r, (struct arrival){ start, m, 0, 0 });
	while (r->n_heap > 0) {
		struct arrival a = pop(r);

		end = a.at > end ? a.at : end;
		if (a.position == UINT32_MAX)
			finish(r, a);
		else
			arrive(r, a);
	}
	return end;
}

/* ---- messages ---- */

/* GPUs for tests: busy, throttled for each reason, idle, and some whose figures are partly or all
 * missing. */
static const struct gpu_figures gpus[] = {
	{ GPU_ALL, 97, 64, 0, 412000, 700000, 62300, 81559 },
	{ GPU_ALL, 100, 91, GPU_HEAT, 295400, 450000, 23100, 24564 },
	{ GPU_ALL, 88, 58, GPU_POWER_BRAKE | GPU_POWER_CAP, 150000, 350000, 8123, 40960 },
	{ GPU_ALL, 99, 71, GPU_POWER_CAP, 699400, 700000, 140120, 143771 },
	{ GPU_ALL, 41, 83, GPU_HARDWARE, 120000, 300000, 20000, 46068 },
	{ GPU_ALL, 0, 31, 0, 14200, 285000, 412, 16376 },
	{ GPU_UTILISATION | GPU_TEMPERATURE | GPU_POWER, 73, 49, 0, 61000, 0, 0, 0 },
	{ 0, 0, 0, 0, 0, 0, 0, 0 },
};

static void send_node(struct run *r, uint32_t i, uint8_t state, const char *why)
{
	struct msg m = { .type = MSG_SEE_NODE };
	struct msg_see_node *n = &m.u.see_node;

	n->node = (uint16_t)i;
	n->stage = (uint8_t)r->stage_of[i];
	n->layers = (uint16_t)(r->stage_of[i] == 0 ? 2 : 4);
	n->state = state;
	n->memory = 3;
	n->heard_us = r->now - 50000;
	n->since_us = r->now;
	n->committed = r->o.past;
	n->hash = 0x5eed0000 + r->stage_of[i];
	n->hash_agrees = 1;
	n->forward_s = (float)(0.44 * (1 + 0.05 * (i % 7)));
	n->backward_s = n->forward_s * 1.5f;
	n->loss_s = 0.11f;
	n->measured_forward_s = 0.0031f;
	n->measured_backward_s = 0.0064f;
	n->rss_bytes = 61u << 20;
	n->sent_bytes = 1000000 + i * 31000;
	n->received_bytes = 990000 + i * 30000;
	n->pid = 4000 + i;
	n->lost_s = i % 7 == 3   ? 0
		    : i % 7 == 5 ? -1
				 : 36.2f + 0.7f * (float)(i % 6) *
						   /* i % 7 == 3: lost_s is unknown (0); i % 7 == 5:
						    * without the node there is no plan (-1). */
						   (float)(i % 6);
	if (i % 8 != 7)
		n->spent = (struct device_time){ { 650000 + i * 10000, i % 3 * 90000,
						   600000 + i % 5 * 250000, 1200000 } };
	if (i < r->o.gpus)
		n->gpu = gpus[i % (sizeof(gpus) / sizeof(gpus[0]))];
	snprintf(n->location, sizeof(n->location), "%s", places[i * 5 % 12]);
	snprintf(n->device, sizeof(n->device), i < r->o.gpus ? "cuda:0:bf16" : "cpu");
	snprintf(n->host, sizeof(n->host), "localhost");
	snprintf(n->why, sizeof(n->why), "%s", why);
	send(r, &m);
}

static void send_status(struct run *r, uint64_t iteration, int64_t started, uint8_t phase,
			uint32_t alive)
{
	struct msg m = { .type = MSG_SEE_STATUS };
	struct msg_see_status *t = &m.u.see_status;

	t->phase = phase;
	t->iteration = iteration;
	t->committed = iteration - 1;
	t->epoch = 7;
	t->alive = alive;
	t->n_nodes = r->o.nodes;
	t->path_length = r->o.path_length;
	t->n_stages = r->o.stages;
	t->now_us = r->now;
	t->iteration_started_us = started;
	snprintf(t->doing, sizeof(t->doing), "iteration %llu", (unsigned long long)iteration);
	send(r, &m);
}

static void send_note(struct run *r, uint64_t id, uint8_t kind, char mark, uint64_t iteration,
		      uint64_t command, const char *text)
{
	struct msg m = { .type = MSG_SEE_NOTE };
	struct msg_see_note *n = &m.u.see_note;

	n->id = id;
	n->at_us = r->now;
	n->wall_us = STREAM_WALL_US + r->now - STREAM_START_US;
	n->iteration = iteration;
	n->kind = kind;
	n->mark = mark;
	n->node = -1;
	n->command = command;
	snprintf(n->text, sizeof(n->text), "%s", text);
	send(r, &m);
}

/* Stages are skipped from this iteration on. */
enum { SKIPS_FROM = 12 };

static void send_iteration(struct run *r, uint64_t i, double took, double predicted,
			   uint32_t collisions, uint32_t alive)
{
	struct msg m = { .type = MSG_SEE_ITERATION };
	struct msg_see_iteration *t = &m.u.see_iteration;

	t->iteration = i;
	t->epoch = i < SKIPS_FROM ? 6 : 7;
	t->predicted_sync_s = i < SKIPS_FROM ? 5.2f : 4.4f;
	t->sync_s = t->predicted_sync_s * 0.8f;
	snprintf(t->algorithm, sizeof(t->algorithm), "best");
	t->loss = (float)(2.1 + 2.4 * exp(-(double)i / 18) + 0.05 * sin((double)i * 1.7));
	t->iteration_s = (float)took;
	t->predicted_s = (float)predicted;
	t->real_s = (float)(took * r->o.time_scale * 1.1);
	t->collisions = collisions;
	t->wait_s = (float)(collisions * 0.31);
	t->idle_fraction = 0.24f;
	t->gradient_norm = 1.02f;
	t->clip = 0.98f;
	t->lr = 3e-4f;
	t->tokens_per_s = 14400;
	t->alive = alive;
	t->path_length = i < SKIPS_FROM ? r->o.stages : r->o.path_length;
	t->at_us = r->now;
	t->wall_us = STREAM_WALL_US + r->now - STREAM_START_US;
	send(r, &m);
	if (i % 5 == 0) {
		struct msg v = { .type = MSG_SEE_VALIDATION };

		v.u.see_validation =
			(struct msg_see_validation){ i, (float)(2.2 + 2.35 * exp(-(double)i / 18)),
						     0 };
		send(r, &v);
	}
}

static double send_plan(struct run *r)
{
	struct msg m = { .type = MSG_SEE_PLAN };
	struct msg_see_plan *p = &m.u.see_plan;
	uint32_t visits[MSG_STAGES] = { 0 };
	double took = (double)simulate(r, 0, 0) / 1e6 / r->o.time_scale;

	for (uint32_t i = 0; i < r->n_microbatches; i++)
		for (uint32_t h = 0; h < r->routes[i].n_hops; h++)
			visits[r->routes[i].stages[h]]++;
	p->epoch = 7;
	p->iteration = r->o.past + 1;
	p->path_length = r->o.path_length;
	p->n_stages = r->o.stages;
	p->iteration_s = (float)took;
	p->sync_s = 4.4f;
	p->wait_s = 2.1f;
	p->lower_bound_s = (float)(took * 0.9);
	p->idle_fraction = 0.2f;
	snprintf(p->algorithm, sizeof(p->algorithm), "best");
	snprintf(p->reason, sizeof(p->reason), "skip 2/6");
	p->elapsed_s = 0.08f;
	p->n_visits = r->o.stages;
	p->visits = visits;
	p->n_routes = r->n_microbatches;
	p->routes = r->routes;
	p->n_planned = r->n_events;
	p->planned = r->events;
	send(r, &m);
	return took;
}

/* Sends the links between all nodes. If there are more than 100 nodes, sends only the links
 * between the first 20. The link n06>n12 is slow. */
static void send_links(struct run *r)
{
	uint32_t nodes = r->o.nodes <= 100 ? r->o.nodes : 20, n = 0;
	struct msg_link *links = alloc_array((size_t)nodes * nodes, sizeof(*links));
	struct msg m = { .type = MSG_SEE_LINKS };

	for (uint32_t a = 0; a < nodes; a++) {
		for (uint32_t b = 0; b < nodes; b++) {
			float d = (float)delay_s(a, b);
			bool slow = a == 6 && b == 12;

			if (a == b)
				continue;
			links[n++] = (struct msg_link){
				.from = (uint16_t)a,
				.to = (uint16_t)b,
				.latency_s = d * 0.1f,
				.spread_s = d * 0.004f,
				.bandwidth_bytes_per_s = 1e7f / d,
				.loss = slow ? 0.008f : 0,
				.planned_delay_s = d,
				.measured_delay_s =
					d * (slow ? 4.1f : 1 + 0.1f * (float)((a + b) % 9))
			};
		}
	}
	for (uint32_t i = 0; i < n; i += 8192) { /* in several messages, as the controller does */
		m.u.see_links = (struct msg_see_links){ n - i < 8192 ? n - i : 8192, &links[i] };
		send(r, &m);
	}
	free(links);
}

static double send_snapshot(struct run *r)
{
	struct msg m = { .type = MSG_SEE_RUN };
	double predicted;

	snprintf(m.u.see_run.name, sizeof(m.u.see_run.name), "demo");
	snprintf(m.u.see_run.model, sizeof(m.u.see_run.model), "llama-tiny 1.3M");
	m.u.see_run.run = 1;
	m.u.see_run.parameters = 1300000;
	m.u.see_run.n_nodes = r->o.nodes;
	m.u.see_run.n_stages = r->o.stages;
	m.u.see_run.microbatches = r->n_microbatches;
	m.u.see_run.per_data_node = r->o.waves;
	m.u.see_run.time_scale = r->o.time_scale;
	m.u.see_run.started_wall_us = STREAM_WALL_US;
	m.u.see_run.baseline_s = 79.9;
	m.u.see_run.emulated = 1;
	send(r, &m);
	for (uint32_t i = 0; i < r->o.nodes; i++)
		send_node(r, i, NODE_LIVE, "");
	predicted = send_plan(r);
	for (uint32_t i = 1; i <= r->o.past; i++) {
		double predicted_s = i < SKIPS_FROM ? 1.6 * predicted : predicted;

		send_iteration(r, i, predicted_s * (1 + 0.03 * sin((double)i)), predicted_s,
			       3 + i % 4, r->o.nodes);
	}
	send_note(r, 1, NOTE_EVENT, 0, 1, 0, "the run began: 20 agents on this machine");
	send_note(r, 2, NOTE_COMMAND, 'S', 12, 1, "skip 0 > 2 of 6 from iteration 12");
	send_note(r, 3, NOTE_PREDICTION, 0, 12, 0,
		  "skip 0 > 2: 53.3 > 33.3 s predicted, 34.1 s measured (+2%) ok");
	send_note(r, 4, NOTE_WARNING, 0, 30, 0, "link n06>n12 takes 7.9s, 4.1 times the plan");
	send_links(r);
	send_status(r, r->o.past + 1, r->now, PHASE_COMPUTING, r->o.nodes);
	m = (struct msg){ .type = MSG_SEE_SYNCED };
	m.u.see_synced.sequence = r->sequence;
	send(r, &m);
	return predicted;
}

/* Sends the events of every 100 ms in one message, and a status every 200 ms. */
static void send_live(struct run *r, uint64_t iteration, int64_t started, uint32_t alive)
{
	uint32_t sent = 0, turn = 0;

	while (sent < r->n_events) {
		struct msg m = { .type = MSG_SEE_TASKS };
		uint32_t n = sent;

		r->now += 100000;
		while (n < r->n_events && n - sent < 4096 && r->events[n].at_us <= r->now)
			n++;
		m.u.see_tasks = (struct msg_see_tasks){ iteration, 0, n - sent, r->events + sent };
		if (n > sent)
			send(r, &m);
		sent = n;
		if (++turn % 2 == 0)
			send_status(r, iteration, started, PHASE_COMPUTING, alive);
	}
}

static void lose_node(struct run *r, uint64_t iteration)
{
	char text[96];

	send_node(r, (uint32_t)r->o.dead, NODE_DEAD, "no heartbeat for 0.5 s");
	snprintf(text, sizeof(text), "n%02d heartbeat lost; 4 microbatches run again", r->o.dead);
	send_note(r, 5, NOTE_ALERT, 'F', iteration, 0, text);
	make_routes(r);
}

static void allocate(struct run *r)
{
	uint32_t M;

	r->n_data = r->o.nodes / 4 > 0 ? r->o.nodes / 4 : 1;
	M = r->n_microbatches = r->n_data * r->o.waves;
	r->most_events = M * (2 * r->o.path_length + 1) * 3;
	r->stage_of = alloc_array(r->o.nodes, sizeof(*r->stage_of));
	r->first = alloc_array(r->o.stages + 1, sizeof(*r->first));
	r->routes = alloc_array(M, sizeof(*r->routes));
	r->events = alloc_array(r->most_events, sizeof(*r->events));
	r->heap = alloc_array(M * 2 + r->o.nodes, sizeof(*r->heap));
	r->workers = alloc_array(r->o.nodes, sizeof(*r->workers));
}

int64_t stream_run(const struct stream_options *o, stream_sink *sink, void *context)
{
	struct run r = { .o = *o, .now = STREAM_START_US, .sink = sink, .context = context };
	double predicted;

	rng_init(&r.rng, o->seed);
	allocate(&r);
	r.first[1] = r.n_data;
	for (uint32_t s = 2; s <= o->stages; s++)
		r.first[s] = r.n_data + (o->nodes - r.n_data) * (s - 1) / (o->stages - 1);
	for (uint32_t s = 0; s < o->stages; s++)
		for (uint32_t i = r.first[s]; i < r.first[s + 1]; i++)
			r.stage_of[i] = s;
	r.o.dead = -1;
	make_routes(&r);
	r.o.dead = o->dead;
	predicted = send_snapshot(&r);
	for (uint32_t i = 0; i < o->live; i++) {
		uint64_t iteration = o->past + 1 + i;
		uint32_t alive = o->nodes - (o->dead >= 0 && i > 0), waits = 0;
		int64_t started = r.now, done;

		if (o->dead >= 0 && i == 1)
			lose_node(&r, iteration);
		done = simulate(&r, started, 0.08);
		for (uint32_t e = 0; e < r.n_events; e++)
			waits += r.events[e].type == WORK_WAITS;
		send_live(&r, iteration, started, alive);
		send_iteration(&r, iteration, (double)(done - started) / 1e6 / o->time_scale,
			       predicted, waits, alive);
		send_status(&r, iteration, started, PHASE_COMMITTING, alive);
		r.now += 100000;
	}
	free(r.stage_of);
	free(r.first);
	free(r.routes);
	free(r.events);
	free(r.heap);
	free(r.workers);
	return r.now;
}
