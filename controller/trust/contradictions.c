#include "controller/trust/contradictions.h"

#include "base/array.h"
#include "wire/msg.h"

#include <string.h>

enum { REMEMBERED = 200 /* iterations */, MOST = 20 };

bool contradiction_is_of(const struct contradiction *d, uint16_t id)
{
	return d->ids[0] == id || d->ids[1] == id;
}

uint16_t contradiction_other(const struct contradiction *d, uint16_t id)
{
	return d->ids[d->ids[0] == id];
}

struct contradiction *contradictions_find(const struct contradictions *p, uint16_t a, uint16_t b)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (contradiction_is_of(&p->of[i], a) && contradiction_is_of(&p->of[i], b))
			return &p->of[i];
	return NULL;
}

static void forget_pair(struct contradictions *p, uint64_t iteration)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < p->n; i++)
		if (p->of[i].out >= 0 || p->of[i].iteration + REMEMBERED > iteration)
			p->of[kept++] = p->of[i];
	p->n = kept;
}

struct contradiction *contradictions_add(struct contradictions *p, uint16_t a, uint16_t b, uint64_t iteration)
{
	struct contradiction *d;

	forget_pair(p, iteration);
	d = contradictions_find(p, a, b);
	if (!d && array_grow(&p->of, &p->room, p->n + 1, sizeof(*p->of))) {
		d = &p->of[p->n++];
		*d = (struct contradiction){ { a, b }, -1, false, iteration };
	}
	if (d) {
		d->iteration = iteration;
		d->explained = false;
	}
	return d;
}

/* ---- smallest sets ---- */

struct graph {
	const struct contradictions *p;
	bool wrong[MSG_NODES]; /* these are in the set */
};

static bool is_open(const struct graph *g, const struct contradiction *d)
{
	return !d->explained && !g->wrong[d->ids[0]] && !g->wrong[d->ids[1]];
}

/* The other one of each open pair of it. Returns how many. */
static int take_others(struct graph *g, uint16_t id, uint16_t *taken)
{
	int n = 0;

	for (uint32_t i = 0; i < g->p->n; i++)
		if (is_open(g, &g->p->of[i]) && contradiction_is_of(&g->p->of[i], id))
			taken[n++] = contradiction_other(&g->p->of[i], id);
	for (int i = 0; i < n; i++)
		g->wrong[taken[i]] = true;
	return n;
}

static void put_back(struct graph *g, const uint16_t *taken, int n)
{
	for (int i = 0; i < n; i++)
		g->wrong[taken[i]] = false;
}

/* Who is in most open pairs, and in how many; of one that is in one only, the other. 0: none is open. */
static int pick_guilty(const struct graph *g, uint16_t *id, bool *surely)
{
	uint16_t in[MSG_NODES] = { 0 };
	int most = 0;

	for (uint32_t i = 0; i < g->p->n; i++)
		for (int k = 0; k < 2 && is_open(g, &g->p->of[i]); k++)
			if (++in[g->p->of[i].ids[k]] > most) {
				*id = g->p->of[i].ids[k];
				most = in[*id];
			}
	*surely = most <= 2; /* in a circle, any one */
	for (uint32_t i = 0; i < g->p->n; i++)
		for (int k = 0; k < 2 && is_open(g, &g->p->of[i]); k++)
			if (in[g->p->of[i].ids[k]] == 1) {
				*id = g->p->of[i].ids[!k];
				*surely = true;
			}
	return most;
}

/* How many are to be added at least so that no pair is open; above `most`, more than that. */
static int least_cover(struct graph *g, int most)
{
	uint16_t id = 0, taken[MSG_NODES];
	bool surely;
	int with, others, n;

	if (pick_guilty(g, &id, &surely) == 0)
		return 0;
	if (most <= 0)
		return 1;
	g->wrong[id] = true;
	with = 1 + least_cover(g, most - 1);
	g->wrong[id] = false;
	if (surely)
		return with;
	others = n = take_others(g, id, taken);
	if (n < with)
		n += least_cover(g, (with - 1 < most ? with - 1 : most) - n);
	put_back(g, taken, others);
	return n < with ? n : with;
}

static int at_most(int n)
{
	return n < MOST ? n : MOST;
}

int contradictions_guilt(const struct contradictions *p, uint16_t id)
{
	struct graph g = { p, { false } };
	uint16_t taken[MSG_NODES];
	int wrong, right;

	g.wrong[id] = true;
	wrong = 1 + least_cover(&g, MOST);
	g.wrong[id] = false;
	right = take_others(&g, id, taken);
	if (right == 0)
		return 0;
	right += least_cover(&g, MOST - right);
	return at_most(right) - at_most(wrong);
}
