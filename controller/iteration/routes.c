/* routes.c - the route of each microbatch in the iteration under way, and the gradients counted
 * along it.
 *
 * The paths of the plan become routes, which deaths and cut links change. When a node dies, another
 * replica of its stage replaces it at its hop. This substitute has to repeat the dead node's work
 * there: a forward pass, a backward pass, the loss. Until then the substitute "owes" this work.
 *
 * Gradients that other nodes counted stay valid. The attempt number separates reports about the
 * old route from reports about the new route. The counts of each node are kept in the order in
 * which the node made them, because `skippipe verify` repeats the sums in that order. */
#include "controller/iteration/routes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "wire/chain.h"

void routes_init(struct routes *r, uint32_t n, uint32_t n_nodes)
{
	memset(r, 0, sizeof(*r));
	r->microbatches = alloc_array(n, sizeof(*r->microbatches));
	r->counts = alloc_array(n_nodes, sizeof(*r->counts));
	r->n = n;
	r->n_nodes = n_nodes;
}

void routes_fini(struct routes *r)
{
	for (uint32_t i = 0; r->counts && i < r->n_nodes; i++)
		free(r->counts[i].list);
	free(r->counts);
	free(r->microbatches);
	memset(r, 0, sizeof(*r));
}

static uint64_t bit(uint32_t hop)
{
	return (uint64_t)1 << hop;
}

/* Returns how many counts the node of a hop makes: one for its gradient and, at the data node, one
 * for the loss. */
static uint32_t counts_at(uint32_t hop)
{
	return hop == 0 ? 2 : 1;
}

static void set_route(struct microbatch *m, uint32_t id, uint32_t attempt,
		      const struct plan_microbatch *from, const int *stage_of)
{
	memset(m, 0, sizeof(*m));
	m->route.microbatch = id;
	m->route.attempt = m->route.since = attempt;
	m->route.n_hops = (uint32_t)from->length;
	for (int h = 0; h < from->length; h++) {
		m->route.nodes[h] = (uint16_t)from->path[h];
		m->route.stages[h] = (uint8_t)stage_of[from->path[h]];
	}
}

/* Assigns shards to microbatches. Each data node first gets microbatches of its own shard. Each
 * remaining microbatch gets the lowest shard that has microbatches left. */
static void deal_shards(struct routes *r, const int *shard_of, uint32_t n_shards,
			uint32_t per_shard, uint32_t *next_wave)
{
	uint32_t shard = 0;

	for (uint32_t i = 0; i < r->n; i++) {
		struct microbatch *m = &r->microbatches[i];
		int own = shard_of[m->route.nodes[0]];

		m->route.shard = UINT32_MAX;
		if (own < 0 || next_wave[own] >= per_shard)
			continue;
		m->route.shard = (uint32_t)own;
		m->route.wave = next_wave[own]++;
	}
	for (uint32_t i = 0; i < r->n; i++) {
		struct microbatch *m = &r->microbatches[i];

		if (m->route.shard != UINT32_MAX)
			continue;
		while (shard < n_shards && next_wave[shard] >= per_shard)
			shard++;
		m->route.shard = shard;
		m->route.wave = next_wave[shard]++;
	}
}

/* Sets, for each node and stage, how many counts are awaited. No count has been made yet. */
static void await_counts(struct routes *r)
{
	memset(r->awaited, 0, sizeof(r->awaited));
	for (uint32_t i = 0; i < r->n_nodes; i++)
		r->counts[i].n = r->counts[i].awaited = 0;
	for (uint32_t i = 0; i < r->n; i++) {
		const struct route *w = &r->microbatches[i].route;

		for (uint32_t h = 0; h < w->n_hops; h++) {
			r->counts[w->nodes[h]].awaited += counts_at(h);
			r->awaited[w->stages[h]]++;
		}
	}
}

int routes_from_plan(struct routes *r, const struct plan *p, const int *shard_of, uint32_t n_shards,
		     uint32_t per_shard, uint32_t attempt, struct error *err)
{
	uint32_t *next_wave;
	int *stage_of;

	if ((uint32_t)p->n_microbatches != n_shards * per_shard || r->n != n_shards * per_shard)
		return error_set(err, -EINVAL, "the plan has %d microbatches, the run %u",
				 p->n_microbatches, n_shards * per_shard);
	next_wave = alloc_array(n_shards, sizeof(*next_wave));
	stage_of = alloc_array(r->n_nodes, sizeof(*stage_of));
	plan_stages(p, (int)r->n_nodes, stage_of);
	for (uint32_t i = 0; i < r->n; i++)
		set_route(&r->microbatches[i], i, attempt, &p->microbatches[i], stage_of);
	deal_shards(r, shard_of, n_shards, per_shard, next_wave);
	r->done = r->rerun = 0;
	await_counts(r);
	r->version++;
	free(next_wave);
	free(stage_of);
	return 0;
}

int routes_hop(const struct microbatch *m, uint16_t node)
{
	return chain_find(m->route.nodes, m->route.n_hops, node);
}

uint16_t routes_node_at(const struct microbatch *m, uint32_t t)
{
	return m->route.nodes[chain_hop(m->route.n_hops, t)];
}

bool routes_owes(const struct microbatch *m, uint32_t t)
{
	uint32_t n = m->route.n_hops;

	if (t == n)
		return m->owed_loss;
	return t < n ? m->owed_forward & bit(t) : m->owed_backward & bit(2 * n - t);
}

/* Returns true if the task at position t of the chain has ended at its present node. */
static bool has_ended(const struct microbatch *m, uint32_t t)
{
	return t < m->passed && !routes_owes(m, t);
}

/* Returns true if the task at position t of the chain has ended or is under way at its present
 * node. */
static bool has_begun(const struct microbatch *m, uint32_t t)
{
	return has_ended(m, t) || (t == m->passed && m->next_began);
}

bool routes_chain_ended(const struct microbatch *m)
{
	return m->passed > 2 * m->route.n_hops;
}

/* Returns how many counts the present node of the hop has made for this microbatch. */
static uint32_t counts_made(const struct microbatch *m, uint32_t hop)
{
	return (m->counted & bit(hop) ? 1u : 0u) + (hop == 0 && m->counted_loss ? 1u : 0u);
}

/* Gives a hop to another node, which has to make all counts of the hop itself. */
static void hand_over_counts(struct routes *r, struct microbatch *m, uint32_t hop, uint16_t node)
{
	r->counts[m->route.nodes[hop]].awaited -= counts_at(hop) - counts_made(m, hop);
	r->counts[node].awaited += counts_at(hop);
	r->awaited[m->route.stages[hop]] += (m->counted & bit(hop)) != 0;
	m->counted &= ~bit(hop);
	m->counted_loss = m->counted_loss && hop > 0;
}

/* Puts a substitute, another node of the same stage, at a hop. Work of other nodes stays valid, and
 * the substitute has to repeat the work of this hop. The caller must raise the attempt number. */
static void substitute(struct routes *r, struct microbatch *m, uint32_t hop, uint16_t node)
{
	if (m->route.nodes[hop] == node)
		return;
	r->version++;
	hand_over_counts(r, m, hop, node);
	m->route.nodes[hop] = node;
	m->owed_forward |= bit(hop);
	m->owed_backward |= bit(hop);
	m->owed_loss = m->owed_loss || hop == 0;
	if (m->passed <= 2 * m->route.n_hops && routes_node_at(m, m->passed) == node)
		m->next_began = false;
}

static void run_again(struct routes *r, struct microbatch *m)
{
	m->route.attempt++;
	if (m->done)
		r->done--;
	m->done = false;
	r->rerun++;
}

/* Lets the microbatch start again from the first hop, without changing its attempt number. */
static void start_over(struct microbatch *m)
{
	m->route.since = m->route.attempt;
	m->passed = 0;
	m->next_began = false;
	m->owed_forward = m->owed_backward = 0;
	m->owed_loss = false;
}

static bool swapped(const struct microbatch *m)
{
	for (uint32_t h = 1; h < m->route.n_hops; h++)
		if (m->route.stages[h] < m->route.stages[h - 1])
			return true;
	return false;
}

/* Returns true if the microbatch waits for a slot on a substitute while it still holds a slot of a
 * later stage of its path. */
static bool holds_while_waiting(const struct microbatch *m)
{
	uint32_t n = m->route.n_hops;

	if ((m->owed_forward & bit(0)) && m->passed > 0 && !has_begun(m, n + 1))
		return true; /* the loss waits for a slot at the new data node */
	for (uint32_t h = 1; h < n; h++)
		for (uint32_t g = 1; (m->owed_forward & bit(h)) && g < h; g++)
			if (m->route.stages[g] > m->route.stages[h] && g < m->passed &&
			    !has_ended(m, 2 * n - g))
				return true;
	return false;
}

/* Prevents microbatches from waiting for one another in a circle. A node frees a slot once later
 * stages have freed their slots. A circle is therefore only possible if a microbatch keeps a slot
 * of a later stage while it waits for a slot of an earlier stage. If a substitute would cause a
 * circle, the microbatch gives up all its slots and starts over. */
static void avoid_circle(struct microbatch *m)
{
	if (holds_while_waiting(m))
		start_over(m);
}

/* Returns the task's position in the microbatch's chain of tasks; -1: the task is not part of the
 * chain. */
static int position_of(const struct microbatch *m, uint16_t node, enum task_kind kind)
{
	int hop = routes_hop(m, node);

	if (hop < 0 || kind == TASK_EVALUATE || (kind == TASK_LOSS && hop > 0))
		return -1;
	return (int)chain_position(m->route.n_hops, (uint32_t)hop, kind);
}

/* Cancels the work that the node owes in this pass. Returns true if the node owed such work. */
static bool settle(struct microbatch *m, uint16_t node, enum task_kind kind)
{
	uint64_t *owed = kind == TASK_FORWARD ? &m->owed_forward : &m->owed_backward;
	uint64_t hop = bit((uint32_t)routes_hop(m, node));
	bool owes = kind == TASK_LOSS ? m->owed_loss : (*owed & hop) != 0;

	if (kind == TASK_LOSS)
		m->owed_loss = false;
	else
		*owed &= ~hop;
	return owes;
}

bool routes_take(struct microbatch *m, uint16_t node, uint32_t attempt, enum work_event what,
		 enum task_kind kind)
{
	int t = position_of(m, node, kind);
	bool owed;

	if (t < 0 || attempt < m->route.since)
		return false;
	if (what == WORK_STARTS && t == m->passed)
		m->next_began = true;
	if (what != WORK_ENDS)
		return false;
	owed = settle(m, node, kind);
	if (t < m->passed)
		return owed;
	m->passed = (uint8_t)(t + 1);
	m->next_began = false;
	return true;
}

/* Data for the choice of substitutes. */
struct choice {
	const struct cluster *c;
	const bool *usable;  /* array of n_nodes: nodes that may be substitutes */
	const int *stage_of; /* array of n_nodes: the stage of each node */
	/* Array of n_nodes: number of unfinished microbatches that visit the node */
	int *unfinished;
};

/* Adds `change` to the unfinished work of each node that the microbatch visits. */
static void add_unfinished(struct choice *w, const struct microbatch *m, int change)
{
	for (uint32_t h = 0; !m->done && h < m->route.n_hops; h++)
		w->unfinished[m->route.nodes[h]] += change;
}

static struct choice choice_init(const struct routes *r, const struct cluster *c,
				 const bool *usable, const int *stage_of)
{
	struct choice w = { c, usable, stage_of,
			    alloc_array(r->n_nodes, sizeof(*w.unfinished)) };

	for (uint32_t i = 0; i < r->n; i++)
		add_unfinished(&w, &r->microbatches[i], 1);
	return w;
}

/* Returns the sum of the delays between the node and the neighbours of the hop, forward and
 * backward. The last hop's next neighbour is the data node. INFINITY: a link is cut. */
static double neighbour_delay_s(const struct cluster *c, const struct microbatch *m, int hop,
				int node)
{
	uint32_t next = ((uint32_t)hop + 1) % m->route.n_hops;
	int n = c->n_nodes,
	    around[] = { hop > 0 ? m->route.nodes[hop - 1] : m->route.nodes[m->route.n_hops - 1],
			 m->route.nodes[next] };
	double d = 0;

	for (int i = 0; i < 2; i++) {
		double to = c->delay_s[around[i] * n + node],
		       from = c->delay_s[node * n + around[i]];

		if (around[i] == node)
			continue;
		if (to < 0 || from < 0)
			return INFINITY;
		d += to + from;
	}
	return d;
}

/* Predicts the delay in seconds if the node takes one more microbatch: the time of its unfinished
 * work plus the links of the new route. */
static double predicted_delay_s(const struct choice *w, const struct microbatch *m, int hop,
				uint16_t node)
{
	const struct cluster_node *n = &w->c->nodes[node];
	double visit_s = (n->forward_s + n->backward_s) * cluster_work(w->c, n->stage);

	return (w->unfinished[node] + 1) * visit_s +
	       neighbour_delay_s(w->c, m, hop, node);
}

static int choose(const struct routes *r, const struct choice *w, const struct microbatch *m,
		  int hop)
{
	double least = 0;
	int best = -1;

	for (uint32_t i = 0; i < r->n_nodes; i++) {
		double d;

		if (!w->usable[i] || w->stage_of[i] != m->route.stages[hop])
			continue;
		d = predicted_delay_s(w, m, hop, (uint16_t)i);
		if (best < 0 || d < least) {
			best = (int)i;
			least = d;
		}
	}
	return best;
}

static int replace_all(struct routes *r, struct choice *w, uint16_t gone, uint32_t *changed)
{
	int n = 0;

	for (uint32_t i = 0; i < r->n; i++) {
		struct microbatch *m = &r->microbatches[i];
		int hop = routes_hop(m, gone), node;

		if (hop < 0)
			continue;
		node = choose(r, w, m, hop);
		if (node < 0)
			/* the stage has no usable node; no route has been changed */
			return -ENOENT;
		add_unfinished(w, m, -1);
		m->replaced = (uint8_t)hop;
		substitute(r, m, (uint32_t)hop, (uint16_t)node);
		run_again(r, m);
		avoid_circle(m);
		add_unfinished(w, m, 1);
		changed[n++] = i;
	}
	r->counts[gone].n = 0;
	return n;
}

int routes_replace(struct routes *r, uint16_t gone, const bool *usable, const int *stage_of,
		   const struct cluster *c, uint32_t *changed)
{
	struct choice w = choice_init(r, c, usable, stage_of);
	int n = replace_all(r, &w, gone, changed);

	free(w.unfinished);
	return n;
}

/* ---- around a link ---- */

/* Returns the chain position after the last transfer between a hop and the next hop. The data node
 * follows the last hop. */
static uint32_t last_use_of_link(const struct microbatch *m, uint32_t hop)
{
	uint32_t n = m->route.n_hops;

	return hop + 1 < n ? 2 * n - hop : n + 1;
}

static bool is_pair(const struct microbatch *m, uint32_t hop, uint16_t a, uint16_t b)
{
	uint16_t x = m->route.nodes[hop], y = m->route.nodes[(hop + 1) % m->route.n_hops];

	return (x == a && y == b) || (x == b && y == a);
}

bool routes_need(const struct microbatch *m, uint16_t a, uint16_t b)
{
	for (uint32_t h = 0; !m->done && h < m->route.n_hops; h++)
		if (is_pair(m, h, a, b) && !has_begun(m, last_use_of_link(m, h)))
			return true;
	return false;
}

/* Returns true if the hop's node has counted nothing of the microbatch, and is not running a task
 * that ends with a count. */
static bool can_be_moved(const struct microbatch *m, uint32_t hop)
{
	uint32_t n = m->route.n_hops;

	return !has_begun(m, 2 * n - hop) && (hop > 0 || !has_begun(m, n)) &&
	       counts_made(m, hop) == 0;
}

/* Chooses a hop of node a or node b, and a substitute for that node. Prefers a hop whose tasks have
 * not begun. Returns false if no substitute exists. */
static bool choose_around(const struct routes *r, const struct choice *w,
			  const struct microbatch *m, uint16_t a, uint16_t b, uint32_t *hop,
			  uint16_t *node)
{
	bool any = false, best_began = false;
	double least = 0;

	for (uint32_t h = 0; h < m->route.n_hops; h++) {
		bool began = has_begun(m, h);

		if ((m->route.nodes[h] != a && m->route.nodes[h] != b) || !can_be_moved(m, h))
			continue;
		for (uint32_t i = 0; i < r->n_nodes; i++) {
			double d;

			if (!w->usable[i] || w->stage_of[i] != m->route.stages[h] ||
			    routes_hop(m, (uint16_t)i) >= 0)
				continue;
			d = predicted_delay_s(w, m, (int)h, (uint16_t)i);
			if (isinf(d) || (any && (began != best_began ? began : d >= least)))
				continue;
			any = true;
			best_began = began;
			least = d;
			*hop = h;
			*node = (uint16_t)i;
		}
	}
	return any;
}

static int go_around(struct routes *r, struct choice *w, uint16_t a, uint16_t b, uint32_t *changed)
{
	uint32_t hop;
	uint16_t node;
	int n = 0;

	for (uint32_t i = 0; i < r->n; i++)
		if (routes_need(&r->microbatches[i], a, b) &&
		    !choose_around(r, w, &r->microbatches[i], a, b, &hop, &node))
			return -ENOENT;
	for (uint32_t i = 0; i < r->n; i++) {
		struct microbatch *m = &r->microbatches[i];

		if (!routes_need(m, a, b) || !choose_around(r, w, m, a, b, &hop, &node))
			continue;
		add_unfinished(w, m, -1);
		r->rerun += has_begun(m, hop);
		m->route.attempt++;
		m->replaced = (uint8_t)hop;
		m->moved = true;
		substitute(r, m, hop, node);
		avoid_circle(m);
		add_unfinished(w, m, 1);
		changed[n++] = i;
	}
	return n;
}

int routes_around(struct routes *r, uint16_t a, uint16_t b, const bool *usable, const int *stage_of,
		  const struct cluster *c, uint32_t *changed)
{
	struct choice w = choice_init(r, c, usable, stage_of);
	int n = go_around(r, &w, a, b, changed);

	free(w.unfinished);
	return n;
}

static void sort_stages(struct microbatch *m)
{
	for (uint32_t h = 2; h < m->route.n_hops; h++) {
		uint8_t s = m->route.stages[h];
		uint16_t node = m->route.nodes[h];
		uint32_t k = h;

		for (; k > 1 && m->route.stages[k - 1] > s; k--) {
			m->route.stages[k] = m->route.stages[k - 1];
			m->route.nodes[k] = m->route.nodes[k - 1];
		}
		m->route.stages[k] = s;
		m->route.nodes[k] = node;
	}
}

int64_t routes_unswap(struct routes *r)
{
	for (uint32_t i = 0; i < r->n; i++) {
		struct microbatch *m = &r->microbatches[i];

		if (m->done || !swapped(m) || m->passed > m->route.n_hops || m->counted ||
		    m->counted_loss)
			continue;
		r->version++;
		sort_stages(m);
		run_again(r, m);
		start_over(m);
		return i;
	}
	return -1;
}

void routes_count(struct routes *r, uint16_t node, uint32_t microbatch, uint8_t kind)
{
	struct counts *c = &r->counts[node];
	struct microbatch *m = &r->microbatches[microbatch];
	bool is_awaited = routes_may_count(r, node, microbatch, kind);

	array_reserve(&c->list, &c->room, c->n + 1, sizeof(*c->list));
	c->list[c->n++] = (struct counted){ microbatch, kind };
	if (!is_awaited)
		return; /* routes_audit will find the wrong count */
	c->awaited--;
	if (kind == TASK_LOSS) {
		m->counted_loss = true;
	} else {
		m->counted |= bit((uint32_t)routes_hop(m, node));
		r->awaited[m->route.stages[routes_hop(m, node)]]--;
	}
}

bool routes_may_count(const struct routes *r, uint16_t node, uint32_t microbatch, uint8_t kind)
{
	const struct microbatch *m = &r->microbatches[microbatch];
	int hop = routes_hop(m, node);

	if (kind == TASK_BACKWARD)
		return hop >= 0 && !(m->counted & bit((uint32_t)hop));
	return kind == TASK_LOSS && hop == 0 && !m->counted_loss;
}

int64_t routes_lacking(const struct routes *r, uint16_t node)
{
	for (uint32_t i = 0; r->counts[node].awaited > 0 && i < r->n; i++)
		if (routes_may_count(r, node, i, TASK_BACKWARD) ||
		    routes_may_count(r, node, i, TASK_LOSS))
			return i;
	return -1;
}

bool routes_stage_counted(const struct routes *r, uint8_t stage)
{
	return r->awaited[stage] == 0;
}

void routes_visits(const struct routes *r, uint16_t *visits, uint32_t n_stages)
{
	memset(visits, 0, n_stages * sizeof(*visits));
	for (uint32_t i = 0; i < r->n; i++)
		for (uint32_t h = 0; h < r->microbatches[i].route.n_hops; h++)
			visits[r->microbatches[i].route.stages[h]]++;
}

void routes_visited(const struct routes *r, bool *visited)
{
	memset(visited, 0, r->n_nodes * sizeof(*visited));
	for (uint32_t i = 0; i < r->n; i++)
		for (uint32_t h = 0; h < r->microbatches[i].route.n_hops; h++)
			visited[r->microbatches[i].route.nodes[h]] = true;
}

/* ---- the audit ---- */

/* How often the node of a hop counted the microbatch, according to the node's list of counts. */
struct tally {
	uint32_t gradients, losses;
};

static int check_sums(const struct routes *r, const int *sum_of, struct error *err)
{
	for (uint32_t i = 0; i < r->n; i++) {
		const struct route *w = &r->microbatches[i].route;

		for (uint32_t h = 0; h < w->n_hops; h++)
			if (sum_of[w->nodes[h]] != w->stages[h])
				return error_set(err, -EPROTO,
						 "microbatch %u: node %u has its part of stage %u, "
						 "and is not in that stage's sum",
						 i, w->nodes[h], w->stages[h]);
	}
	return 0;
}

/* Adds a node's list of counts to the tallies. There are ROUTE_HOPS tallies for each of n
 * microbatches. */
static int tally_counts(const struct routes *r, uint16_t node, struct tally *tallies,
			struct error *err)
{
	const struct counts *c = &r->counts[node];

	for (uint32_t i = 0; i < c->n; i++) {
		uint32_t id = c->list[i].microbatch;
		int hop = routes_hop(&r->microbatches[id], node);
		struct tally *t;

		if (hop < 0)
			return error_set(err, -EPROTO,
					 "microbatch %u: node %u counted it, and is not on its "
					 "route",
					 id, node);
		t = &tallies[(size_t)id * ROUTE_HOPS + (size_t)hop];
		t->gradients += c->list[i].kind == TASK_BACKWARD;
		t->losses += c->list[i].kind == TASK_LOSS;
	}
	return 0;
}

static int check_tallies(const struct routes *r, const struct tally *tallies, struct error *err)
{
	for (uint32_t i = 0; i < r->n; i++) {
		const struct route *w = &r->microbatches[i].route;

		for (uint32_t h = 0; h < w->n_hops; h++) {
			const struct tally *t = &tallies[(size_t)i * ROUTE_HOPS + h];

			if (t->gradients != 1 || t->losses != (h == 0))
				return error_set(err, -EPROTO,
						 "microbatch %u: node %u counted its gradient %u "
						 "times and its loss %u times, expected 1 and %u",
						 i, w->nodes[h], t->gradients, t->losses, h == 0);
		}
	}
	return 0;
}

int routes_audit(const struct routes *r, const int *sum_of, struct error *err)
{
	struct tally *tallies;
	int rc = check_sums(r, sum_of, err);

	if (rc != 0)
		return rc;
	tallies = alloc_array((size_t)r->n * ROUTE_HOPS, sizeof(*tallies));
	for (uint32_t node = 0; rc == 0 && node < r->n_nodes; node++)
		if (sum_of[node] >= 0)
			rc = tally_counts(r, (uint16_t)node, tallies, err);
	if (rc == 0)
		rc = check_tallies(r, tallies, err);
	free(tallies);
	return rc;
}
