/* Finds new paths for the microbatches that lanes_take_out has removed.
 *
 * A beam search over the visits finds the path of one microbatch (extend_state, reach_node). The
 * cost of a state includes the waits of F and B at the node, which price_visit reads from the
 * timeline of all other microbatches. follow_path computes all task times of the best paths. Then
 * the node that causes the longest delay of other microbatches is replaced, as long as this helps.
 *
 * Times are floats, as in slot_timeline.h. They are predictions; a simulation then decides if the
 * new paths are kept. */
#include "schedule/improve/lanes.h"

#include <math.h>
#include <string.h>

#include "schedule/improve/beam.h"

#define BEAM 6
#define NEAR 16
#define REPLACED 6 /* largest number of nodes of a path that are replaced */
/* Delay that is assumed if no slot is free, as a multiple of the mean work of a visit. */
#define NO_SLOT 2
#define SAME 1e-4f /* times that differ by fewer seconds count as equal */
#define MOST_STEPS (2 * PLAN_MOST_PATH + 1)

/* A state of the beam search: a partial path that has reached a node. end_s is the end of the
 * forward task (F) there. */
struct lanes_state {
	float end_s;
	float spent; /* cost so far, without the return to the data node */
	/* Cost of the whole trip as far as it is known, plus the charge for delaying other
	 * microbatches. */
	float cost;
	/* The node, and the index of the state of the previous level from which the path reached
	 * it. */
	int node, from;
	struct visit visit;
};

void lanes_init(struct lanes *l, const struct problem *p)
{
	size_t n = VISIT_OWINGS * (size_t)p->n_nodes, m = (size_t)p->n_mb;
	size_t stages = (size_t)p->n_stages;
	double work_s = 0;

	*l = (struct lanes){ .p = p };
	candidate_lists_init(&l->candidates, &l->arena, p, NEAR);
	l->was_sent_s = arena_array(&l->arena, m, sizeof(*l->was_sent_s));
	l->sent_s = arena_array(&l->arena, m, sizeof(*l->sent_s));
	l->home_s = arena_array(&l->arena, m, sizeof(*l->home_s));
	l->next = arena_array(&l->arena, m, sizeof(*l->next));
	l->before = arena_array(&l->arena, m, sizeof(*l->before));
	l->is_out = arena_array(&l->arena, m, sizeof(*l->is_out));
	stage_quota_init(&l->quota, p);
	l->states = arena_array(&l->arena, (size_t)p->length * n, sizeof(*l->states));
	l->place = arena_array(&l->arena, n, sizeof(*l->place));
	l->away_s = arena_array(&l->arena, (size_t)p->n_nodes, sizeof(*l->away_s));
	l->hops = arena_array(&l->arena, (size_t)p->n_nodes * stages * (size_t)l->candidates.most,
			      sizeof(*l->hops));
	slot_timeline_init(&l->timeline, p);
	memset(l->place, 0xff, n * sizeof(*l->place));
	for (int i = 0; i < p->n_nodes; i++)
		work_s += p->c->nodes[i].forward_s + p->c->nodes[i].backward_s;
	l->work_s = (float)(work_s / p->n_nodes);
}

void lanes_fini(struct lanes *l)
{
	slot_timeline_fini(&l->timeline);
	arena_free(&l->arena);
	*l = (struct lanes){ 0 };
}

void lanes_fill_hops(struct lanes *l, const struct solution *s)
{
	const struct problem *p = l->p;
	struct lanes_hop *hop;
	float least = INFINITY;

	candidate_lists_fill(&l->candidates, p, s);
	for (int u = 0; u < p->n_nodes; u++) {
		hop = l->hops + (size_t)u * (size_t)p->n_stages * (size_t)l->candidates.most;
		for (int i = 0; i < p->n_stages * l->candidates.most; i++) {
			bool is_listed = i >= l->candidates.most && s->stage_of[u] >= 0;
			int v = is_listed ? candidate_lists_of(&l->candidates, u, 0)[i] : -1;

			hop[i].node = v;
			if (v < 0)
				continue;
			hop[i].out_s = (float)problem_delay_s(p, u, v);
			hop[i].more_s = (float)(candidate_lists_round_s(&l->candidates, u, 0)[i] +
						problem_forward_s(p, s->work, v) +
						problem_backward_s(p, s->work, v));
			least = fminf(least, hop[i].more_s);
		}
	}
	l->hop_s = isfinite(least) ? least : 0;
}

/* Finds the lanes of a data node. Microbatch b follows microbatch a in a lane if b waited for a
 * slot and the first forward task (F) of b starts right after the last backward task (B) of a. */
static void find_lanes(struct lanes *l, const struct fast_simulate *e, int data_node)
{
	const struct slot_timeline *g = &l->timeline;
	const struct slot_timeline_list *list = &g->list[data_node];

	for (int at = list->first + 1; at < list->first + list->n; at++) {
		int task = g->task[at], mb = task / g->steps, before = g->task[at - 1];

		if (task % g->steps == 0 && before % g->steps == g->steps - 1 &&
		    e->start_s[task] > e->arrival_s[task] + SAME) {
			l->before[mb] = before / g->steps;
			l->next[before / g->steps] = mb;
		}
	}
}

void lanes_fill(struct lanes *l, const struct fast_simulate *e)
{
	slot_timeline_fill(&l->timeline, e);
	for (int i = 0; i < l->p->n_mb; i++) {
		int first = i * e->steps, last = first + e->steps - 1;

		l->sent_s[i] = l->was_sent_s[i] = (float)e->start_s[first];
		l->home_s[i] = (float)(e->start_s[last] + e->chain[last].duration_s);
		l->next[i] = l->before[i] = -1;
	}
	for (int v = 0; v < l->p->n_nodes; v++)
		find_lanes(l, e, v);
}

void lanes_take_out(struct lanes *l, const struct solution *s, int mb)
{
	int n = 0;

	for (int y = mb; y >= 0; y = l->next[y])
		n += !l->is_out[y];
	if (l->n_out + n > LANES_MOST)
		return;
	for (int y = mb; y >= 0; y = l->next[y]) {
		const int *path = solution_path(s, l->p, y);

		if (l->is_out[y])
			continue;
		for (int h = 0; h < problem_path_length(l->p, path); h++)
			slot_timeline_take_out(&l->timeline, path[h], y);
		stage_quota_leave(&l->quota, s, path);
		l->is_out[y] = true;
		l->was_s[l->n_out] = l->home_s[y];
		l->out[l->n_out++] = y;
	}
}

void lanes_restore(struct lanes *l)
{
	slot_timeline_restore(&l->timeline);
	for (int i = 0; i < l->n_out; i++) {
		int mb = l->out[i];

		l->is_out[mb] = false;
		l->back_s[i] = l->home_s[mb];
		l->home_s[mb] = l->was_s[i];
	}
	memcpy(l->sent_s, l->was_sent_s, (size_t)l->p->n_mb * sizeof(*l->sent_s));
	stage_quota_init(&l->quota, l->p);
	l->n_back = l->n_out;
	l->n_out = 0;
	l->over_s = 0;
	l->n_in_way = 0;
}

/* The tasks of a path, from the first forward task to the last backward task. */
struct trip {
	struct slot_timeline_task task[MOST_STEPS];
	float home_s, over_s;
	float worst_s; /* longest delay that a hop causes for other microbatches */
	/* The hop that delays other microbatches longest; 0: no hop delays other microbatches, or
	 * only the tasks at the data node delay them. */
	int worst;
};

static void note_over(struct trip *w, int hop, float over_s)
{
	w->over_s += over_s;
	if (over_s > w->worst_s) {
		w->worst_s = over_s;
		w->worst = hop;
	}
}

/* Computes the times of the path's tasks if all other microbatches keep their times. Returns
 * false, with w undefined, if the cost exceeds `most`. */
static bool follow_path(const struct lanes *l, int mb, const int *path, float charge, float most,
			struct trip *w)
{
	const struct problem *p = l->p;
	const struct slot_timeline *g = &l->timeline;
	int length = p->length, visits = problem_path_length(p, path), at = path[0];
	int before[PLAN_MOST_PATH];
	float end_s = l->sent_s[mb] + g->list[at].forward_s;

	w->home_s = w->over_s = w->worst_s = 0;
	w->worst = 0;
	w->task[0] = (struct slot_timeline_task){ at, mb * g->steps, l->sent_s[mb], l->sent_s[mb],
						  end_s + g->overhead_s };
	for (int i = problem_next_step(p, visits, 0); i < g->steps;
	     i = problem_next_step(p, visits, i)) {
		int hop = i < length ? i : i == length ? 0 : 2 * length - i, v = path[hop], rows;
		const struct slot_timeline_list *list = &g->list[v];
		float duration_s = i < length ? list->forward_s
				   : i == length ? (float)p->c->nodes[v].loss_s : list->backward_s;
		float arrival_s = end_s + (v == at ? 0 : (float)problem_delay_s(p, at, v));
		/* The last backward task frees a slot, so the next microbatch of the lane is sent
		 * right after it. */
		bool sends = i == g->steps - 1 && l->next[mb] >= 0;
		float more_s = sends ? g->overhead_s + list->forward_s : 0, over_s = 0, start_s;

		rows = slot_timeline_before(g, list, arrival_s);
		start_s = slot_timeline_start_s(g, list, rows, arrival_s, duration_s + more_s,
						&over_s);
		if (i < length)
			before[i] = rows;
		else if (hop > 0 && !slot_timeline_have_slot(list, before[hop], rows))
			over_s += NO_SLOT * l->work_s;
		note_over(w, hop, over_s);
		end_s = start_s + duration_s;
		if (end_s + charge * w->over_s > most)
			return false;
		w->task[i] = (struct slot_timeline_task){ v, mb * g->steps + i, arrival_s, start_s,
							  end_s + g->overhead_s };
		at = v;
	}
	w->home_s = end_s;
	return true;
}

/* The beam search for one path. */
struct search {
	struct lanes *l;
	const struct solution *s;
	int mb, data_node;
	int level, n;     /* present level, and number of states in it */
	struct beam beam; /* the best states of the level */
	float charge;
	/* Least seconds between F and B of a visit in this level, without the round trip to the
	 * data node (away_s): the time of the later visits and of the loss. */
	float rest_s;
};

static struct lanes_state *level_of(const struct lanes *l, int level)
{
	return l->states + VISIT_OWINGS * (size_t)level * (size_t)l->p->n_nodes;
}

/* Returns the cost of a visit without its travel and work. The cost consists of the waits of the
 * forward task (F) and the backward task (B), and of the charge for delaying other microbatches. B
 * is assumed to arrive as early as the rest of the path allows. Returns INFINITY if F alone costs
 * `room` or more. *end_s gets the end of F. */
static float price_visit(const struct search *q, int v, float arrival_s, float room, float *end_s)
{
	const struct slot_timeline *g = &q->l->timeline;
	const struct slot_timeline_list *list = &g->list[v];
	float over_s = 0, wait_s, back_s;
	int before = slot_timeline_before(g, list, arrival_s), until;

	wait_s = slot_timeline_start_s(g, list, before, arrival_s, list->forward_s, &over_s) -
		 arrival_s;
	*end_s = arrival_s + wait_s + list->forward_s;
	if (wait_s + q->charge * over_s >= room)
		return INFINITY;
	back_s = *end_s + q->rest_s + q->l->away_s[v];
	until = slot_timeline_before(g, list, back_s);
	wait_s += slot_timeline_start_s(g, list, until, back_s, list->backward_s, &over_s) -
		  back_s;
	if (!slot_timeline_have_slot(list, before, until))
		over_s += NO_SLOT * q->l->work_s;
	return wait_s + q->charge * over_s;
}

static void reach_node(struct search *q, int from, const struct lanes_hop *hop,
		       const struct visit *visit)
{
	int v = hop->node, *place = &q->l->place[VISIT_OWINGS * v + (int)visit->owing];
	const struct lanes_state *before = level_of(q->l, q->level - 1) + from;
	struct lanes_state *list = level_of(q->l, q->level);
	float end_s, spent = before->spent + hop->more_s;
	float cost = spent + q->l->away_s[v], most, more;

	most = q->beam.n == q->beam.width ? (float)q->beam.cost[q->beam.n - 1] : INFINITY;
	if (*place >= 0 && list[*place].cost < most)
		most = list[*place].cost;
	if (!(cost < most))
		return;
	more = price_visit(q, v, before->end_s + hop->out_s, most - cost, &end_s);
	cost += more;
	if (!(cost < most))
		return;
	if (*place < 0)
		*place = q->n++;
	list[*place] = (struct lanes_state){ end_s, spent + more, cost, v, from, *visit };
	beam_offer(&q->beam, *place, cost);
}

static const struct lanes_hop *hops_of(const struct lanes *l, int node, int stage)
{
	return l->hops + ((size_t)node * (size_t)l->p->n_stages + (size_t)stage) *
				 (size_t)l->candidates.most;
}

static void reach_stage(struct search *q, int from, const struct visit *visit)
{
	int node = level_of(q->l, q->level - 1)[from].node;
	const struct lanes_hop *hop = hops_of(q->l, node, visit->stage);

	for (int i = 0; i < q->l->candidates.most && hop[i].node >= 0; i++) {
		/* Skips a node whose stage has changed after the hops were listed. */
		if (q->s->stage_of[hop[i].node] == visit->stage)
			reach_node(q, from, &hop[i], visit);
	}
}

static void extend_state(struct search *q, int from)
{
	struct visit next[STAGE_QUOTA_MOST_NEXT];
	const struct visit *last = &level_of(q->l, q->level - 1)[from].visit;
	int n = stage_quota_next(&q->l->quota, q->level, last, next);

	for (int k = 0; k < n; k++)
		reach_stage(q, from, &next[k]);
}

static void fill_level(struct search *q)
{
	struct lanes_state *list = level_of(q->l, q->level);
	struct beam before = q->beam;
	const struct cluster_node *data_node = &q->l->p->c->nodes[q->data_node];

	q->rest_s =
		(float)(q->l->quota.length - 1 - q->level) * q->l->hop_s + (float)data_node->loss_s;
	q->n = 0;
	q->beam = (struct beam){ .width = BEAM };
	for (int i = 0; i < before.n; i++)
		extend_state(q, before.at[i]);
	for (int i = 0; i < q->n; i++)
		q->l->place[VISIT_OWINGS * list[i].node + (int)list[i].visit.owing] = -1;
}

static void trace_path(const struct lanes *l, int last, int *path)
{
	for (int level = l->quota.length - 1; level > 0; level--) {
		path[level] = level_of(l, level)[last].node;
		last = level_of(l, level)[last].from;
	}
}

static float cost_of(const struct search *q, const struct trip *w)
{
	return w->home_s + q->charge * w->over_s;
}

/* Replaces the node of the hop that delays other microbatches most. Returns false if no
 * replacement is better. */
static bool replace_worst(const struct search *q, int *path, struct trip *w)
{
	const struct lanes *l = q->l;
	int at = w->worst, was = path[at], best = -1;
	const struct lanes_hop *hop = hops_of(l, path[at - 1], q->s->stage_of[was]);
	struct trip other;

	for (int i = 0; i < l->candidates.most && hop[i].node >= 0; i++) {
		if (q->s->stage_of[hop[i].node] != q->s->stage_of[was])
			continue;
		path[at] = hop[i].node;
		if (path[at] != was &&
		    follow_path(l, q->mb, path, q->charge, cost_of(q, w), &other) &&
		    cost_of(q, &other) < cost_of(q, w)) {
			*w = other;
			best = path[at];
		}
	}
	path[at] = best >= 0 ? best : was;
	return best >= 0;
}

/* Chooses the best path of the beam and replaces the worst nodes of this path. Writes the result to
 * `path`. */
static bool choose_path(const struct search *q, int *path, struct trip *best)
{
	const struct lanes *l = q->l;
	int tried[PLAN_MOST_PATH];
	float most = INFINITY;
	struct trip w;

	memcpy(tried, path, (size_t)l->p->length * sizeof(*path));
	for (int i = 0; i < q->beam.n; i++) {
		trace_path(l, q->beam.at[i], tried);
		if (!follow_path(l, q->mb, tried, q->charge, most, &w))
			continue;
		most = cost_of(q, &w);
		*best = w;
		memcpy(path, tried, (size_t)l->p->length * sizeof(*path));
	}
	for (int k = 0; k < REPLACED && most < INFINITY && best->over_s > 0 && best->worst > 0;
	     k++) {
		if (!replace_worst(q, path, best))
			break;
	}
	return most < INFINITY;
}

static void note_in_way(struct lanes *l, int mb)
{
	for (int i = 0; i < l->n_in_way; i++) {
		if (l->in_way[i] == mb)
			return;
	}
	if (l->n_in_way < LANES_MOST)
		l->in_way[l->n_in_way++] = mb;
}

/* Lists the microbatches that the trip delays. A task of such a microbatch must wait for a task
 * of the trip, or for a slot that the trip holds. sends: the next microbatch of the lane starts
 * right after the trip. */
static void find_in_way(struct lanes *l, const struct trip *w, bool sends)
{
	const struct slot_timeline *g = &l->timeline;
	int length = l->p->length, visits = l->quota.length, before[MOST_STEPS];

	for (int i = problem_next_step(l->p, visits, 0); i < g->steps;
	     i = problem_next_step(l->p, visits, i)) {
		const struct slot_timeline_task *t = &w->task[i];
		const struct slot_timeline_list *list = &g->list[t->node];
		int hop = i > length ? 2 * length - i : 0, at;
		float free_s = t->free_s;

		if (sends && i == g->steps - 1)
			free_s += list->forward_s + g->overhead_s;
		before[i] = slot_timeline_before(g, list, t->arrival_s);
		for (at = list->first + before[i]; g->start_s[at] < free_s - SAME; at++)
			note_in_way(l, g->task[at] / g->steps);
		if (hop == 0 || slot_timeline_have_slot(list, before[hop], before[i]))
			continue;
		for (at = list->first + before[hop]; at < list->first + list->n; at++) {
			if (g->task[at] % g->steps < length) {
				note_in_way(l, g->task[at] / g->steps);
				break;
			}
		}
	}
}

static bool is_back(const struct lanes *l, int mb)
{
	for (int i = 0; i < l->n_out; i++) {
		if (l->out[i] == mb)
			return !l->is_out[mb];
	}
	return false;
}

bool lanes_eject(struct lanes *l, const struct solution *s)
{
	for (int i = 0; i < l->n_in_way; i++) {
		for (int y = l->in_way[i]; y >= 0; y = l->next[y]) {
			if (is_back(l, y))
				return false;
		}
		lanes_take_out(l, s, l->in_way[i]);
		if (!l->is_out[l->in_way[i]])
			return false;
	}
	l->n_in_way = 0;
	l->over_s = 0;
	return true;
}

/* Finds the path of one microbatch and adds its tasks to the timeline. The microbatch that follows
 * in the lane gets its new start time, and the delayed microbatches are listed. */
static bool put_in(struct lanes *l, const struct solution *s, int mb, float charge)
{
	const struct problem *p = l->p;
	int *path = solution_path(s, p, mb);
	struct search q = { .l = l, .s = s, .mb = mb, .data_node = path[0], .charge = charge };
	struct trip w;

	q.beam = (struct beam){ .width = 1, .n = 1 };
	for (int v = 0; v < p->n_nodes; v++)
		l->away_s[v] = (float)problem_round_s(p, path[0], v);
	stage_quota_count(&l->quota, path);
	*level_of(l, 0) = (struct lanes_state){
		.end_s = l->sent_s[mb] + l->timeline.list[path[0]].forward_s, .node = path[0]
	};
	for (q.level = 1; q.level < l->quota.length; q.level++)
		fill_level(&q);
	if (!choose_path(&q, path, &w))
		return false;
	stage_quota_return(&l->quota, s, path);
	l->is_out[mb] = false;
	l->over_s += w.over_s;
	if (w.over_s > 0)
		find_in_way(l, &w, l->next[mb] >= 0);
	l->home_s[mb] = w.home_s;
	if (l->next[mb] >= 0)
		l->sent_s[l->next[mb]] = w.home_s + l->timeline.overhead_s;
	for (int i = 0; i < l->timeline.steps; i = problem_next_step(p, l->quota.length, i)) {
		if (!slot_timeline_put_in(&l->timeline, &w.task[i]))
			return false;
	}
	return true;
}

/* Picks the microbatch to plan next among the first n that were taken out. Considers only
 * microbatches whose predecessor in the lane is already planned. With in_turn, picks the first in
 * the list `out`; without it, picks the microbatch that is sent first. -1: none is left. */
static int next_of(const struct lanes *l, int n, bool in_turn)
{
	int best = -1;

	for (int i = 0; i < n; i++) {
		int mb = l->out[i];

		if (l->is_out[mb] && (l->before[mb] < 0 || !l->is_out[l->before[mb]]) &&
		    (best < 0 || (!in_turn && l->sent_s[mb] < l->sent_s[best])))
			best = mb;
	}
	return best;
}

bool lanes_put_in(struct lanes *l, const struct solution *s, int n, bool in_turn, float charge,
		  float most_s)
{
	int mb;

	while ((mb = next_of(l, n, in_turn)) >= 0) {
		if (!put_in(l, s, mb, charge) || l->over_s > most_s)
			return false;
	}
	return true;
}
