/* A plain enumeration, written from the text of the execution model. It shares no code with the
 * search. */
#include "schedule/tests/oracle.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MOST_MB 16
#define MOST_LENGTH 6
#define MOST_NODES 16
#define MOST_CHOICES 256
#define MOST_SETS 16
#define COUNTS ((uint32_t)1 << 16) /* 4 stages with up to 15 visits each */

struct oracle {
	const struct cluster *c;
	const struct oracle_request *q;
	struct oracle_answer *a;
	int n_mb, data_node[MOST_MB], path[MOST_MB][MOST_LENGTH];
	int visits[64], low[64], high[64];
	/* The order of tasks, as a list of choices. options[k]: number of tasks that could start at
	 * the k-th choice; choice[k]: index of the task that starts. */
	int choice[MOST_CHOICES], n_choices, options[MOST_CHOICES];
	bool can_visit[MOST_SETS]; /* sets of stages that a path can visit */
	/* Arrays of COUNTS entries, one for each combination of the stages' visits. true: the
	 * microbatches that were added so far can make these visits. */
	bool *before, *after;
};

static double delay(const struct oracle *o, int from, int to)
{
	return o->c->delay_s[(size_t)from * (size_t)o->c->n_nodes + (size_t)to];
}

struct state {
	int step[MOST_MB]; /* number of tasks done or running, for each microbatch */
	/* Arrival of the next task; INFINITY: the task is running, or all are done */
	double arrival[MOST_MB];
	bool waiting[MOST_MB];
	double free_at[MOST_NODES];
	bool busy[MOST_NODES];
	int held[MOST_NODES];
	int asked;
};

static int node_of(const struct oracle *o, int mb, int step)
{
	int length = o->q->path_length;

	if (step < length)
		return o->path[mb][step];
	return o->path[mb][step == length ? 0 : 2 * length - step];
}

static double seconds(const struct oracle *o, int mb, int step)
{
	const struct cluster_node *n = &o->c->nodes[node_of(o, mb, step)];
	int length = o->q->path_length;
	double work = n->stage < 0 ? 1 : o->c->work[n->stage];

	return step < length    ? n->forward_s * work
	       : step == length ? n->loss_s
				: n->backward_s * work;
}

/* Returns the waiting task that starts on the node; -1: no task may start. */
static int pick(struct oracle *o, struct state *s, int node)
{
	int can[MOST_MB], n = 0, at;

	for (int i = 0; i < o->n_mb; i++) {
		if (s->waiting[i] && node_of(o, i, s->step[i]) == node &&
		    (s->step[i] >= o->q->path_length ||
		     s->held[node] < o->c->nodes[node].memory))
			can[n++] = i;
	}
	if (n == 0)
		return -1;
	if (o->q->fifo || n == 1) {
		int best = 0;

		for (int k = 1; k < n; k++)
			best = s->arrival[can[k]] < s->arrival[can[best]] ? k : best;
		return can[best];
	}
	at = s->asked++;
	if (at == MOST_CHOICES) {
		o->a->complete = false;
		return can[0];
	}
	if (at == o->n_choices)
		o->choice[o->n_choices++] = 0;
	o->options[at] = n;
	return can[o->choice[at]];
}

static void start(const struct oracle *o, struct state *s, int mb, double now, double *last)
{
	int length = o->q->path_length, step = s->step[mb], node = node_of(o, mb, step), to;
	double end = now + seconds(o, mb, step);

	s->held[node] += step < length ? 1 : step > length ? -1 : 0;
	s->busy[node] = true;
	s->free_at[node] = end + o->c->dispatch_overhead_s;
	s->waiting[mb] = false;
	s->step[mb]++;
	s->arrival[mb] = INFINITY;
	*last = end > *last ? end : *last;
	if (step == 2 * length)
		return;
	to = node_of(o, mb, step + 1);
	s->arrival[mb] = to == node ? end : end + delay(o, node, to);
}

/* Returns the iteration time with the present paths and choices. INFINITY: standstill. */
static double run(struct oracle *o)
{
	struct state s = { .asked = 0 };
	double now = 0, last = 0;
	bool more = true;

	while (more) {
		for (int v = 0; v < o->c->n_nodes; v++)
			s.busy[v] = s.busy[v] && s.free_at[v] > now;
		for (int i = 0; i < o->n_mb; i++)
			s.waiting[i] = s.waiting[i] || s.arrival[i] == now;
		/* The order of the nodes does not matter: a node sees only the tasks that wait at
		 * it. A task that takes no time can arrive at another node in the same instant; the
		 * next round handles it. */
		for (int v = 0; v < o->c->n_nodes; v++) {
			int mb = s.busy[v] ? -1 : pick(o, &s, v);

			if (mb >= 0)
				start(o, &s, mb, now, &last);
		}
		more = false;
		for (int i = 0; i < o->n_mb; i++) {
			if (!s.waiting[i] && s.arrival[i] < INFINITY) {
				now = !more || s.arrival[i] < now ? s.arrival[i] : now;
				more = true;
			}
		}
		for (int v = 0; v < o->c->n_nodes; v++) {
			if (s.busy[v]) {
				now = !more || s.free_at[v] < now ? s.free_at[v] : now;
				more = true;
			}
		}
	}
	for (int i = 0; i < o->n_mb; i++) {
		if (s.step[i] != 2 * o->q->path_length + 1)
			return INFINITY;
	}
	return last;
}

/* Runs every order once. After a run, the last choice with an untried option takes the next option,
 * and later choices begin again. */
static void all_orders(struct oracle *o)
{
	o->n_choices = 0;
	do {
		double t;

		if (++o->a->runs > o->q->most_runs) {
			o->a->complete = false;
			return;
		}
		t = run(o);
		o->a->iteration_s = t < o->a->iteration_s ? t : o->a->iteration_s;
		while (o->n_choices > 0 &&
		       o->choice[o->n_choices - 1] + 1 == o->options[o->n_choices - 1])
			o->n_choices--;
		if (o->n_choices > 0)
			o->choice[o->n_choices - 1]++;
	} while (o->n_choices > 0);
}

/* Returns true if CC2 holds, tested literally: exchanges of neighbours that do not overlap can make
 * the stages ascend. */
static bool legal(const int *stages, int n, int top, bool ascending)
{
	if (n == 0)
		return true;
	if (stages[0] > top && legal(stages + 1, n - 1, stages[0], ascending))
		return true;
	return !ascending && n > 1 && stages[0] == stages[1] + 1 && stages[1] > top &&
	       legal(stages + 2, n - 2, stages[0], ascending);
}

/* Calls `found` for each legal path of microbatch mb. The path is then in o->path[mb]. */
static void all_paths(struct oracle *o, int mb, int at, void (*found)(struct oracle *o, int mb))
{
	const struct cluster *c = o->c;
	int stages[MOST_LENGTH] = { 0 }, n = o->q->path_length, last = o->path[mb][at - 1];

	if (o->a && o->a->runs > o->q->most_runs)
		return;
	if (at == n) {
		for (int h = 1; h < n; h++)
			stages[h] = c->nodes[o->path[mb][h]].stage;
		if (legal(stages + 1, n - 1, 0, o->q->ascending) &&
		    (n == 1 || (delay(o, last, o->path[mb][0]) >= 0 &&
				delay(o, o->path[mb][0], last) >= 0)))
			found(o, mb);
		return;
	}
	for (int v = 0; v < c->n_nodes; v++) {
		bool fits = c->nodes[v].stage > 0 && c->nodes[v].memory > 0 && v != last &&
			    delay(o, last, v) >= 0 && delay(o, v, last) >= 0;

		for (int h = 1; h < at; h++)
			fits = fits && c->nodes[o->path[mb][h]].stage != c->nodes[v].stage;
		o->path[mb][at] = v;
		if (fits)
			all_paths(o, mb, at + 1, found);
	}
}

static void with_path(struct oracle *o, int mb)
{
	int n = o->q->path_length;
	bool even = true;

	for (int h = 1; h < n; h++)
		o->visits[o->c->nodes[o->path[mb][h]].stage]++;
	for (int s = 1; s < o->c->n_stages; s++)
		even = even && o->visits[s] <= o->high[s] &&
		       (mb + 1 < o->n_mb || o->visits[s] >= o->low[s]);
	if (even && mb + 1 < o->n_mb) {
		o->path[mb + 1][0] = o->data_node[mb + 1];
		all_paths(o, mb + 1, 1, with_path);
	} else if (even) {
		all_orders(o);
	}
	for (int h = 1; h < n; h++)
		o->visits[o->c->nodes[o->path[mb][h]].stage]--;
}

static void oracle_init(struct oracle *o, const struct cluster *c,
			const struct oracle_request *q)
{
	int others = c->n_stages - 1, total;

	*o = (struct oracle){ .c = c, .q = q };
	for (int v = 0; v < c->n_nodes; v++) {
		for (int k = 0; c->nodes[v].stage == 0 && k < c->microbatches_per_data_node;
		     k++)
			o->data_node[o->n_mb++] = v;
	}
	for (int s = 1; s < c->n_stages; s++)
		others -= stage_set_has(c->always, s);
	total = o->n_mb * (q->path_length - (c->n_stages - others));
	for (int s = 1; s < c->n_stages; s++) {
		bool is_always = stage_set_has(c->always, s);

		o->low[s] = is_always ? o->n_mb : total / others;
		o->high[s] = is_always ? o->n_mb : (total + others - 1) / others;
	}
}

/* Records the path's set of stages. */
static void note_stages(struct oracle *o, int mb)
{
	int stages = 0;

	for (int h = 1; h < o->q->path_length; h++)
		stages |= 1 << (o->c->nodes[o->path[mb][h]].stage - 1);
	o->can_visit[stages] = true;
}

/* Adds one microbatch to the combinations of visits: it can visit any of the recorded sets of
 * stages. A combination is a number in base 16 with one digit, the number of visits, for each
 * stage. */
static void add_visits(struct oracle *o, uint32_t counts)
{
	memset(o->after, 0, counts * sizeof(*o->after));
	for (uint32_t stages = 0; stages < MOST_SETS; stages++) {
		uint32_t by = 0;

		for (int s = 0; s < 4; s++)
			by += (stages >> s & 1) << 4 * s;
		for (uint32_t i = 0; o->can_visit[stages] && i + by < counts; i++)
			o->after[i + by] = o->after[i + by] || o->before[i];
	}
	memcpy(o->before, o->after, counts * sizeof(*o->before));
}

bool oracle_paths_exist(const struct cluster *c, int path_length, bool ascending)
{
	static bool before[COUNTS], after[COUNTS];
	struct oracle_request q = { .path_length = path_length, .ascending = ascending };
	uint32_t counts = (uint32_t)1 << 4 * (c->n_stages - 1);
	struct oracle o;
	bool exist = false;

	oracle_init(&o, c, &q);
	o.before = before;
	o.after = after;
	memset(before, 0, counts * sizeof(*before));
	before[0] = true;
	for (int i = 0; i < o.n_mb; i++) {
		memset(o.can_visit, 0, sizeof(o.can_visit));
		o.path[i][0] = o.data_node[i];
		if (c->nodes[o.data_node[i]].memory > 0)
			all_paths(&o, i, 1, note_stages);
		add_visits(&o, counts);
	}
	for (uint32_t i = 0; i < counts; i++) {
		bool even = before[i];

		for (int s = 1; s < c->n_stages; s++) {
			int visits = (int)(i >> 4 * (s - 1) & 15);

			even = even && visits >= o.low[s] && visits <= o.high[s];
		}
		exist = exist || even;
	}
	return exist;
}

void oracle_solve(const struct cluster *c, const struct oracle_request *q,
		  struct oracle_answer *out)
{
	struct oracle o;

	*out = (struct oracle_answer){ .complete = true, .iteration_s = INFINITY };
	oracle_init(&o, c, q);
	o.a = out;
	o.path[0][0] = o.data_node[0];
	all_paths(&o, 0, 1, with_path);
}
