/* The timetable of a run.
 *
 * A node's rows are its tasks in the order in which they start. A task starts after all tasks
 * that arrived before it, and find_start_s computes this start from the rows. The rows of the
 * microbatch's own present path do not count in this search (take_tasks_out). timetable_route
 * finds a path by a beam search over the visits, and follows the best few paths to the end of the
 * last backward task. */
#include "schedule/improve/timetable.h"

#include <math.h>
#include <string.h>

#include "schedule/improve/beam.h"

#define BEAM 8          /* number of states kept at each level */
#define FOLLOWED_HOME 4 /* number of states of the last level that are followed to the end */

/* A state of the beam search: a partial path that has reached a node. end_s is the end of the
 * forward task there. */
struct timetable_state {
	double end_s;
	/* Cost: end of the forward task, plus the shortest return trip, plus the penalty for
	 * delaying other microbatches. */
	double cost;
	/* The node, and the index of the state of the previous level from which the path reached
	 * it. */
	int node, from;
};

void timetable_init(struct timetable *t, const struct problem *p)
{
	size_t n = (size_t)p->n_nodes, m = (size_t)p->n_mb, steps = 2 * (size_t)p->length + 1;
	size_t rows = m * steps;

	*t = (struct timetable){ .p = p, .steps = (int)steps };
	t->home_s = arena_array(&t->arena, m, sizeof(*t->home_s));
	t->weight = arena_array(&t->arena, m, sizeof(*t->weight));
	t->list = arena_array(&t->arena, n, sizeof(*t->list));
	t->row = arena_array(&t->arena, rows, sizeof(*t->row));
	t->whole = arena_array(&t->arena, rows, sizeof(*t->whole));
	t->row_of = arena_array(&t->arena, m * steps, sizeof(*t->row_of));
	t->node_of = arena_array(&t->arena, m * steps, sizeof(*t->node_of));
	t->states = arena_array(&t->arena, (size_t)p->length * n, sizeof(*t->states));
	t->place = arena_array(&t->arena, n, sizeof(*t->place));
	memset(t->place, 0xff, n * sizeof(*t->place));
}

void timetable_fini(struct timetable *t)
{
	arena_free(&t->arena);
	*t = (struct timetable){ 0 };
}

static void fill_weights(struct timetable *t, const struct fast_simulate *e)
{
	for (int i = 0; i < e->n_mb; i++) {
		int last = i * t->steps + t->steps - 1;
		double x;

		t->home_s[i] = e->start_s[last] + e->chain[last].duration_s;
		x = e->makespan_s > 0 ? t->home_s[i] / e->makespan_s : 1;
		t->weight[i] = x * x * x * x * x * x * x;
	}
}

static void lay_out(struct timetable *t, const struct fast_simulate *e)
{
	int32_t first = 0;

	for (int v = 0; v < e->n_nodes; v++)
		t->list[v] = (struct timetable_list){ .memory = e->nodes[v].memory };
	if (e->p->n_whole > 0)
		memset(t->row_of, 0xff, (size_t)(e->n_mb * t->steps) * sizeof(*t->row_of));
	for (int i = 0; i < e->n_booked; i++) {
		int task = e->booked[i].task, v = e->chain[task].node;

		t->node_of[task] = v;
		t->row_of[task] = t->list[v].n++; /* number of the task within the node's list */
	}
	for (int v = 0; v < e->n_nodes; v++) {
		t->list[v].first = first;
		first += t->list[v].n;
	}
}

void timetable_fill(struct timetable *t, const struct fast_simulate *e)
{
	t->work = e->work;
	fill_weights(t, e);
	lay_out(t, e);
	for (int task = 0; task < e->n_mb * t->steps; task++) {
		int mb = task / t->steps, kind = task % t->steps - t->p->length;
		struct timetable_row row;

		if (t->row_of[task] < 0)
			continue;
		row = (struct timetable_row){
			.start_s = e->start_s[task],
			.free_s = e->start_s[task] + e->chain[task].duration_s + e->overhead_s,
			.arrival_s = e->arrival_s[task],
			.weight = t->weight[mb],
			.task = task,
			.slots = kind < 0    ? 1
				 : kind == 0 ? 0
					     : -1,
		};

		t->row_of[task] += t->list[t->node_of[task]].first;
		t->row[t->row_of[task]] = t->whole[t->row_of[task]] = row;
	}
}

/* Strikes out the tasks of a microbatch: find_start_s ignores them until put_tasks_back is
 * called. */
static void take_tasks_out(struct timetable *t, int mb)
{
	for (int task = mb * t->steps; task < (mb + 1) * t->steps; task++) {
		struct timetable_row *row = &t->row[t->row_of[task]];

		if (t->row_of[task] < 0)
			continue;
		row->free_s = row->arrival_s = -INFINITY;
		row->slots = 0;
	}
}

static void put_tasks_back(struct timetable *t, int mb)
{
	for (int task = mb * t->steps; task < (mb + 1) * t->steps; task++)
		if (t->row_of[task] >= 0)
			t->row[t->row_of[task]] = t->whole[t->row_of[task]];
}

/* Returns the time at which a task starts if it arrives at the node at arrival_s. The task starts
 * after the tasks that arrived before it; with needs_slot, it also waits for an unused slot. Call
 * take_tasks_out for the task's microbatch first. Adds to *put_off_s the weighted seconds by
 * which the next task is delayed. */
static double find_start_s(const struct timetable *t, int node, double arrival_s, double duration_s,
			 bool needs_slot, double *put_off_s)
{
	const struct timetable_list *list = &t->list[node];
	const struct timetable_row *row = t->row + list->first, *end = row + list->n;
	int free_slots = needs_slot ? list->memory : INT32_MAX / 2;
	double at_s = arrival_s;

	for (; row < end && row->start_s < arrival_s; row++) {
		free_slots -= row->slots;
		at_s = row->free_s > at_s ? row->free_s : at_s;
	}
	for (; row < end; row++) {
		if (row->start_s >= at_s && row->arrival_s > arrival_s && free_slots > 0) {
			double over_s = at_s + duration_s + t->p->c->dispatch_overhead_s -
					row->start_s;

			*put_off_s += over_s > 0 ? over_s * row->weight : 0;
			break;
		}
		free_slots -= row->slots;
		at_s = row->free_s > at_s ? row->free_s : at_s;
	}
	return at_s;
}

/* Follows the loss and then the backward tasks in reverse order, from the end of the last forward
 * task. Returns the end of the last backward task. */
static double follow_home_s(const struct timetable *t, const int *path, double end_s,
			    double *put_off_s)
{
	const struct problem *p = t->p;
	int length = problem_path_length(p, path), at = path[length - 1];

	for (int hop = length; hop >= 0; hop--) {
		int v = path[hop == length ? 0 : hop];
		const struct cluster_node *n = &p->c->nodes[v];
		double duration_s = hop == length ? n->loss_s
						  : problem_backward_s(p, t->work, v);
		double arrival_s = end_s + (v == at ? 0 : problem_delay_s(p, at, v));

		end_s = duration_s +
			find_start_s(t, v, arrival_s, duration_s, false, put_off_s);
		at = v;
	}
	return end_s;
}

/* Returns the end of the first forward task. Its time does not depend on the rest of the path. */
static double sent_s(const struct timetable *t, int mb, int data_node)
{
	return timetable_row(t, mb * t->steps)->start_s +
	       problem_forward_s(t->p, t->work, data_node);
}

double timetable_estimate(struct timetable *t, int mb, const int *path, double *put_off_s)
{
	const struct problem *p = t->p;
	double end_s = sent_s(t, mb, path[0]);

	take_tasks_out(t, mb);
	for (int hop = 1; hop < problem_path_length(p, path); hop++) {
		double forward_s = problem_forward_s(p, t->work, path[hop]);
		double arrival_s = end_s + problem_delay_s(p, path[hop - 1], path[hop]);

		end_s = forward_s +
			find_start_s(t, path[hop], arrival_s, forward_s, true, put_off_s);
	}
	end_s = follow_home_s(t, path, end_s, put_off_s);
	put_tasks_back(t, mb);
	return end_s;
}

int timetable_waits(const struct timetable *t, int mb, struct timetable_wait *list, int most)
{
	int task = mb * t->steps + t->steps - 1, n = 0;

	while (n < most) {
		const struct timetable_row *row = timetable_row(t, task);
		int node = t->node_of[task];

		if (row->start_s > row->arrival_s &&
		    t->row_of[task] > t->list[node].first) {
			int before = row[-1].task, y = before / t->steps;

			if (t->node_of[y * t->steps] != node)
				list[n++] = (struct timetable_wait){ task / t->steps, y,
								     node };
			task = before;
		} else if (task % t->steps > 0) {
			do
				task--;
			while (t->row_of[task] < 0);
		} else {
			break;
		}
	}
	return n;
}

static struct timetable_state *level_of(const struct timetable *t, int level)
{
	return t->states + (size_t)level * (size_t)t->p->n_nodes;
}

/* The beam search for one path. */
struct search {
	struct timetable *t;
	const struct solution *s;
	const struct candidate_lists *candidates;
	/* Node that must not be visited; present level; number of states in it */
	int banned, level, n;
	struct beam beam;     /* the best states of the level */
	double charge;
};

/* Extends a state of the previous level to node v. */
static void reach_node(struct search *q, int from, int v)
{
	struct timetable *t = q->t;
	const struct timetable_state *before = level_of(t, q->level - 1) + from;
	double forward_s = problem_forward_s(t->p, t->work, v);
	double backward_s = problem_backward_s(t->p, t->work, v);
	double back_s = problem_delay_s(t->p, v, before->node), put_off_s = 0;
	double arrival_s = before->end_s + problem_delay_s(t->p, before->node, v);
	double end_s = arrival_s + forward_s;
	double cost = before->cost + end_s - before->end_s + back_s + backward_s;
	struct timetable_state *list = level_of(t, q->level);
	int at = t->place[v];

	if (isinf(arrival_s) || isinf(back_s) || t->p->c->nodes[v].memory < 1 ||
	    (at >= 0 && list[at].cost <= cost))
		return;
	if (!beam_excludes(&q->beam, cost)) {
		end_s = forward_s + find_start_s(t, v, arrival_s, forward_s, true, &put_off_s);
		cost = before->cost + end_s - before->end_s + back_s + backward_s +
		       q->charge * put_off_s;
		if (at >= 0 && list[at].cost <= cost)
			return;
	}
	if (at < 0)
		at = t->place[v] = q->n++;
	list[at] = (struct timetable_state){ end_s, cost, v, from };
	beam_offer(&q->beam, at, cost);
}

static void fill_level(struct search *q, int stage)
{
	int size = q->s->start[stage + 1] - q->s->start[stage];
	struct timetable_state *list = level_of(q->t, q->level);
	struct beam before = q->beam;

	q->n = 0;
	q->beam = (struct beam){ .width = BEAM };
	for (int i = 0; i < before.n; i++) {
		int by = level_of(q->t, q->level - 1)[before.at[i]].node;
		const int *to = size > q->candidates->most
					? candidate_lists_of(q->candidates, by, stage)
					: q->s->members + q->s->start[stage];

		for (int k = 0; k < size && k < q->candidates->most && to[k] >= 0; k++) {
			/* Skips a node whose stage has changed after the lists were filled. */
			if (to[k] != q->banned && q->s->stage_of[to[k]] == stage)
				reach_node(q, before.at[i], to[k]);
		}
	}
	for (int i = 0; i < q->n; i++)
		q->t->place[list[i].node] = -1;
}

static void trace_path(const struct timetable *t, int length, int last, int *path)
{
	for (int level = length - 1; level > 0; level--) {
		path[level] = level_of(t, level)[last].node;
		last = level_of(t, level)[last].from;
	}
}

bool timetable_route(struct timetable *t, const struct solution *s,
		     const struct candidate_lists *candidates, int mb, int banned, double charge,
		     int *path)
{
	const struct problem *p = t->p;
	struct search q = { .t = t, .s = s, .candidates = candidates, .banned = banned };
	int tried[PLAN_MOST_PATH], length = problem_path_length(p, path), last = length - 1;
	double best = INFINITY;

	/* Penalty for delaying other microbatches by one weighted second, in seconds of this
	 * microbatch's finish time. One second of this microbatch weighs t->weight[mb]. */
	q.charge = charge / (t->weight[mb] + 1e-9);
	q.beam = (struct beam){ .width = 1, .n = 1 };
	take_tasks_out(t, mb);
	*level_of(t, 0) =
		(struct timetable_state){ .end_s = sent_s(t, mb, path[0]), .node = path[0] };
	for (q.level = 1; q.level < length; q.level++)
		fill_level(&q, s->stage_of[path[q.level]]);
	memcpy(tried, path, (size_t)p->length * sizeof(*path));
	for (int i = 0; i < q.beam.n && i < FOLLOWED_HOME; i++) {
		double put_off_s = 0, cost;

		trace_path(t, length, q.beam.at[i], tried);
		cost = follow_home_s(t, tried, level_of(t, last)[q.beam.at[i]].end_s,
					&put_off_s);
		cost += q.charge * put_off_s;
		if (cost < best) {
			best = cost;
			memcpy(path, tried, (size_t)p->length * sizeof(*path));
		}
	}
	put_tasks_back(t, mb);
	return best < INFINITY;
}
