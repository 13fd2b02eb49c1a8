/* protocol_names.c - for tests: converts states of the protocol's model to numbers and to text, and
 * makes the first state.
 *
 * An exploration stores millions of states, so a state is packed into one number for each node. */
#include "controller/tests/protocol_run.h"

#include <stddef.h>
#include <string.h>

/* ---- states as numbers ---- */

/* Kinds of fields. PLAIN: one value. BATCHES: a set of microbatches. EACH: a value for each
 * microbatch, side by side in the number. */
enum kind { PLAIN, BATCHES, EACH };

struct field {
	size_t at;
	int bits;
	enum kind kind;
};

#define NODE(name, bits, kind) \
	{ \
		offsetof(struct p_node, name), bits, kind \
	}
#define STATE(name, bits, kind) \
	{ \
		offsetof(struct p_state, name), bits, kind \
	}

static const struct field node_fields[] = {
	NODE(stage, 2, PLAIN),       NODE(at, 2, PLAIN),        NODE(standing, 2, PLAIN),
	NODE(on, 2, BATCHES),        NODE(owed, 2, BATCHES),    NODE(reported, 2, BATCHES),
	NODE(reduced, 1, PLAIN),     NODE(in_sum, 1, PLAIN),    NODE(given_up, 1, PLAIN),
	NODE(keeps, 2, PLAIN),       NODE(copies, 1, PLAIN),    NODE(copy_reduced, 1, PLAIN),
	NODE(alive, 1, PLAIN),       NODE(began, 2, PLAIN),     NODE(counted, 2, BATCHES),
	NODE(mine, 2, BATCHES),      NODE(has, 2, BATCHES),     NODE(view, 2, EACH),
	NODE(dropped, 2, BATCHES),   NODE(sum, 3, PLAIN),       NODE(wrong, 1, PLAIN),
	NODE(due, 1, PLAIN),         NODE(applied, 1, PLAIN),   NODE(copy_sum, 2, PLAIN),
	NODE(copy_wrong, 1, PLAIN),  NODE(copy_due, 1, PLAIN),  NODE(copy_applied, 1, PLAIN),
	NODE(fetching, 1, PLAIN),    NODE(layers, 2, PLAIN),    NODE(move.to, 2, PLAIN),
	NODE(move.listed, 1, PLAIN), NODE(move.load, 2, PLAIN), NODE(move.cut, 2, PLAIN),
};

static const struct field state_fields[] = {
	STATE(phase, 3, PLAIN),
	STATE(home, 2, BATCHES),
	STATE(changed, 2, BATCHES),
	STATE(over, 2, BATCHES),
	STATE(summing, 3, PLAIN),
	STATE(taken_over, 1, PLAIN),
	STATE(committed, 1, PLAIN),
	STATE(deaths, 2, PLAIN),
	STATE(wrongs, 2, PLAIN),
	STATE(takeovers, 2, PLAIN),
	STATE(format, 1, PLAIN),
	STATE(wanted, 1, PLAIN),
	STATE(changes, 1, PLAIN),
	STATE(tried, 1, PLAIN),
	STATE(sent, 2, PLAIN),
	STATE(stack, 2, PLAIN),
	STATE(moves, 2, PLAIN),
	STATE(started, 1, PLAIN),
	STATE(cut, 3, PLAIN),
	STATE(saved, 3, PLAIN),
	STATE(has_files, 1, PLAIN),
	STATE(content[0], 2, EACH),
	STATE(content[1], 2, EACH),
	STATE(content[2], 2, EACH),
	STATE(sums_reported[0], 3, PLAIN),
	STATE(sums_reported[1], 3, PLAIN),
	STATE(sums_reported[2], 3, PLAIN),
};

enum {
	N_NODE = sizeof(node_fields) / sizeof(node_fields[0]),
	N_STATE = sizeof(state_fields) / sizeof(state_fields[0])
};

static int bits_of(const struct field *f)
{
	return f->kind == EACH ? 2 * f->bits : f->bits;
}

static uint64_t number_of(const void *of, const struct field *f, int n)
{
	uint64_t number = 0;

	for (int i = 0; i < n; i++) {
		const uint8_t *v = (const uint8_t *)of + f[i].at;

		number = number << f[i].bits | *v;
		if (f[i].kind == EACH)
			number = number << f[i].bits | v[1];
	}
	return number;
}

/* Returns a mask of the first microbatch's bits in the number. The second microbatch's bits are to
 * their right. */
static uint64_t firsts(const struct field *f, int n, enum kind kind, int bits)
{
	uint64_t mask = 0;

	for (int i = 0; i < n; i++) {
		uint64_t each = (1u << bits) - 1;

		mask <<= bits_of(&f[i]);
		if (f[i].kind == kind)
			mask |= kind == EACH ? each << bits : 2;
	}
	return mask;
}

/* Finds out how the numbers of nodes and states change when the two microbatches are exchanged. */
static void learn_swaps(uint64_t *swaps)
{
	swaps[0] = firsts(node_fields, N_NODE, BATCHES, 1);
	swaps[1] = firsts(node_fields, N_NODE, EACH, 2);
	swaps[2] = firsts(state_fields, N_STATE, BATCHES, 1);
	swaps[3] = firsts(state_fields, N_STATE, EACH, 2);
}

static uint64_t swapped(uint64_t masks, uint64_t each, uint64_t x)
{
	uint64_t moved = masks | masks >> 1 | each | each >> 2;

	return (x & ~moved) | (x & masks) >> 1 | (x & masks >> 1) << 1 | (x & each) >> 2 |
	       (x & each >> 2) << 2;
}

static void read_number(uint64_t number, const struct field *f, int n, void *to)
{
	for (int i = n - 1; i >= 0; i--) {
		uint8_t *v = (uint8_t *)to + f[i].at;
		uint8_t mask = (uint8_t)((1 << f[i].bits) - 1);

		if (f[i].kind == EACH) {
			v[1] = (uint8_t)(number & mask);
			number >>= f[i].bits;
		}
		v[0] = (uint8_t)(number & mask);
		number >>= f[i].bits;
	}
}

static void sort(uint64_t *x, int n)
{
	for (int i = 1; i < n; i++) {
		uint64_t v = x[i];
		int at = i;

		for (; at > 0 && x[at - 1] > v; at--)
			x[at] = x[at - 1];
		x[at] = v;
	}
}

void protocol_name(const struct protocol *p, const struct p_state *s, const struct p_state *like,
		   const uint64_t *likes, uint64_t *name)
{
	uint64_t other[P_NAME];

	for (int i = 0; i < p->nodes; i++)
		name[i] = like && memcmp(&s->nodes[i], &like->nodes[i], sizeof(s->nodes[i])) == 0
				  ? likes[i]
				  : number_of(&s->nodes[i], node_fields, N_NODE);
	name[p->nodes] = number_of(s, state_fields, N_STATE);
	if (p->path[0] == p->path[1]) {
		for (int i = 0; i < p->nodes; i++)
			other[i] = swapped(p->swaps[0], p->swaps[1], name[i]);
		other[p->nodes] = swapped(p->swaps[2], p->swaps[3], name[p->nodes]);
		sort(other, p->nodes);
	}
	sort(name, p->nodes);
	if (p->path[0] == p->path[1] &&
	    memcmp(other, name, ((size_t)p->nodes + 1) * sizeof(*name)) < 0)
		memcpy(name, other, ((size_t)p->nodes + 1) * sizeof(*name));
}

void protocol_read(const struct protocol *p, const uint64_t *name, struct p_state *s)
{
	memset(s, 0, sizeof(*s));
	for (int i = 0; i < p->nodes; i++)
		read_number(name[i], node_fields, N_NODE, &s->nodes[i]);
	read_number(name[p->nodes], state_fields, N_STATE, s);
}

/* ---- the first state ---- */

struct protocol protocol_of(int stages, int each)
{
	struct protocol p = { .stages = stages,
			      .nodes = stages * each,
			      .deaths = 3,
			      .wrongs = 1,
			      .takeovers = 1,
			      .rules = P_ALL_RULES };

	for (int i = 0; i < p.nodes; i++)
		p.stage_of[i] = (uint8_t)(i / each);
	for (int m = 0; m < P_BATCHES; m++)
		p.path[m] = (uint8_t)((1 << stages) - 1);
	learn_swaps(p.swaps);
	return p;
}

/* Makes a first state in which nodes fetch copies of their source, as when an iteration has
 * begun. */
static void begin_stacking(const struct protocol *p, struct p_state *s)
{
	struct p_run r = { .p = p, .s = *s };

	if (!p->always)
		return;
	r.s.stack = P_STACK_LATER;
	for (int i = 0; i < p->nodes; i++)
		r.s.nodes[i].keeps = 0;
	p_stacking_turn(&r);
	for (int i = 0; i < p->nodes; i++)
		if (p->have_copies >> i & 1)
			r.s.nodes[i].fetching = 0;
	p_next_phase(&r);
	if (p->entered)
		r.s.stack = P_STACK_NEXT;
	if (p->overlap) /* a stage that no microbatch visits can sum at once */
		p_reduce_early(&r);
	*s = r.s;
}

/* Makes a first state in which nodes fetch copies of their next stage, as when an iteration has
 * begun. */
static void begin_moves(const struct protocol *p, struct p_state *s)
{
	struct p_run r = { .p = p, .s = *s };

	for (int i = 0; i < p->nodes; i++) {
		r.s.nodes[i].move.to = p->to[i];
		r.s.moves = p->to[i] ? P_MOVES_LATER : r.s.moves;
	}
	p_moves_fetch(&r);
	for (int i = 0; i < p->nodes; i++)
		if (p->to[i] && p->have_copies >> i & 1)
			r.s.nodes[i].fetching = 0;
	p_moves_prepare(&r);
	*s = r.s;
}

void protocol_begin(const struct protocol *p, struct p_state *s)
{
	memset(s, 0, sizeof(*s));
	s->deaths = (uint8_t)p->deaths;
	s->wrongs = (uint8_t)p->wrongs;
	s->takeovers = (uint8_t)p->takeovers;
	s->changes = (uint8_t)p->changes;
	s->cut = p->cuts ? P_CUT_WANTED : P_NO_CUT;
	s->tried = s->sent = !p->fresh;
	for (int i = 0; i < p->nodes; i++) {
		s->nodes[i].stage = s->nodes[i].at = p->stage_of[i];
		s->nodes[i].alive = !(p->absent >> i & 1);
		s->nodes[i].standing = s->nodes[i].alive ? P_LIVE : P_GONE;
		s->nodes[i].began = s->nodes[i].alive;
	}
	for (int m = 0; m < P_BATCHES; m++)
		for (int st = 0; st < p->stages; st++)
			for (int i = 0, k = 0; i < p->nodes; i++) {
				struct p_node *x = &s->nodes[i];

				if (x->stage != st || !x->alive || !(p->path[m] >> st & 1))
					continue;
				if (k++ == m % (int)p_count_replicas(s, p->nodes, st))
					x->on |= (uint8_t)(1 << m);
				x->mine = x->on;
			}
	begin_stacking(p, s);
	begin_moves(p, s);
	p_order_ahead(p, s);
	if (p->fresh) {
		s->wanted = 1;
		p_restart(s);
		for (int i = 0; i < p->nodes; i++) {
			s->nodes[i].on = s->nodes[i].began = 0;
			p_forget_iteration(&s->nodes[i]);
		}
	}
}

/* ---- as text ---- */

const char *protocol_event_name(enum p_event e)
{
	static const char *const names[P_EVENTS] = {
		"counts",
		"reports",
		"report dropped",
		"reports its sum",
		"reports another sum",
		"reports its copy's sum",
		"reports another sum of its copy",
		"its copy is overdue",
		"applies the commit",
		"applies it to its copy",
		"is killed",
		"is noticed to be dead",
		"is taken for dead",
		"is heard again and joins",
		"is a new process and joins",
		"keeps a copy",
		"has fetched its copy",
		"is heard again, the last of its stage",
		"is admitted",
		"a keeper's copy takes a stage over",
		"the iteration must restart",
		"the iteration restarts",
		"the controller dies",
		"another controller gathers",
		"has one home again",
		"the operator wants another format",
		"loses the copy for its move",
		"the listed nodes get their new stages",
		"a copy is late, so nobody moves",
		"is ordered to load its copy",
		"loads its copy",
		"reports that it has loaded its copy",
		"the operator orders other stages",
		"the nodes are asked to save the commit",
		"saves its stage",
		"a stage cannot be saved, so the stages stay",
		"the controller begins again and cuts the model",
		"joins the controller that has begun again",
		"reads its new stage",
		"the next iteration begins",
	};

	return names[e];
}

static void print_node(const struct p_node *x, int i, FILE *to)
{
	static const char *const standings[] = { "gone", "joiner", "syncing", "live" };
	static const char *const sums[] = { "-", "begun", "broken", "summed", "counting" };
	static const char *const origins[] = { "", ", neighbour's old layers",
					       ", neighbour's layers" };
	static const char *const loads[] = { "", ", loads", ", awaits a load", ", has loaded" };
	static const char *const cuts[] = { "", ", holds nothing", ", holds its new stage" };

	fprintf(to,
		"    n%d S%d %-7s %s on %d owed %d reported %d%s%s%s keeps %d%s | began %d counted "
		"%d "
		"mine %d has %d "
		"view %d%d sum %s%s%s%s copy %s%s%s%s%s%s%s\n",
		i, x->stage, standings[x->standing], x->alive ? "alive" : "DEAD ", x->on, x->owed,
		x->reported, x->reduced ? " reduced" : "", x->in_sum ? " in-sum" : "",
		x->given_up ? " given up" : "", x->keeps, x->copies ? " copies" : "", x->began,
		x->counted, x->mine, x->has, x->view[0], x->view[1], sums[x->sum],
		x->wrong ? " WRONG" : "", x->due ? " due" : "", x->applied ? " applied" : "",
		sums[x->copy_sum], x->copy_due ? " due" : "", x->copy_applied ? " applied" : "",
		x->fetching ? " fetching" : "", origins[x->layers], loads[x->move.load],
		cuts[x->move.cut]);
	if (x->move.to)
		fprintf(to, "      to S%d%s\n", x->move.to - 1, x->move.listed ? ", listed" : "");
}

void protocol_print(const struct protocol *p, const struct p_state *s, FILE *to)
{
	static const char *const phases[] = { "COMPUTING",           "REDUCING",
					      "STALLED (computing)", "STALLED (reducing)",
					      "STALLED (planning)",  "PLANNING",
					      "GATHERING",           "COMMITTED" };

	static const char *const stacks[] = { "", ", stacking waits", ", stacking is next",
					      ", stacked" };
	static const char *const moves[] = { "", ", moves wait", ", listed", ", moved" };
	static const char *const cuts[] = {
		"",         "",      ", the stages stay",    ", a cut is ordered",
		", saving", ", cut", ", cut, files in place"
	};

	fprintf(to,
		"  %s home %d changed %d summing %d%s, %d deaths %d wrong %d takeovers left, "
		"format %d wanted %d%s%s%s%s\n",
		phases[s->phase], s->home, s->changed, s->summing,
		s->taken_over ? " taken over" : "", s->deaths, s->wrongs, s->takeovers, s->format,
		s->wanted, stacks[s->stack], moves[s->moves], cuts[s->cut],
		s->started ? ", started" : "");
	for (int i = 0; i < p->nodes; i++)
		print_node(&s->nodes[i], i, to);
}
