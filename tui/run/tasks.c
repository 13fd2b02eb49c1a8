/* Derives from task events the tasks of each node, the queues and the positions of microbatches.
 *
 * Events arrive in batches from many agents. They are in order for each node, but only nearly in
 * order between nodes. Each node's tasks therefore simply follow its events. A microbatch only
 * moves forward along its chain: if an ENDS arrives after the STARTS at the next node, the ENDS
 * only sets the end time of its own task.
 */
#include "tui/run/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "wire/chain.h"

int64_t state_bound_us(int64_t t_us)
{
	return t_us < 0 ? 0 : t_us > INT64_C(1) << 58 ? INT64_C(1) << 58 : t_us;
}

/* ---- questions ---- */

const struct state_segment *state_segment_back(const struct state_node *n, uint64_t i)
{
	if (i >= n->n_segments || i >= STATE_SEGMENTS)
		return NULL;
	return &n->segments[(n->n_segments - 1 - i) % STATE_SEGMENTS];
}

const struct state_segment *state_newest(const struct state_node *n)
{
	return state_segment_back(n, 0);
}

const struct state_wait *state_wait_back(const struct state_node *n, uint64_t i)
{
	if (i >= n->n_waits || i >= STATE_WAITS)
		return NULL;
	return &n->waits[(n->n_waits - 1 - i) % STATE_WAITS];
}

const struct state_wait *state_collision_back(const struct state *s, uint64_t i)
{
	if (i >= s->n_collisions || i >= STATE_COLLISIONS)
		return NULL;
	return &s->collisions[(s->n_collisions - 1 - i) % STATE_COLLISIONS];
}

const struct state_flight *state_flight(const struct state *s, uint32_t microbatch)
{
	if (microbatch >= s->n_flights || !s->flights[microbatch].known)
		return NULL;
	return &s->flights[microbatch];
}

bool state_flight_moves(const struct state_flight *f)
{
	return f->known && f->phase != FLIGHT_UNBORN && f->phase != FLIGHT_DONE &&
	       !(f->phase == FLIGHT_WAITING && f->position == 0);
}

uint16_t state_chain_node(const struct state_flight *f, uint32_t position)
{
	return f->route.nodes[chain_hop(f->route.n_hops, position)];
}

uint8_t state_chain_stage(const struct state_flight *f, uint32_t position)
{
	return f->route.stages[chain_hop(f->route.n_hops, position)];
}

enum task_kind state_chain_kind(const struct state_flight *f, uint32_t position)
{
	return chain_kind(f->route.n_hops, position);
}

uint32_t state_waiting(const struct state *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_nodes; i++)
		for (uint32_t q = 0; q < s->nodes[i].n_queue; q++)
			n += !s->nodes[i].queue[q].first;
	return n;
}

/* Replaces the node of a hop. The results of the replaced node are lost, so a microbatch that was
 * at this node goes back to the previous hop. */
static void replace_node(struct state_flight *f, uint32_t hop, uint16_t node)
{
	uint32_t n = f->route.n_hops, at = f->position;

	if (f->route.nodes[hop] == node)
		return;
	f->route.nodes[hop] = node;
	memset(&f->chain[hop], 0, sizeof(f->chain[hop]));
	memset(&f->chain[2 * n - hop], 0, sizeof(f->chain[hop]));
	if (hop == 0)
		memset(&f->chain[n], 0, sizeof(f->chain[n]));
	if (f->phase == FLIGHT_TRAVELLING ||
	    (at != hop && at != 2 * n - hop && (hop != 0 || at != n)))
		return;
	f->position -= at > 0;
	f->phase = at > 0 ? FLIGHT_TRAVELLING : FLIGHT_UNBORN;
}

/* If an event comes from a node that is not in the path, the microbatch runs again on this node.
 * The node then replaces the path's node of the same stage. */
static void take_detour(const struct state *s, struct state_flight *f, uint16_t node)
{
	if (chain_find(f->route.nodes, f->route.n_hops, node) >= 0)
		return;
	for (uint32_t h = 0; s->nodes[node].known && h < f->route.n_hops; h++)
		if (f->route.stages[h] == s->nodes[node].see.stage)
			replace_node(f, h, node);
}

/* Returns the chain position of the event's task; -1: the node is not in the path. The node gives
 * the position, because a path visits a node only once. */
static int position_of(const struct state_flight *f, const struct msg_task_event *e)
{
	int hop = chain_find(f->route.nodes, f->route.n_hops, e->node);

	if (hop < 0 || (e->kind == TASK_LOSS && hop > 0))
		return -1;
	return (int)chain_position(f->route.n_hops, (uint32_t)hop, (enum task_kind)e->kind);
}

/* ---- flights ---- */

static void clear_flight(struct state_flight *f)
{
	f->phase = FLIGHT_UNBORN;
	f->position = 0;
	f->since_us = 0;
	f->loss = 0;
	memset(f->chain, 0, sizeof(f->chain));
}

static void make_flights(struct state *s, uint32_t n)
{
	if (n <= s->n_flights)
		return;
	s->flights = alloc_resize(s->flights, n, sizeof(*s->flights));
	memset(s->flights + s->n_flights, 0, (n - s->n_flights) * sizeof(*s->flights));
	s->n_flights = n;
}

/* Returns true if the new route only replaces nodes, so that the microbatch continues where it
 * is. */
static bool keeps_progress(const struct state_flight *f, const struct route *r)
{
	const struct route *old = &f->route;

	return f->known && old->n_hops > 0 && old->n_hops == r->n_hops &&
	       old->attempt < r->attempt && old->attempt >= r->since &&
	       memcmp(old->stages, r->stages, r->n_hops) == 0;
}

void state_take_routes(struct state *s, const struct route *routes, uint32_t n)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < n; i++)
		if (routes[i].microbatch < MSG_MICROBATCHES && routes[i].microbatch + 1 > most)
			most = routes[i].microbatch + 1;
	make_flights(s, most);
	for (uint32_t i = 0; i < n; i++) {
		const struct route *r = &routes[i];
		struct state_flight *f;
		bool same;

		if (r->microbatch >= most || r->n_hops > MSG_STAGES)
			continue;
		f = &s->flights[r->microbatch];
		/* A route of a rerun has a higher attempt than the microbatch's previous route. A
		 * route of a plan has the attempt 0. */
		same = f->known && f->route.attempt >= r->attempt && f->route.n_hops == r->n_hops &&
		       memcmp(f->route.nodes, r->nodes, r->n_hops * sizeof(*r->nodes)) == 0;
		if (same)
			continue;
		if (keeps_progress(f, r)) {
			f->reruns += f->begun;
			f->route.attempt = r->attempt;
			for (uint32_t h = 0; h < r->n_hops; h++)
				replace_node(f, h, r->nodes[h]);
			continue;
		}
		f->known = true;
		f->route.microbatch = r->microbatch;
		f->reruns += f->begun && f->route.attempt < r->attempt;
		if (f->route.attempt < r->attempt)
			f->route.attempt = f->route.since = r->attempt;
		f->route.shard = r->shard;
		f->route.wave = r->wave;
		f->route.n_hops = r->n_hops;
		if (r->n_hops > 0) {
			memcpy(f->route.nodes, r->nodes, r->n_hops * sizeof(*r->nodes));
			memcpy(f->route.stages, r->stages, r->n_hops);
		}
		clear_flight(f);
	}
}

/* Moves a microbatch forward to (position, phase). Does nothing if the microbatch is already at a
 * later position, or in a later phase of this position. */
static void advance_flight(struct state_flight *f, uint32_t position, enum flight_phase phase,
			   int64_t at_us)
{
	if (position < f->position || (position == f->position && phase < f->phase))
		return;
	f->position = position;
	f->phase = (uint8_t)phase;
	f->since_us = at_us;
}

static void move_flight(struct state *s, const struct msg_task_event *e)
{
	struct state_flight *f;
	uint16_t before;
	bool newer;
	int p;

	if (e->kind == TASK_EVALUATE || !state_flight(s, e->microbatch))
		return;
	f = &s->flights[e->microbatch];
	if (e->attempt < f->route.since)
		return;
	before = f->route.nodes[0];
	newer = e->attempt > f->route.attempt;
	if (newer) {
		f->route.attempt = e->attempt;
		f->reruns += f->begun;
	}
	if (e->attempt == f->route.attempt)
		take_detour(s, f, e->node);
	p = position_of(f, e);
	/* The data node starts the microbatch again from the beginning. */
	if (newer && p == 0 && e->node == before) {
		f->route.since = e->attempt;
		clear_flight(f);
	}
	f->begun = true;
	if (p < 0)
		return;
	switch (e->type) {
	case WORK_WAITS:
		f->chain[p].arrived_us = e->at_us;
		f->chain[p].blocker = e->blocker;
		advance_flight(f, (uint32_t)p, FLIGHT_WAITING, e->at_us);
		break;
	case WORK_STARTS:
		f->chain[p].arrived_us = e->arrived_us ? e->arrived_us : e->at_us;
		f->chain[p].started_us = e->at_us;
		advance_flight(f, (uint32_t)p, FLIGHT_RUNNING, e->at_us);
		break;
	default:
		f->chain[p].ended_us = e->at_us;
		if (e->kind == TASK_LOSS)
			f->loss = e->loss;
		advance_flight(f, (uint32_t)p,
			       (uint32_t)p == 2 * f->route.n_hops ? FLIGHT_DONE : FLIGHT_TRAVELLING,
			       e->at_us);
	}
}

/* ---- nodes ---- */

static bool is_first(const struct state *s, const struct msg_task_event *e)
{
	const struct state_flight *f = state_flight(s, e->microbatch);

	return e->kind == TASK_FORWARD && f && f->route.n_hops > 0 && f->route.nodes[0] == e->node;
}

static void enqueue_task(struct state *s, struct state_node *n, const struct msg_task_event *e)
{
	struct state_wait w = { e->at_us,   INT64_MAX, s->current.iteration, e->microbatch,
				e->blocker, e->node,   e->kind,      is_first(s, e) };

	for (uint32_t i = 0; i < n->n_queue; i++)
		if (n->queue[i].microbatch == e->microbatch && n->queue[i].kind == e->kind)
			return;
	if (!w.first)
		s->current.collisions++;
	if (n->n_queue == STATE_QUEUE) {
		n->queue_overflow++;
		return;
	}
	n->queue[n->n_queue++] = w;
}

static void dequeue_task(struct state *s, struct state_node *n, const struct msg_task_event *e)
{
	for (uint32_t i = 0; i < n->n_queue; i++) {
		struct state_wait w = n->queue[i];

		if (w.microbatch != e->microbatch || w.kind != e->kind)
			continue;
		memmove(&n->queue[i], &n->queue[i + 1], (--n->n_queue - i) * sizeof(w));
		w.to_us = e->at_us;
		n->waits[n->n_waits++ % STATE_WAITS] = w;
		if (!w.first) {
			s->collisions[s->n_collisions++ % STATE_COLLISIONS] = w;
			s->current.wait_us += w.to_us - w.from_us;
		}
		return;
	}
	if (n->queue_overflow > 0 && n->n_queue == STATE_QUEUE)
		n->queue_overflow--;
}

static void start_segment(struct state_iteration *current, struct state_node *n,
			  const struct msg_task_event *e)
{
	struct state_segment *open =
		n->running ? &n->segments[(n->n_segments - 1) % STATE_SEGMENTS] : NULL;

	if (open) /* the event that ended the previous task was lost */
		open->end_us = e->at_us > open->start_us ? e->at_us : open->start_us;
	n->segments[n->n_segments++ % STATE_SEGMENTS] =
		(struct state_segment){ e->at_us, INT64_MAX, current->iteration, e->microbatch,
					e->kind };
	n->running = true;
}

static void end_segment(struct state_node *n, const struct msg_task_event *e)
{
	struct state_segment *open;

	if (!n->running)
		return;
	open = &n->segments[(n->n_segments - 1) % STATE_SEGMENTS];
	if (open->microbatch != e->microbatch || open->kind != e->kind)
		return;
	open->end_us = e->at_us > open->start_us ? e->at_us : open->start_us;
	n->running = false;
}

static void move_node(struct state *s, const struct msg_task_event *e)
{
	struct state_node *n;

	if (e->node >= MSG_NODES)
		return;
	n = &s->nodes[e->node];
	if (e->node >= s->n_nodes)
		s->n_nodes = e->node + 1u;
	n->task_us = e->at_us;
	n->slots = e->slots;
	switch (e->type) {
	case WORK_WAITS:
		enqueue_task(s, n, e);
		break;
	case WORK_STARTS:
		dequeue_task(s, n, e);
		start_segment(&s->current, n, e);
		if (s->current.start_us == 0 || e->at_us < s->current.start_us)
			s->current.start_us = e->at_us;
		break;
	default:
		end_segment(n, e);
		if (e->at_us > s->current.end_us)
			s->current.end_us = e->at_us;
	}
}

/* Ends all tasks and waits of the current iteration. Some of them may still be open, because the
 * events of their ends were lost. */
static void end_iteration(struct state *s)
{
	int64_t end = s->current.end_us;

	s->current.start_us = s->current.end_us = 0;
	s->current.collisions = 0;
	s->current.wait_us = 0;
	for (uint32_t i = 0; i < s->n_flights; i++) {
		clear_flight(&s->flights[i]);
		s->flights[i].begun = false;
		/* Attempts count from 0 in each iteration. */
		s->flights[i].route.attempt = s->flights[i].route.since = 0;
		s->flights[i].reruns = 0;
	}
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		struct state_node *n = &s->nodes[i];
		struct state_segment *open =
			n->running ? &n->segments[(n->n_segments - 1) % STATE_SEGMENTS] : NULL;

		n->n_queue = n->queue_overflow = 0;
		if (open)
			open->end_us = end > open->start_us ? end : open->start_us;
		n->running = false;
	}
}

static void begin_iteration(struct state *s, uint64_t iteration)
{
	s->current.previous_start_us = s->current.start_us;
	end_iteration(s);
	s->current.iteration = iteration;
}

/* Forgets the tasks and waits of the current iteration, because the controller sends all of its
 * events again. */
static void forget_iteration(struct state *s)
{
	const struct state_segment *g;
	const struct state_wait *w;

	end_iteration(s);
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		struct state_node *n = &s->nodes[i];

		while ((g = state_newest(n)) && g->iteration == s->current.iteration)
			n->n_segments--;
		while ((w = state_wait_back(n, 0)) && w->iteration == s->current.iteration)
			n->n_waits--;
	}
	while ((w = state_collision_back(s, 0)) && w->iteration == s->current.iteration)
		s->n_collisions--;
}

void state_apply_tasks(struct state *s, const struct msg_see_tasks *t)
{
	if (t->iteration > s->current.iteration)
		begin_iteration(s, t->iteration);
	else if (t->iteration == s->current.iteration && t->whole)
		forget_iteration(s);
	if (t->iteration < s->current.iteration)
		return;
	for (uint32_t i = 0; i < t->n_events; i++) {
		struct msg_task_event e = t->events[i];

		e.at_us = state_bound_us(e.at_us);
		e.arrived_us = state_bound_us(e.arrived_us);
		move_node(s, &e);
		move_flight(s, &e);
	}
}

int state_busy_percent(const struct state_node *n, int64_t from, int64_t to)
{
	const struct state_segment *g;
	int64_t busy = 0;

	for (uint64_t i = 0; (g = state_segment_back(n, i)) != NULL; i++) {
		int64_t a = g->start_us > from ? g->start_us : from;
		int64_t b = g->end_us < to ? g->end_us : to;

		if (g->end_us < from)
			break;
		if (b > a)
			busy += b - a;
	}
	return to > from ? (int)((double)busy * 100 / (double)(to - from)) : 0;
}
