/* The rough estimate of an iteration, and simulated annealing over divisions. */
#include "schedule/fleet/division.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"

/* First and last temperature of the annealing, as a share of the cost. */
#define WARM 0.15
#define COLD 0.002
/* If a division has no room for some layers, its cost is this number for each of these layers. */
#define NO_ROOM 1e12
#define OVER_BUDGET 10.0

struct pair {
	double delay_s;
	int a, b;
};

/* Work and slots of every group of nodes for every number of layers, and delays between groups */
struct tables {
	const struct candidate_frame *f;
	const struct groups *g;
	const struct aim *aim;
	const struct division_setting *set;
	int n_layers, n_mb;
	double visited; /* number of stages other than stage 0 that a microbatch visits */
	/* Array of (groups, 2, n_layers + 1): seconds of a visit to a stage of 0, 1, ... layers.
	 * Index 1 of the second dimension: the stage also has the embedding and the head; 0: it
	 * does not. */
	double *work;
	/* Array like `work`: number of microbatches that fit into a node's memory together with
	 * the stage. */
	int *slots;
	/* Largest number of layers that a node of the group can hold, without and with the
	 * embedding and the head. */
	int most[GROUPS_MOST][2];
	double sum_latency_s[GROUPS_MOST][GROUPS_MOST], sum_s_per_byte[GROUPS_MOST][GROUPS_MOST];
	double delay_s[GROUPS_MOST][GROUPS_MOST]; /* transfer time of a microbatch's activations */
	double price[GROUPS_MOST]; /* price of a node for an hour */
	/* Array of n_pairs: links between groups, shortest delay first */
	struct pair *pairs;
	int n_pairs;
};

static size_t at(const struct tables *t, int group, bool ends, int layers)
{
	return ((size_t)group * 2 + ends) * (size_t)(t->n_layers + 1) + (size_t)layers;
}

/* ---- tables ---- */

static void fill_group(struct tables *t, int group)
{
	const struct fleet *fleet = t->f->fleet;
	const struct fleet_machines *e = fleet_machines_of(fleet, t->g->first[group]);
	int batch = t->set->sequences;

	t->price[group] = e->price_per_hour / e->cards;
	for (int ends = 0; ends < 2; ends++) {
		t->most[group][ends] = -1;
		for (int l = 0; l <= t->n_layers; l++) {
			struct stage_fit fit = stage_cost_fit(t->f->shape, e, l, ends, batch,
							      t->set->wanted_slots);
			struct stage_times s =
				stage_cost_times(t->f->shape, e, l, batch, fit.level);

			t->slots[at(t, group, ends, l)] = fit.slots;
			t->work[at(t, group, ends, l)] = s.forward_s + s.backward_s +
							 (ends ? s.loss_s : 0) +
							 (2 + ends) * fleet->dispatch_overhead_s;
			if (fit.slots > 0)
				t->most[group][ends] = l;
		}
	}
}

static int compare_pairs(const void *x, const void *y)
{
	const struct pair *a = x, *b = y;

	if (a->delay_s != b->delay_s)
		return a->delay_s < b->delay_s ? -1 : 1;
	return a->a != b->a ? a->a - b->a : a->b - b->b;
}

static void fill_links(struct tables *t)
{
	const struct candidate_frame *f = t->f;
	double bytes = f->shape->activation_bytes * t->set->sequences *
		       tensor_format_activation_share(f->formats.wire);
	double sums = tensor_format_sum_share(f->formats.sum_wire);

	t->pairs = alloc_array((size_t)(t->g->n * t->g->n), sizeof(*t->pairs));
	for (int a = 0; a < t->g->n; a++) {
		for (int b = 0; b < t->g->n; b++) {
			double latency_s = t->g->latency_s[a][b], speed = t->g->bandwidth[a][b];

			t->sum_latency_s[a][b] = latency_s;
			t->sum_s_per_byte[a][b] = sums / speed;
			t->delay_s[a][b] =
				latency_s + bytes / speed + f->fleet->transfer_overhead_s;
			t->pairs[t->n_pairs++] = (struct pair){ t->delay_s[a][b], a, b };
		}
	}
	qsort(t->pairs, (size_t)t->n_pairs, sizeof(*t->pairs), compare_pairs);
}

static void tables_init(struct tables *t)
{
	size_t n = (size_t)t->g->n * 2 * (size_t)(t->n_layers + 1);

	t->work = alloc_array(n, sizeof(*t->work));
	t->slots = alloc_array(n, sizeof(*t->slots));
	for (int g = 0; g < t->g->n; g++)
		fill_group(t, g);
	fill_links(t);
}

static void tables_fini(struct tables *t)
{
	free(t->work);
	free(t->slots);
	free(t->pairs);
}

/* ---- the estimate ---- */

int division_cut(int n_stages, int n_layers, const double *seconds, const double *first_s,
		 const int *most, int *layers)
{
	int left = n_layers, missing = 0;

	for (int s = 0; s < n_stages; s++) {
		layers[s] = s > 0;
		left -= s > 0;
		missing += most[s] < layers[s];
	}
	for (; left > 0; left--) {
		int best = -1;
		double best_s = INFINITY;

		for (int s = 0; s < n_stages; s++) {
			double busy_s = first_s[s] + seconds[s] * (layers[s] + 1);

			if (layers[s] < most[s] && busy_s < best_s) {
				best = s;
				best_s = busy_s;
			}
		}
		if (best < 0)
			break;
		layers[best]++;
	}
	return left + missing;
}

static int size_of(const struct tables *t, const struct division *d, int stage)
{
	int n = 0;

	for (int g = 0; g < t->g->n; g++)
		n += d->count[g][stage];
	return n;
}

static double visits_of(const struct tables *t, int stage)
{
	return stage == 0 ? t->n_mb : t->n_mb * t->visited / (t->set->n_stages - 1);
}

/* Returns the seconds for which a stage's nodes are busy in an iteration if the stage has
 * `layers` layers. All data nodes have the same number of microbatches. */
static double busy_s(const struct tables *t, const struct division *d, int stage, int layers)
{
	double rate = 0, slowest_s = 0;

	for (int g = 0; g < t->g->n; g++) {
		double work_s = t->work[at(t, g, stage == 0, layers)];

		if (d->count[g][stage] == 0)
			continue;
		rate += d->count[g][stage] / fmax(work_s, 1e-12);
		slowest_s = fmax(slowest_s, work_s);
	}
	return stage == 0 ? visits_of(t, 0) / size_of(t, d, 0) * slowest_s
			  : visits_of(t, stage) / rate;
}

/* Chooses the number of layers of each stage for the nodes of this division. Returns the number of
 * layers for which no stage has room. */
static int cut(const struct tables *t, struct division *d)
{
	double seconds[CLUSTER_MOST_STAGES], first_s[CLUSTER_MOST_STAGES];
	int most[CLUSTER_MOST_STAGES];

	for (int s = 0; s < t->set->n_stages; s++) {
		most[s] = t->n_layers;
		for (int g = 0; g < t->g->n; g++)
			if (d->count[g][s] > 0 && t->most[g][s == 0] < most[s])
				most[s] = t->most[g][s == 0];
		first_s[s] = busy_s(t, d, s, 0);
		seconds[s] = busy_s(t, d, s, 1) - first_s[s];
	}
	return division_cut(t->set->n_stages, t->n_layers, seconds, first_s, most, d->layers);
}

/* Sets the share of a stage's visits that each group of nodes serves. */
static void share_visits(const struct tables *t, const struct division *d, int stage,
			 double *shares)
{
	double sum = 0;

	for (int g = 0; g < t->g->n; g++) {
		shares[g] = d->count[g][stage];
		if (stage > 0 && shares[g] > 0)
			shares[g] /= fmax(t->work[at(t, g, false, d->layers[stage])], 1e-12);
		sum += shares[g];
	}
	for (int g = 0; g < t->g->n; g++)
		shares[g] /= sum;
}

/* Returns the average delay from one stage to another. Assumes that each node gives and takes its
 * share of the stage's microbatches, and that the links with the shortest delays are used first. */
static double delay_s(const struct tables *t, const struct division *d, int from, int to)
{
	double give[GROUPS_MOST], take[GROUPS_MOST], left = 1, sum = 0;

	share_visits(t, d, from, give);
	share_visits(t, d, to, take);
	for (int i = 0; i < t->n_pairs && left > 1e-9; i++) {
		const struct pair *p = &t->pairs[i];
		double flow = fmin(give[p->a], take[p->b]);

		if (flow <= 0)
			continue;
		sum += flow * p->delay_s;
		left -= flow;
		give[p->a] -= flow;
		take[p->b] -= flow;
	}
	return sum;
}

static double sum_s(const struct tables *t, const struct division *d, int stage)
{
	double bytes =
		sizeof(float) * stage_cost_weights(t->f->shape, d->layers[stage], stage == 0);
	int n = size_of(t, d, stage);
	double slowest_s = 0;

	for (int a = 0; a < t->g->n; a++) {
		for (int b = 0; d->count[a][stage] > 0 && b < t->g->n; b++) {
			if (d->count[b][stage] > (a == b))
				slowest_s =
					fmax(slowest_s, t->sum_latency_s[a][b] +
								bytes * t->sum_s_per_byte[a][b]);
		}
	}
	return 2.0 * (n - 1) / n * slowest_s;
}

static double price_of(const struct tables *t, const struct division *d)
{
	double price = 0;

	for (int g = 0; g < t->g->n; g++)
		if (d->left_out[g] < t->g->size[g])
			price += t->price[g] * (t->g->size[g] - d->left_out[g]);
	return price;
}

/* Returns the number of microbatches that the nodes of a stage can hold together. For stage 0,
 * returns the smallest number of slots of one node, because each data node holds only its own
 * microbatches. */
static double slots_of(const struct tables *t, const struct division *d, int stage)
{
	double sum = 0, least = INFINITY;

	for (int g = 0; g < t->g->n; g++) {
		int slots = t->slots[at(t, g, stage == 0, d->layers[stage])];

		if (d->count[g][stage] == 0)
			continue;
		sum += slots * d->count[g][stage];
		least = fmin(least, slots);
	}
	return stage == 0 ? least : sum;
}

static double iteration_s(const struct tables *t, const struct division *d)
{
	int n = t->set->n_stages;
	double visited = n > 1 ? t->visited / (n - 1) : 0, transfers = (t->visited + 1) / n;
	double busiest_s = 0, own_s = 0, round_s = 0, longest_s, sums_s = 0;
	double share = (double)t->n_mb / size_of(t, d, 0);

	for (int s = 0; s < n; s++) {
		double busy = busy_s(t, d, s, d->layers[s]);
		double work_s = busy * size_of(t, d, s) / visits_of(t, s);

		round_s += work_s * (s == 0 ? 1 : visited);
		if (n > 1)
			round_s += 2 * transfers * delay_s(t, d, s, (s + 1) % n);
		sums_s = fmax(sums_s, sum_s(t, d, s));
		if (busy > busiest_s) {
			busiest_s = busy;
			own_s = work_s;
		}
	}
	longest_s = busiest_s + round_s - own_s;
	longest_s = fmax(longest_s, ceil(share / slots_of(t, d, 0)) * round_s);
	for (int s = 1; s < n; s++)
		longest_s = fmax(longest_s,
				 visits_of(t, s) * round_s * (n - s) / n / slots_of(t, d, s));
	return longest_s + sums_s;
}

static double cost_of(const struct tables *t, struct division *d)
{
	double price = price_of(t, d), cost;
	int missing;

	for (int s = 0; s < t->set->n_stages; s++)
		if (size_of(t, d, s) == 0)
			return INFINITY;
	if (t->n_mb % size_of(t, d, 0) != 0)
		return INFINITY;
	missing = cut(t, d);
	if (missing > 0)
		return NO_ROOM * missing;
	cost = iteration_s(t, d);
	if (t->aim->by_price)
		cost *= price;
	if (price > t->aim->most_per_hour)
		cost *= 2 + OVER_BUDGET * (price / t->aim->most_per_hour - 1);
	return cost;
}

/* ---- the search ---- */

/* Returns where the division counts the nodes that a group has in a column. The columns are the
 * stages; column n_stages counts the nodes that are left out. */
static int *place(const struct tables *t, struct division *d, int group, int column)
{
	return column == t->set->n_stages ? &d->left_out[group] : &d->count[group][column];
}

/* Moves up to k nodes of a random group from column `from` to column `to` (see place). In a large
 * fleet, half of the calls prefer groups that already have nodes in `to`. Returns false if no group
 * has a node in `from`. */
static bool move_nodes(const struct tables *t, struct division *d, int from, int to, int k,
		       struct rng *rng)
{
	int first = (int)rng_below(rng, (uint32_t)t->g->n), n = t->g->n;

	bool joins = fleet_is_large(t->f->fleet) && rng_below(rng, 2);

	for (int i = joins ? 0 : n; i < 2 * n; i++) {
		int g = (first + i) % n, *have = place(t, d, g, from);

		if (*have == 0 || (i < n && *place(t, d, g, to) == 0))
			continue;
		k = *have < k ? *have : k;
		*have -= k;
		*place(t, d, g, to) += k;
		return true;
	}
	return false;
}

/* Moves nodes into or out of stage 0 until its data nodes share the microbatches equally. */
static void settle_first(const struct tables *t, struct division *d, struct rng *rng)
{
	bool fewer = rng_below(rng, 2);

	for (int n = size_of(t, d, 0); n == 0 || t->n_mb % n != 0; n = size_of(t, d, 0)) {
		int other = 1 + (int)rng_below(rng, (uint32_t)t->set->n_stages);

		fewer = n > 1 && (fewer || n >= t->n_mb);
		if (fewer)
			move_nodes(t, d, 0, other, 1, rng);
		else if (!move_nodes(t, d, other, 0, 1, rng) && n >= t->f->fleet->n_nodes)
			fewer = true;
	}
}

static void propose(const struct tables *t, struct division *d, struct rng *rng)
{
	int columns = t->set->n_stages + 1;
	int from = (int)rng_below(rng, (uint32_t)columns);
	int to = (from + 1 + (int)rng_below(rng, (uint32_t)columns - 1)) % columns;
	uint32_t most = 8, n = (uint32_t)t->f->fleet->n_nodes;
	int k = 1;

	if (rng_below(rng, 3) == 0) {
		/* Allows up to all nodes, but makes small numbers more likely. */
		if (fleet_is_large(t->f->fleet))
			most = 1 + rng_below(rng, n);
		k = 1 + (int)rng_below(rng, most);
	}
	if (!move_nodes(t, d, from, to, k, rng))
		return;
	if (rng_below(rng, 2))
		move_nodes(t, d, to, from, k, rng);
	settle_first(t, d, rng);
}

/* Gives each node to a random stage, and at least one node to each stage. */
static void deal(const struct tables *t, struct division *d, struct rng *rng)
{
	int n = t->set->n_stages;

	memset(d, 0, sizeof(*d));
	for (int g = 0; g < t->g->n; g++)
		for (int i = 0; i < t->g->size[g]; i++)
			d->count[g][rng_below(rng, (uint32_t)n)]++;
	for (int s = 0; s < n; s++) {
		int from = 0;

		for (int k = 1; k < n; k++)
			if (size_of(t, d, k) > size_of(t, d, from))
				from = k;
		if (size_of(t, d, s) == 0)
			move_nodes(t, d, from, s, 1, rng);
	}
	settle_first(t, d, rng);
}

/* A group, and the cost of a round trip from another group to this group: a time, or a price. */
struct visit {
	double cost;
	int group;
};

static int compare_visits(const void *x, const void *y)
{
	const struct visit *a = x, *b = y;

	if (a->cost != b->cost)
		return a->cost < b->cost ? -1 : 1;
	return a->group - b->group;
}

/* Orders the groups by the cost of a round trip from the group `from`, with a visit to a stage of
 * average size. */
static void order_visits(const struct tables *t, int from, struct visit *order)
{
	int layers = (t->n_layers + t->set->n_stages - 1) / t->set->n_stages;

	for (int g = 0; g < t->g->n; g++) {
		double cost = fmin(NO_ROOM, t->work[at(t, g, false, layers)] +
						    t->delay_s[from][g] + t->delay_s[g][from]);

		order[g] = (struct visit){ t->aim->by_price ? cost * t->price[g] : cost, g };
	}
	qsort(order, (size_t)t->g->n, sizeof(*order), compare_visits);
}

/* Gives the first n nodes in this order to the stages: the nearest nodes to stage 0, the next block
 * of nodes to stage 1, and so on. Leaves out all other nodes. */
static void deal_nearest(const struct tables *t, struct division *d, const struct visit *order,
			 int n)
{
	int stages = t->set->n_stages, first = n / stages, dealt = 0;

	memset(d, 0, sizeof(*d));
	memcpy(d->left_out, t->g->size, sizeof(d->left_out));
	while (t->n_mb % first != 0)
		first--;
	if (stages == 1)
		n = first;
	for (int i = 0; i < t->g->n; i++) {
		int g = order[i].group;

		for (; dealt < n && d->left_out[g] > 0; dealt++, d->left_out[g]--)
			d->count[g][dealt < first ? 0
						  : 1 + (dealt - first) * (stages - 1) /
								(n - first)]++;
	}
}

/* Finds a division from which the search starts. The first try deals all nodes at random. In a
 * large fleet, further tries use only the n nodes nearest to a group. They do so for each group,
 * and for n that grows by half from one try to the next. Without these tries, the search would not
 * get rid of the many nodes that are too far away. */
static void find_start(const struct tables *t, struct division *best, struct rng *rng)
{
	struct visit order[GROUPS_MOST];
	int nodes = t->f->fleet->n_nodes;
	struct division d;

	deal(t, best, rng);
	best->cost = cost_of(t, best);
	for (int from = 0; fleet_is_large(t->f->fleet) && from < t->g->n; from++) {
		order_visits(t, from, order);
		for (int n = t->set->n_stages; n <= nodes; n = n + (n + 1) / 2) {
			deal_nearest(t, &d, order, n);
			d.cost = cost_of(t, &d);
			if (d.cost < best->cost)
				*best = d;
		}
	}
}

static void anneal(const struct tables *t, struct division *best, int steps, struct rng *rng)
{
	struct division now, next;

	find_start(t, &now, rng);
	*best = now;
	for (int i = 0; i < steps; i++) {
		double heat = WARM * pow(COLD / WARM, (double)i / steps);
		double limit;

		next = now;
		propose(t, &next, rng);
		next.cost = cost_of(t, &next);
		limit = now.cost * (1 - heat * log(1 - rng_uniform(rng)));
		if (isinf(next.cost) || next.cost > limit)
			continue;
		now = next;
		if (now.cost < best->cost)
			*best = now;
	}
}

bool division_search(const struct candidate_frame *f, const struct groups *g, const struct aim *aim,
		     const struct division_setting *set, int steps, uint64_t stream,
		     struct division *out)
{
	int skip = candidate_skip(f, set->n_stages);
	struct tables t = { .f = f,
			    .g = g,
			    .aim = aim,
			    .set = set,
			    .n_layers = f->shape->n_layers,
			    .n_mb = f->batch / set->sequences,
			    .visited = set->n_stages - 1 - skip };
	struct rng rng;

	tables_init(&t);
	rng_init_stream(&rng, f->seed, stream);
	anneal(&t, out, steps, &rng);
	tables_fini(&t);
	return out->cost < NO_ROOM;
}

void division_realise(const struct division *d, const struct division_setting *set,
		      const struct candidate_frame *f, const struct groups *g, bool spread,
		      struct candidate *to)
{
	struct division left = *d;
	int stage[GROUPS_MOST] = { 0 };

	to->n_stages = set->n_stages;
	to->sequences = set->sequences;
	to->wanted_slots = set->wanted_slots;
	memcpy(to->layers, d->layers, sizeof(to->layers));
	for (int i = 0; i < f->fleet->n_nodes; i++) {
		int k = g->of_node[i], s = stage[k], tried = 0;

		while (tried < set->n_stages && left.count[k][s] == 0) {
			s = (s + 1) % set->n_stages;
			tried++;
		}
		to->stage_of[i] = tried < set->n_stages ? s : -1;
		if (tried < set->n_stages)
			left.count[k][s]--;
		stage[k] = spread ? (s + 1) % set->n_stages : s;
	}
}
