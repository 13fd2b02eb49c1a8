/* An A* search over visits. fill_least computes the estimates of the remaining time. Of equally
 * early states, the search prefers the one whose nodes have fewer visits by other agents. */
#include "schedule/published/path_search.h"

#include <math.h>
#include <string.h>

#include "schedule/problem/candidate_lists.h"

#define NEAR 16           /* number of next hops that are considered in each stage */
#define MOST_STATES 20000 /* largest number of states in one query */
#define SAME_S 1e-9

/* A partial path: its last visit, and the state that it extends. */
struct state {
	int parent; /* index of the state that this one extends; -1: the data node */
	int node, visits;
	/* Highest stage visited so far, and highest stage visited before the last visit. */
	int top, below;
	int company; /* number of visits by other agents at the nodes of the path */
	/* End of the last forward task or, if `home` is true, end of the whole trip. */
	double end_s;
	double back_s;  /* seconds of the backward tasks and return delays of the visits so far */
	bool home;      /* the path is complete, and end_s is exact */
};

struct waiting {
	double f_s;
	int company, state;
};

struct path_search {
	const struct problem *p;
	const struct solution *s;
	struct candidate_lists candidates;
	/* Array of (length, n_nodes, 2). Row r has for each node the least seconds that a trip
	 * takes after this node: for r more visits, the loss and the return. Index 1 of the last
	 * dimension: the last two visits were an exchange, so the next higher stage has been
	 * visited. */
	double *least;
	struct state *states;
	int n_states;
	struct waiting *heap;
	int n_heap;
	int path[PLAN_MOST_PATH];
};

struct path_search *path_search_new(struct arena *a, const struct problem *p,
				    const struct solution *s)
{
	struct path_search *f = arena_array(a, 1, sizeof(*f));

	candidate_lists_init(&f->candidates, a, p, NEAR);
	f->p = p;
	f->s = s;
	f->least = arena_array(a, (size_t)p->length * (size_t)p->n_nodes * 2, sizeof(*f->least));
	f->states = arena_array(a, MOST_STATES, sizeof(*f->states));
	f->heap = arena_array(a, MOST_STATES, sizeof(*f->heap));
	candidate_lists_fill(&f->candidates, p, s);
	return f;
}

/* Returns the first time, from t on, at which the node is free for the duration of a task. */
static double free_from(const struct path_query *q, int node, double t, double duration)
{
	for (bool again = true; again;) {
		again = false;
		for (int i = 0; i < q->n_taken; i++) {
			const struct taken *k = &q->taken[i];

			if (k->node == node && t < k->to_s && t + duration > k->from_s) {
				t = k->to_s;
				again = true;
			}
		}
	}
	return t;
}

double path_walk(const struct problem *p, const double *work, const struct path_query *q,
		 const int *path, struct stay *stays)
{
	double t = q->start_s;
	int steps = 2 * p->length + 1;

	for (int s = 0; s < steps; s++) {
		int hop = s < p->length ? s : s == p->length ? 0 : 2 * p->length - s;
		int next = s + 1 < p->length ? s + 1
			   : s + 1 == p->length ? 0 : 2 * p->length - s - 1;
		double duration = s < p->length	   ? problem_forward_s(p, work, path[hop])
				  : s == p->length ? p->c->nodes[path[hop]].loss_s
						   : problem_backward_s(p, work, path[hop]);
		double start = free_from(q, path[hop], t, duration);

		t = start + duration;
		if (stays)
			stays[s] = (struct stay){ path[hop], start, t };
		if (s + 1 < steps)
			t += problem_delay_s(p, path[hop], path[next]);
	}
	return t;
}

static bool is_allowed(const struct path_query *q, int node, int stage)
{
	return !(q->barred_stages >> stage & 1) && !(q->barred && q->barred[node]);
}

static double *least_at(const struct path_search *f, int more, int node)
{
	return f->least + ((size_t)more * (size_t)f->p->n_nodes + (size_t)node) * 2;
}

/* Returns the seconds of a hop's round trip, with the work at its far end. */
static double hop_s(const struct path_search *f, int u, int v)
{
	return problem_round_s(f->p, u, v) + problem_forward_s(f->p, f->s->work, v) +
	       problem_backward_s(f->p, f->s->work, v);
}

/* Returns the least seconds of a hop from u to any candidate node of the stage, with `more` visits
 * after it. INFINITY: no node is allowed. */
static double least_through(const struct path_search *f, const struct path_query *q, int u,
			    int stage, int more, bool exchanged)
{
	const int *list = candidate_lists_of(&f->candidates, u, stage);
	double least = INFINITY;

	if (q->barred_stages >> stage & 1)
		return INFINITY;
	for (int k = 0; k < f->candidates.most && list[k] >= 0; k++) {
		if (!q->barred || !q->barred[list[k]])
			least = fmin(least, hop_s(f, u, list[k]) +
						    least_at(f, more, list[k])[exchanged]);
	}
	return least;
}

/* Fills the table row by row, from 0 remaining visits up. */
static void fill_least(struct path_search *f, const struct path_query *q)
{
	const struct problem *p = f->p;
	double loss_s = p->c->nodes[q->data_node].loss_s;

	for (int v = 0; v < p->n_nodes; v++) {
		double *home = least_at(f, 0, v);

		home[0] = home[1] = loss_s + problem_round_s(p, v, q->data_node);
	}
	for (int more = 1; more < p->length; more++) {
		for (int v = 0; v < p->n_nodes; v++) {
			double *to = least_at(f, more, v);
			int stage = f->s->stage_of[v];

			to[0] = to[1] = INFINITY;
			if (stage < 0 || (stage == 0 && v != q->data_node) ||
			    !is_allowed(q, v, stage))
				continue;
			for (int k = stage + 1; k < p->n_stages; k++) {
				double least = least_through(f, q, v, k, more - 1, false);

				to[0] = fmin(to[0], least);
				if (k > stage + 1)
					to[1] = fmin(to[1], least);
			}
			if (!p->q->ascending && stage > 1)
				to[0] = fmin(to[0],
					     least_through(f, q, v, stage - 1, more - 1, true));
		}
	}
}

/* Returns true if a comes before b. Times that differ by less than SAME_S are equal, because sums
 * of the same delays in another order differ in the last bits. */
static bool comes_before(const struct waiting *a, const struct waiting *b)
{
	return fabs(a->f_s - b->f_s) > SAME_S ? a->f_s < b->f_s : a->company < b->company;
}

static void push_state(struct path_search *f, const struct state *st, double f_s)
{
	struct waiting w = { f_s, st->company, f->n_states };
	int i = f->n_heap;

	if (f->n_states == MOST_STATES || isinf(f_s))
		return;
	f->states[f->n_states++] = *st;
	f->n_heap++;
	for (; i > 0 && comes_before(&w, &f->heap[(i - 1) / 2]); i = (i - 1) / 2)
		f->heap[i] = f->heap[(i - 1) / 2];
	f->heap[i] = w;
}

static int pop_state(struct path_search *f)
{
	struct waiting last = f->heap[--f->n_heap];
	int top = f->heap[0].state, i = 0;

	for (int child; (child = 2 * i + 1) < f->n_heap; i = child) {
		if (child + 1 < f->n_heap && comes_before(&f->heap[child + 1], &f->heap[child]))
			child++;
		if (!comes_before(&f->heap[child], &last))
			break;
		f->heap[i] = f->heap[child];
	}
	f->heap[i] = last;
	return top;
}

static void visit_node(struct path_search *f, const struct path_query *q, int from, int v)
{
	const struct problem *p = f->p;
	const struct state *u = &f->states[from];
	double forward_s = problem_forward_s(p, f->s->work, v);
	int stage = f->s->stage_of[v], more = p->length - 1 - u->visits;
	double there = problem_delay_s(p, u->node, v);
	double back = problem_delay_s(p, v, u->node);
	struct state next = { .parent = from, .node = v, .visits = u->visits + 1, .below = u->top,
			      .top = stage > u->top ? stage : u->top,
			      .company = u->company + (q->visits ? q->visits[v] : 0),
			      .back_s = u->back_s + back + problem_backward_s(p, f->s->work, v) };

	if (!is_allowed(q, v, stage))
		return;
	next.end_s = free_from(q, v, u->end_s + there, forward_s) + forward_s;
	push_state(f, &next, next.end_s + next.back_s + least_at(f, more, v)[stage < next.top]);
}

static void visit_stage(struct path_search *f, const struct path_query *q, int from, int stage)
{
	const int *list = candidate_lists_of(&f->candidates, f->states[from].node, stage);

	for (int k = 0; k < f->candidates.most && list[k] >= 0; k++)
		visit_node(f, q, from, list[k]);
}

static void trace_back(struct path_search *f, int state)
{
	for (; state >= 0; state = f->states[state].parent)
		f->path[f->states[state].visits - 1] = f->states[state].node;
}

/* Completes a path: computes its return, and puts it into the heap with its exact time. */
static void go_home(struct path_search *f, const struct path_query *q, int from)
{
	struct state home = f->states[from];

	trace_back(f, from);
	home.home = true;
	home.end_s = path_walk(f->p, f->s->work, q, f->path, NULL);
	push_state(f, &home, home.end_s);
}

static void expand_state(struct path_search *f, const struct path_query *q, int from)
{
	const struct state *u = &f->states[from];
	int stage = f->s->stage_of[u->node], top = u->top;

	/* Begins an exchange with the stage below the last visit, if the path has not visited that
	 * stage. */
	if (!f->p->q->ascending && stage == top && stage > 1 && u->below < stage - 1)
		visit_stage(f, q, from, stage - 1);
	for (int k = top + 1; k < f->p->n_stages; k++)
		visit_stage(f, q, from, k);
}

bool path_search_run(struct path_search *f, const struct path_query *q, int *path,
		     double *home_s)
{
	double forward_s = problem_forward_s(f->p, f->s->work, q->data_node);
	struct state first = { .parent = -1, .node = q->data_node, .visits = 1, .below = -1,
			       .back_s = problem_backward_s(f->p, f->s->work, q->data_node) };

	f->n_states = f->n_heap = 0;
	fill_least(f, q);
	first.end_s = free_from(q, q->data_node, q->start_s, forward_s) + forward_s;
	push_state(f, &first, first.end_s + first.back_s +
				      least_at(f, f->p->length - 1, q->data_node)[0]);
	while (f->n_heap > 0) {
		int at = pop_state(f);

		if (f->states[at].home) {
			trace_back(f, at);
			memcpy(path, f->path, (size_t)f->p->length * sizeof(*path));
			*home_s = f->states[at].end_s;
			return true;
		}
		if (f->states[at].visits == f->p->length)
			go_home(f, q, at);
		else
			expand_state(f, q, at);
	}
	return false;
}
