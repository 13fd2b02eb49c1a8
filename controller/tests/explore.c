/* explore.c - for tests: explores all states of a model of the protocol, breadth first.
 *
 * One table has a hash of each state's name. After the search, a second pass checks that the
 * iteration can end from every state, except states in which a stage has no node left. */
#include "base/tests/test.h"
#include "controller/tests/explore.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t NOBODY = UINT64_MAX;

struct search {
	const struct protocol *p;
	struct explored found;
	/* Hash table of `size` entries. Each entry has half of the hash of a state's name, and
	 * the state's number; NOBODY: the entry is unused */
	uint64_t *table;
	size_t size;
	uint64_t *hashes;
	uint32_t *before; /* for each state, the state from which it was first reached */
	uint32_t n, room;
	/* Names of the states at this depth and at the next depth. A name consists of nodes + 1
	 * numbers */
	uint64_t *now, *next;
	uint32_t n_now, n_next, room_next, first; /* first: the number of the state now[0] */
	/* results of steps that need no fault, ordered by the state before the step */
	uint32_t *edges;
	uint64_t n_edges, room_edges;
	uint64_t *edges_to; /* for each state, the index in `edges` after its last step */
	uint8_t *ends;      /* for each state: true if the iteration may end from this state */
	uint32_t at;        /* the state whose steps are being explored */
	const struct p_state *at_state;
	const uint64_t *at_name;
	uint32_t wrong_at;
	uint64_t wrong_hash;
};

static void *grown(void *old, size_t n)
{
	void *new = realloc(old, n);

	assert_non_null(new);
	return new;
}

/* Each entry has half of the hash, so that most names need not be compared. */
static uint64_t entry_of(uint64_t hash, uint32_t number)
{
	return hash >> 32 << 32 | number;
}

static bool is_of(const struct search *x, uint64_t entry, uint64_t hash)
{
	return entry >> 32 == hash >> 32 && x->hashes[(uint32_t)entry] == hash;
}

static void grow_table(struct search *x)
{
	x->size = x->size ? 2 * x->size : 1 << 16;
	x->table = grown(x->table, x->size * sizeof(*x->table));
	memset(x->table, 0xff, x->size * sizeof(*x->table));
	for (uint32_t i = 0; i < x->n; i++) {
		size_t at = x->hashes[i] & (x->size - 1);

		while (x->table[at] != NOBODY)
			at = (at + 1) & (x->size - 1);
		x->table[at] = entry_of(x->hashes[i], i);
	}
}

static size_t name_length(const struct search *x)
{
	return (size_t)x->p->nodes + 1;
}

static uint64_t mix(uint64_t h)
{
	h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
	h = (h ^ h >> 27) * 0x94d049bb133111ebu;
	return h ^ h >> 31;
}

static uint64_t hash_of(const struct search *x, const uint64_t *name)
{
	uint64_t h = 0;

	for (size_t i = 0; i < name_length(x); i++)
		h = mix(h + name[i] + 0x9e3779b97f4a7c15u);
	return h;
}

static uint64_t hash_state(const struct search *x, const struct p_state *s)
{
	uint64_t name[P_NAME];

	protocol_name(x->p, s, NULL, NULL, name);
	return hash_of(x, name);
}

static void keep_next(struct search *x, const uint64_t *name)
{
	if (x->n_next == x->room_next) {
		x->room_next = x->room_next ? 2 * x->room_next : 1024;
		x->next = grown(x->next, x->room_next * name_length(x) * sizeof(*x->next));
	}
	memcpy(x->next + x->n_next++ * name_length(x), name, name_length(x) * sizeof(*name));
}

static void add(struct search *x, const struct p_state *s, const uint64_t *name, uint64_t hash)
{
	if (x->n == x->room) {
		x->room = x->room ? 2 * x->room : 1 << 15;
		x->hashes = grown(x->hashes, x->room * sizeof(*x->hashes));
		x->before = grown(x->before, x->room * sizeof(*x->before));
		x->edges_to = grown(x->edges_to, x->room * sizeof(*x->edges_to));
		x->ends = grown(x->ends, x->room);
	}
	x->hashes[x->n] = hash;
	x->before[x->n] = x->at;
	/* A state in which a stage has no node left counts as an end, because the iteration cannot
	 * continue. */
	x->ends[x->n] = protocol_ended(x->p, s) || !protocol_can_end(x->p, s);
	x->found.ended += protocol_ended(x->p, s);
	x->found.hopeless += !protocol_can_end(x->p, s);
	x->n++;
	keep_next(x, name);
}

/* Returns the state's number. Adds the state if it is new. */
static uint32_t find(struct search *x, const struct p_state *s)
{
	uint64_t name[P_NAME], hash;
	size_t at;

	protocol_name(x->p, s, x->at_state, x->at_name, name);
	hash = hash_of(x, name);
	if (2 * (size_t)(x->n + 1) > x->size)
		grow_table(x);
	at = hash & (x->size - 1);
	while (x->table[at] != NOBODY && !is_of(x, x->table[at], hash))
		at = (at + 1) & (x->size - 1);
	if (x->table[at] == NOBODY) {
		x->table[at] = entry_of(hash, x->n);
		add(x, s, name, hash);
	}
	return (uint32_t)x->table[at];
}

static void see(void *context, const struct p_step *step, const struct p_state *next,
		const char *wrong)
{
	struct search *x = context;
	uint32_t to;

	if (x->found.wrong)
		return;
	x->found.steps++;
	if (wrong) {
		x->found.wrong = wrong;
		x->wrong_at = x->at;
		x->wrong_hash = hash_state(x, next);
		return;
	}
	to = find(x, next);
	if (!step->free || to == x->at)
		return;
	if (x->n_edges == x->room_edges) {
		x->room_edges = x->room_edges ? 2 * x->room_edges : 1 << 16;
		x->edges = grown(x->edges, x->room_edges * sizeof(*x->edges));
	}
	x->edges[x->n_edges++] = to;
}

static void look_at_all(struct search *x)
{
	struct p_state s;

	protocol_begin(x->p, &s);
	x->at = UINT32_MAX;
	find(x, &s);
	while (x->n_next > 0 && !x->found.wrong) {
		uint64_t *was = x->now;

		x->first += x->n_now;
		x->now = x->next;
		x->n_now = x->n_next;
		x->next = NULL;
		x->n_next = x->room_next = 0;
		free(was);
		for (uint32_t i = 0; i < x->n_now && !x->found.wrong; i++) {
			x->at = x->first + i;
			x->at_name = x->now + i * name_length(x);
			x->at_state = &s;
			protocol_read(x->p, x->at_name, &s);
			protocol_next(x->p, &s, see, x);
			x->edges_to[x->at] = x->n_edges;
		}
	}
}

/* Checks that the iteration can end from every state without a further fault. A state in which a
 * stage has no node left counts as an end. Most steps lead to states with higher numbers, so a few
 * passes from the last state to the first suffice. */
static void look_for_ends(struct search *x)
{
	bool more = true;

	while (more) {
		more = false;
		for (uint32_t i = x->n; i-- > 0;) {
			uint64_t from = i ? x->edges_to[i - 1] : 0;

			for (uint64_t k = from; k < x->edges_to[i] && !x->ends[i]; k++) {
				x->ends[i] = x->ends[x->edges[k]];
				more = more || x->ends[i];
			}
		}
	}
	for (uint32_t i = 0; i < x->n; i++)
		if (!x->ends[i]) {
			x->found.wrong = "it cannot end";
			x->wrong_at = i;
			return;
		}
}

/* ---- the trace of a violation ---- */

struct trace {
	const struct search *x;
	uint64_t to;
	const char *wrong;
	struct p_step step;
	struct p_state next;
	bool found;
};

static void look_for(void *context, const struct p_step *step, const struct p_state *next,
		     const char *wrong)
{
	struct trace *t = context;

	if (t->found || wrong != t->wrong || hash_state(t->x, next) != t->to)
		return;
	t->found = true;
	t->step = *step;
	t->next = *next;
}

static void print_step(struct trace *t, struct p_state *s, uint64_t to, const char *wrong,
		       FILE *out)
{
	t->to = to;
	t->wrong = wrong;
	t->found = false;
	protocol_next(t->x->p, s, look_for, t);
	assert_true(t->found);
	if (t->step.node >= 0)
		fprintf(out, "n%d ", t->step.node);
	fprintf(out, "%s", protocol_event_name(t->step.event));
	if (t->step.arg >= 0)
		fprintf(out, " (%d)", t->step.arg);
	fprintf(out, "\n");
	*s = t->next;
	protocol_print(t->x->p, s, out);
}

static void print_trace(const struct search *x, FILE *out)
{
	uint32_t path[1024], n = 0;
	struct trace t = { .x = x };
	struct p_state s;

	for (uint32_t at = x->wrong_at; at != 0; at = x->before[at]) {
		assert_true(n < 1024);
		path[n++] = at;
	}
	protocol_begin(x->p, &s);
	while (n-- > 0)
		print_step(&t, &s, x->hashes[path[n]], NULL, out);
	if (x->wrong_hash)
		print_step(&t, &s, x->wrong_hash, x->found.wrong, out);
	fprintf(out, "%s\n", x->found.wrong);
}

struct explored explore(const struct protocol *p, FILE *trace)
{
	struct search x = { .p = p };

	look_at_all(&x);
	if (!x.found.wrong)
		look_for_ends(&x);
	if (x.found.wrong && trace)
		print_trace(&x, trace);
	x.found.states = x.n;
	free(x.table);
	free(x.hashes);
	free(x.before);
	free(x.edges_to);
	free(x.ends);
	free(x.edges);
	free(x.now);
	free(x.next);
	return x.found;
}
