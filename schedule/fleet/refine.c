/* Local search: in each round some random changes are planned at the same time, and the best one is
 * taken. */
#include "schedule/fleet/refine.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

enum {
	/* Number of changes that are planned at the same time, whatever the number of threads */
	AT_ONCE = 8,
	ATTEMPTS = 50, /* number of tries to find a possible change */
	PATIENCE = 25, /* number of rounds without an improvement after which the search gives up */
	/* number of restarts from a candidate that differs from the best one by several changes */
	RESTARTS = 8,
	MOST_DOUBLED = 5, /* a change moves 2^0 to 2^4 nodes together */
	SHAKES = 4        /* number of random changes of a candidate before a restart */
};
#define BETTER 0.9995 /* a change is taken only if the cost falls to this share or less */

static bool shift_layer(struct candidate *c, struct rng *rng)
{
	int from = (int)rng_below(rng, (uint32_t)c->n_stages);
	int to = (int)rng_below(rng, (uint32_t)c->n_stages);

	if (from == to || c->layers[from] <= (from > 0))
		return false;
	c->layers[from]--;
	c->layers[to]++;
	return true;
}

/* Returns a random node. In a large fleet, where most nodes are left out, a node that the candidate
 * uses is preferred half of the time. */
static int random_node(const struct candidate *c, const struct candidate_frame *f, struct rng *rng)
{
	int n = f->fleet->n_nodes, i = (int)rng_below(rng, (uint32_t)n);
	bool is_used = fleet_is_large(f->fleet) && rng_below(rng, 2);

	for (int tries = is_used ? n : 0; tries > 0 && c->stage_of[i] < 0; tries--)
		i = (int)rng_below(rng, (uint32_t)n);
	return i;
}

/* Returns a random stage; -1 stands for leaving the node out. */
static int random_stage(const struct candidate *c, struct rng *rng)
{
	return (int)rng_below(rng, (uint32_t)c->n_stages + 1) - 1;
}

/* Moves some nodes of one kind from one stage to another. */
static void move_nodes(struct candidate *c, const struct candidate_frame *f, struct rng *rng)
{
	int first = random_node(c, f, rng), from = c->stage_of[first], to = random_stage(c, rng);
	int k = 1 << rng_below(rng, MOST_DOUBLED);

	for (int i = first; k > 0 && i < f->fleet->n_nodes &&
			    f->fleet->nodes[i].entry == f->fleet->nodes[first].entry;
	     i++) {
		if (c->stage_of[i] != from)
			continue;
		c->stage_of[i] = to;
		k--;
	}
}

/* Returns true if the two nodes are machines of one kind with one card each. Exchanging them
 * changes nothing. */
static bool are_equal(int a, int b, const struct candidate_frame *f)
{
	return fleet_is_large(f->fleet) && f->fleet->nodes[a].entry == f->fleet->nodes[b].entry &&
	       fleet_machines_of(f->fleet, a)->cards == 1;
}

static bool exchange_nodes(struct candidate *c, const struct candidate_frame *f, struct rng *rng)
{
	int a = random_node(c, f, rng), b = random_node(c, f, rng), was = c->stage_of[a];

	if (was == c->stage_of[b] || are_equal(a, b, f))
		return false;
	c->stage_of[a] = c->stage_of[b];
	c->stage_of[b] = was;
	return true;
}

/* Moves random nodes into or out of stage 0, until the number of its nodes again divides the number
 * of microbatches. Stage 0 gets more nodes or fewer nodes, which is drawn at random. */
static bool resize_first(struct candidate *c, const struct candidate_frame *f, struct rng *rng)
{
	int n = candidate_size(c, 0, f), step = rng_below(rng, 2) ? 1 : -1;
	int microbatches = f->batch / c->sequences, want = n + step;

	while (want > 0 && want < f->fleet->n_nodes && microbatches % want != 0)
		want += step;
	if (want < 1 || want >= f->fleet->n_nodes || abs(want - n) > AT_ONCE)
		return false;
	for (int tries = 0; n != want && tries < 100 * AT_ONCE; tries++) {
		int i = random_node(c, f, rng);

		if ((c->stage_of[i] == 0) == (step > 0))
			continue;
		c->stage_of[i] = step > 0 ? 0 : random_stage(c, rng);
		n = candidate_size(c, 0, f);
	}
	return n == want;
}

static bool resize_microbatches(struct candidate *c, const struct candidate_frame *f,
				struct rng *rng)
{
	if (f->least_sequences > 0 && f->least_sequences == f->most_sequences)
		return false;
	if (rng_below(rng, 2))
		c->wanted_slots = c->wanted_slots == 1 ? 3 : 1;
	else if (rng_below(rng, 2) && c->sequences % 2 == 0)
		c->sequences /= 2;
	else
		c->sequences *= 2;
	return c->sequences <= f->batch && c->sequences >= f->least_sequences &&
	       (f->most_sequences == 0 || c->sequences <= f->most_sequences);
}

static bool change(struct candidate *c, const struct candidate_frame *f, struct rng *rng)
{
	switch (rng_below(rng, 8)) {
	case 0:
	case 1:
		return shift_layer(c, rng);
	case 2:
		return shift_layer(c, rng) && exchange_nodes(c, f, rng);
	case 3:
	case 4:
		if (fleet_is_large(f->fleet) && rng_below(rng, 2))
			move_nodes(c, f, rng);
		else
			c->stage_of[random_node(c, f, rng)] = random_stage(c, rng);
		if (rng_below(rng, 2))
			shift_layer(c, rng);
		return true;
	case 5:
		return exchange_nodes(c, f, rng);
	case 6:
		return resize_first(c, f, rng);
	default:
		return resize_microbatches(c, f, rng);
	}
}

/* Fills in possible changes of c. Returns how many were found. */
static int propose(const struct candidate *c, const struct candidate_frame *f, struct rng *rng,
		   struct candidate *const *next)
{
	int n = 0;

	for (int i = 0; i < ATTEMPTS * AT_ONCE && n < AT_ONCE; i++) {
		candidate_copy_choice(next[n], c, f);
		if (change(next[n], f, rng) && candidate_is_possible(next[n], f) &&
		    !candidate_same_choice(next[n], c, f))
			n++;
	}
	return n;
}

/* Changes c until no change has helped for many rounds, or the share of the work is done. */
static void descend(struct effort *e, struct candidate *c, int64_t evaluations, double share,
		    struct rng *rng, const struct refine_notes *notes)
{
	const struct candidate_frame *f = &e->q->frame;
	struct candidate room[AT_ONCE], *next[AT_ONCE];

	for (int i = 0; i < AT_ONCE; i++) {
		candidate_init(&room[i], f);
		next[i] = &room[i];
	}
	for (int idle = 0; idle < PATIENCE && !effort_is_over(e, share); idle++) {
		int n = propose(c, f, rng, next), best = -1;
		double best_cost = choose_cost(c, &e->q->aim) * BETTER;

		effort_evaluate(e, next, n, evaluations);
		for (int i = 0; i < n; i++) {
			notes->note(notes->arg, next[i]);
			if (choose_cost(next[i], &e->q->aim) < best_cost) {
				best = i;
				best_cost = choose_cost(next[i], &e->q->aim);
			}
		}
		if (best >= 0) {
			candidate_move(c, next[best], f);
			idle = -1;
		}
	}
	for (int i = 0; i < AT_ONCE; i++)
		candidate_fini(&room[i]);
}

/* Fills in a candidate that differs from c by several random changes. Returns false if none was
 * found. */
static bool shake(const struct candidate *c, const struct candidate_frame *f, struct rng *rng,
		  struct candidate *out)
{
	for (int i = 0; i < ATTEMPTS; i++) {
		bool is_changed = true;

		candidate_copy_choice(out, c, f);
		for (int k = 0; k < SHAKES && is_changed; k++)
			is_changed = change(out, f, rng);
		if (is_changed && candidate_is_possible(out, f))
			return true;
	}
	return false;
}

void refine(struct effort *e, struct candidate *c, int64_t evaluations, double share,
	    struct rng *rng, const struct refine_notes *notes)
{
	const struct candidate_frame *f = &e->q->frame;
	struct candidate other, *list[1] = { &other };

	candidate_init(&other, f);
	descend(e, c, evaluations, share, rng, notes);
	for (int i = 0; i < RESTARTS && !effort_is_over(e, share); i++) {
		if (!shake(c, f, rng, &other))
			break;
		effort_evaluate(e, list, 1, evaluations);
		descend(e, &other, evaluations, share, rng, notes);
		if (choose_cost(&other, &e->q->aim) < choose_cost(c, &e->q->aim) * BETTER)
			candidate_move(c, &other, f);
	}
	candidate_fini(&other);
}
