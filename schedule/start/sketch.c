/* Annealing by the estimate of sketch.h. Every term of the estimate is kept up to date, so that a
 * proposal costs only the hops that change. */
#include "schedule/start/sketch.h"

#include <math.h>

#include "schedule/improve/moves.h"

#define PROBED 1024 /* number of first proposals, from which the first temperature is computed */
/* The first temperature is HOT times the mean rise of the first proposals, divided by n_mb. */
#define HOT 1.0
#define COLD 0.01      /* last temperature, as a share of the first */
#define CHECK_EVERY 256 /* number of proposals between two checks of the limits */
/* Waiting time of a microbatch for which a node has no slot, as a share of a round trip. */
#define FULL 0.5
/* Delay that two microbatches of a wave at one node cause, as a share of the node's work. */
#define MEET 0.125

struct sketch {
	const struct problem *p;
	struct solution *s;
	struct moves moves;
	struct arena arena; /* owns the arrays below */
	int n_waves;
	int *wave;      /* array of n_mb: wave of each microbatch */
	double *trip_s; /* array of n_mb: seconds of each microbatch's trip */
	int *sent;      /* array of sizes[0]: number of microbatches of each data node */
	double *sum_s;  /* array of sizes[0]: seconds of each data node's trips */
	int *visits;    /* array of (n_nodes, n_waves): visits of each node in each wave */
	double ref_s;   /* longest time of any data node at the start, in seconds */
	double powers;  /* sum, over the data nodes, of (seconds / ref_s)^8 */
	double waits_s; /* sum of the waiting times over nodes and waves */
};

static double trip_s(const struct problem *p, const double *work, const int *path)
{
	double sum_s = p->c->nodes[path[0]].loss_s;

	int length = problem_path_length(p, path);

	for (int h = 0; h < length; h++) {
		int to = path[h + 1 < length ? h + 1 : 0];

		sum_s += problem_forward_s(p, work, path[h]) +
			 problem_backward_s(p, work, path[h]) + problem_round_s(p, path[h], to);
	}
	return sum_s;
}

static int slots_of(const struct sketch *k, int place)
{
	int memory = k->p->c->nodes[k->s->members[place]].memory;

	return memory < k->sent[place] ? memory : k->sent[place];
}

/* Returns the time of the data node's trips, plus the time for which its slots are unused while
 * the first forward tasks and the last backward tasks queue up. */
static double data_node_s(const struct sketch *k, int place)
{
	int slots = slots_of(k, place);
	double edges_s = slots * (slots - 1) / 2.0 *
			 problem_visit_s(k->p, k->s->work, k->s->members[place]);

	return (k->sum_s[place] + edges_s) / slots;
}

static double power_of(const struct sketch *k, int place)
{
	double x = data_node_s(k, place) / k->ref_s;

	x *= x;
	x *= x;
	return x * x;
}

/* Returns the waiting time that n microbatches of one wave cause at a node. Late stages hold a
 * microbatch for a short time only, so a full node costs less there. */
static double wait_s(const struct sketch *k, int node, int n)
{
	int over = n - k->p->c->nodes[node].memory;
	double early = 1 - (double)k->s->stage_of[node] / k->p->n_stages;
	double meet_s = MEET * n * (n - 1) / 2 * problem_visit_s(k->p, k->s->work, node);

	return meet_s + (over > 0 ? over * FULL * early * k->ref_s : 0);
}

static double cost_of(const struct sketch *k)
{
	int data = k->p->sizes[0];
	double mean = sqrt(sqrt(sqrt(k->powers / data)));

	return k->ref_s * mean + k->waits_s / (k->n_waves * data);
}

static void count_visits(struct sketch *k, int mb, const int *path, int by)
{
	for (int h = 1; h < problem_path_length(k->p, path); h++) {
		int *n = &k->visits[path[h] * k->n_waves + k->wave[mb]];

		k->waits_s -= wait_s(k, path[h], *n);
		*n += by;
		k->waits_s += wait_s(k, path[h], *n);
	}
}

static void change_path(struct sketch *k, int mb, const int *from, const int *to)
{
	int place = k->p->mb_slot[mb];
	double now_s = trip_s(k->p, k->s->work, to);

	count_visits(k, mb, from, -1);
	count_visits(k, mb, to, 1);
	k->powers -= power_of(k, place);
	k->sum_s[place] += now_s - k->trip_s[mb];
	k->powers += power_of(k, place);
	k->trip_s[mb] = now_s;
}

/* In the estimate, replaces the old paths of the touched microbatches by their new paths. back:
 * replaces the new paths by the old ones. */
static void change_all(struct sketch *k, bool back)
{
	const struct moves *m = &k->moves;

	for (int i = 0; i < m->n_touched; i++) {
		const int *was = m->saved + i * k->p->length;
		const int *is = k->s->path + m->touched[i] * k->p->length;

		change_path(k, m->touched[i], back ? is : was, back ? was : is);
	}
}

static void count_all(struct sketch *k)
{
	const struct problem *p = k->p;

	for (int i = 0; i < p->n_mb; i++) {
		k->trip_s[i] = trip_s(p, k->s->work, k->s->path + i * p->length);
		k->sum_s[p->mb_slot[i]] += k->trip_s[i];
	}
	for (int d = 0; d < p->sizes[0]; d++) {
		if (k->sent[d] > 0)
			k->ref_s = fmax(k->ref_s, data_node_s(k, d));
	}
	for (int d = 0; d < p->sizes[0]; d++)
		k->powers += k->sent[d] > 0 ? power_of(k, d) : 0;
	for (int i = 0; i < p->n_mb; i++)
		count_visits(k, i, k->s->path + i * p->length, 1);
}

/* Begins a sketch. Divides the microbatches into waves; in a wave, a data node sends as many as it
 * has slots. */
static void sketch_init(struct sketch *k, struct solution *s, const struct problem *p,
			uint64_t seed)
{
	size_t n = (size_t)p->n_mb, data = (size_t)p->sizes[0];
	struct rng rng;

	*k = (struct sketch){ .p = p, .s = s, .n_waves = 1 };
	rng_init_stream(&rng, seed, 5);
	moves_init(&k->moves, p, s, NULL, NULL, rng);
	k->wave = arena_array(&k->arena, n, sizeof(*k->wave));
	k->trip_s = arena_array(&k->arena, n, sizeof(*k->trip_s));
	k->sent = arena_array(&k->arena, data, sizeof(*k->sent));
	k->sum_s = arena_array(&k->arena, data, sizeof(*k->sum_s));
	for (int i = 0; i < p->n_mb; i++) {
		int place = p->mb_slot[i];

		k->wave[i] = k->sent[place]++ / p->c->nodes[s->members[place]].memory;
		k->n_waves = k->wave[i] >= k->n_waves ? k->wave[i] + 1 : k->n_waves;
	}
	k->visits = arena_array(&k->arena, (size_t)p->n_nodes * (size_t)k->n_waves,
				sizeof(*k->visits));
	count_all(k);
}

static void sketch_fini(struct sketch *k)
{
	moves_fini(&k->moves);
	arena_free(&k->arena);
}

/* The first proposals are judged at temperature 0. Their mean rise is measured, and determines the
 * temperature of the proposals that follow. */
static void anneal_sketch(struct sketch *k, const struct progress *g, int64_t steps)
{
	struct rng *rng = &k->moves.rng;
	double cost = cost_of(k), risen = 0, temperature = 0;
	int n_risen = 0;

	for (int64_t i = -PROBED; i < steps; i++) {
		double next;

		if (i % CHECK_EVERY == 0 && progress_over(g))
			break;
		if (i >= 0)
			temperature = HOT / k->p->n_mb * risen / (n_risen + 1) *
				      pow(COLD, (double)i / (double)steps);
		if (!moves_propose_plain(&k->moves, (int)rng_below(rng, (uint32_t)k->p->n_mb)))
			continue;
		change_all(k, false);
		next = cost_of(k);
		if (i < 0 && next > cost) {
			risen += next - cost;
			n_risen++;
		}
		if (next <= cost - temperature * log(1 - rng_uniform(rng))) {
			cost = next;
			moves_keep(&k->moves);
		} else {
			change_all(k, true);
			moves_undo(&k->moves);
		}
	}
}

void sketch_paths(struct solution *s, const struct progress *g, int64_t steps)
{
	struct sketch k;

	if (g->p->length < 2)
		return;
	sketch_init(&k, s, g->p, g->p->q->seed);
	anneal_sketch(&k, g, steps);
	sketch_fini(&k);
}
