/* checkpoint.c - copies states into blocks of memory and back. One function, pass_state, lists the
 * parts of a state; it works in both directions. */
#include "tui/run/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"

/* The progress of copying the parts of a state, into a block or out of it. */
struct walk {
	struct checkpoint *to;         /* the block that is written; NULL: a block is read */
	const struct checkpoint *from; /* the block that is read; NULL: a block is written */
	size_t at;                     /* number of bytes that were read from the block */
};

static void pass(struct walk *w, void *part, size_t size)
{
	if (size == 0)
		return;
	if (w->to) {
		array_reserve(&w->to->bytes, &w->to->room, w->to->n + size, 1);
		memcpy(w->to->bytes + w->to->n, part, size);
		w->to->n += size;
	} else {
		memcpy(part, w->from->bytes + w->at, size);
		w->at += size;
	}
}

/* Copies n elements of an array. If a block is read, first allocates the array with room for `room`
 * elements. Returns the array. */
static void *pass_array(struct walk *w, void *array, size_t n, size_t room, size_t size)
{
	if (w->from)
		array = room > 0 ? alloc_array(room, size) : NULL;
	pass(w, array, n * size);
	return array;
}

static size_t used(uint64_t n, size_t room)
{
	return n < room ? (size_t)n : room;
}

static void pass_node(struct walk *w, struct state_node *n)
{
	pass(w, n, offsetof(struct state_node, segments));
	pass(w, n->segments, used(n->n_segments, STATE_SEGMENTS) * sizeof(n->segments[0]));
	pass(w, n->waits, used(n->n_waits, STATE_WAITS) * sizeof(n->waits[0]));
	pass(w, n->queue, used(n->n_queue, STATE_QUEUE) * sizeof(n->queue[0]));
}

static void pass_flight(struct walk *w, struct state_flight *f)
{
	pass(w, f, offsetof(struct state_flight, chain));
	pass(w, f->chain, used(2 * f->route.n_hops + 1, STATE_CHAIN) * sizeof(f->chain[0]));
}

static void pass_plan(struct walk *w, struct state_plan *p)
{
	uint32_t *first = pass_array(w, p->first, MSG_NODES + 1, MSG_NODES + 1, sizeof(*p->first));
	struct state_segment *tasks =
		pass_array(w, p->tasks, p->n_tasks, p->n_tasks, sizeof(*p->tasks));

	if (w->from) {
		p->first = first;
		p->tasks = tasks;
	}
}

static void pass_history(struct walk *w, struct state_history *h)
{
	struct state_history to = *h;

	to.iterations = pass_array(w, h->iterations, h->n_iterations, h->n_iterations,
				   sizeof(*h->iterations));
	to.validations = pass_array(w, h->validations, h->n_validations, h->n_validations,
				    sizeof(*h->validations));
	to.notes = pass_array(w, h->notes, h->n_notes, STATE_NOTES, sizeof(*h->notes));
	to.room_iterations = h->n_iterations;
	to.room_validations = h->n_validations;
	if (w->from)
		*h = to;
}

/* Copies all parts of a state. If a block is written, *s is not changed. */
static void pass_state(struct walk *w, struct state *s)
{
	struct state_node *nodes = s->nodes;
	struct state_flight *flights = s->flights;
	struct msg_link *links;

	pass(w, s, sizeof(*s));
	if (w->from) {
		nodes = s->nodes = alloc_array(MSG_NODES, sizeof(*nodes));
		flights = s->flights =
			s->n_flights ? alloc_array(s->n_flights, sizeof(*flights)) : NULL;
	}
	for (uint32_t i = 0; i < s->n_nodes; i++)
		pass_node(w, &nodes[i]);
	for (uint32_t i = 0; i < s->n_flights; i++)
		pass_flight(w, &flights[i]);
	pass_plan(w, &s->plan);
	for (uint32_t i = 0; i < s->n_candidates; i++)
		pass_plan(w, &s->candidates[i]);
	pass_history(w, &s->history);
	links = pass_array(w, s->links, s->n_links, s->n_links, sizeof(*links));
	if (w->from) {
		s->links = links;
		s->room_links = s->n_links;
	}
}

struct checkpoint checkpoint_of(const struct state *s)
{
	struct checkpoint c = { .n = 0 };
	struct walk w = { .to = &c };

	pass_state(&w, (struct state *)s);
	return c;
}

struct state *checkpoint_state(const struct checkpoint *c)
{
	struct state *s = alloc_new(sizeof(*s));
	struct walk w = { .from = c };

	pass_state(&w, s);
	return s;
}

void checkpoint_fini(struct checkpoint *c)
{
	free(c->bytes);
	memset(c, 0, sizeof(*c));
}
