/* The search of single_machine.h, layer by layer: each layer has all states with the same number of
 * tasks done. */
#include "schedule/bound/single_machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* A partial schedule. at_s has an entry for each microbatch under way, oldest first. If its L is
 * done, the entry is the earliest start of its B, otherwise the end of its F. */
struct state {
	double free_s; /* time at which the machine is free, overhead included */
	double at_s[SINGLE_MACHINE_MOST_SLOTS];
};

/* Numbers of F, L and B done by the microbatches under way. A microbatch whose B is done no longer
 * counts. */
struct done {
	int f, l, b;
};

struct walk {
	const struct single_machine *m;
	int slots, width, n_cells, most;
	/* The present layer and the next: n_cells lists of at most `most` states. */
	struct state *now, *next;
	int *n_now, *n_next;
	bool exact;
};

static int cell_of(const struct walk *w, struct done d)
{
	return (d.f * w->width + d.l) * w->width + d.b;
}

static bool no_worse(const struct state *a, const struct state *b, int under_way)
{
	if (a->free_s > b->free_s)
		return false;
	for (int i = 0; i < under_way; i++) {
		if (a->at_s[i] > b->at_s[i])
			return false;
	}
	return true;
}

/* Merges the state into the most similar state of the list. For each time, the result gets the
 * earlier one of the two states. */
static void merge_state(struct state *list, int n, const struct state *state, int under_way)
{
	double closest = INFINITY;
	int into = 0;

	for (int i = 0; i < n; i++) {
		double apart = fabs(list[i].free_s - state->free_s);

		for (int k = 0; k < under_way; k++)
			apart += fabs(list[i].at_s[k] - state->at_s[k]);
		if (apart < closest) {
			closest = apart;
			into = i;
		}
	}
	list[into].free_s = fmin(list[into].free_s, state->free_s);
	for (int k = 0; k < under_way; k++)
		list[into].at_s[k] = fmin(list[into].at_s[k], state->at_s[k]);
}

static void reach_state(struct walk *w, struct done d, const struct state *state)
{
	int cell = cell_of(w, d), *n = &w->n_next[cell], kept = 0;
	struct state *list = w->next + (size_t)cell * (size_t)w->most;

	for (int i = 0; i < *n; i++) {
		if (no_worse(&list[i], state, d.f))
			return;
	}
	for (int i = 0; i < *n; i++) {
		if (!no_worse(state, &list[i], d.f))
			list[kept++] = list[i];
	}
	*n = kept;
	if (kept < w->most) {
		list[(*n)++] = *state;
	} else {
		merge_state(list, kept, state, d.f);
		w->exact = false;
	}
}

/* Removes the oldest microbatch, whose B is done, from the state, and adds the state to the next
 * layer. */
static void reach_without_oldest(struct walk *w, struct done d, struct state *state)
{
	memmove(state->at_s, state->at_s + 1, sizeof(state->at_s) - sizeof(state->at_s[0]));
	reach_state(w, (struct done){ d.f - 1, d.l - 1, d.b - 1 }, state);
}

/* Tries each task that the machine may do next. `sent`: number of microbatches whose F is done. */
static void extend_state(struct walk *w, struct done d, const struct state *from, int sent)
{
	const struct single_machine *m = w->m;
	struct state state = *from;

	if (d.b < d.l) { /* the next task is a backward pass */
		state.free_s =
			fmax(from->free_s, from->at_s[d.b]) + m->backward_s + m->overhead_s;
		reach_without_oldest(w, (struct done){ d.f, d.l, d.b + 1 }, &state);
	}
	if (d.l < d.f) { /* the next task is a loss */
		double end_s = fmax(from->free_s, from->at_s[d.l] + m->lag_loss_s) + m->loss_s;

		state = *from;
		state.free_s = end_s + m->overhead_s;
		state.at_s[d.l] = fmax(end_s + m->lag_back_s,
				     from->at_s[d.l] + m->loss_s + m->lag_round_s);
		reach_state(w, (struct done){ d.f, d.l + 1, d.b }, &state);
	}
	if (d.f < w->slots && sent < m->n) { /* the next task is a forward pass */
		state = *from;
		state.at_s[d.f] = from->free_s + m->forward_s;
		state.free_s = state.at_s[d.f] + m->overhead_s;
		reach_state(w, (struct done){ d.f + 1, d.l, d.b }, &state);
	}
}

/* Adds one task to every state in which `tasks` tasks are done. The index of a list of
 * states (cell) encodes the done tasks of microbatches under way (struct done). All other done
 * tasks belong to finished microbatches, each of which has done its three tasks. */
static void take_layer(struct walk *w, int tasks)
{
	memset(w->n_next, 0, (size_t)w->n_cells * sizeof(*w->n_next));
	for (int cell = 0; cell < w->n_cells; cell++) {
		struct done d = { cell / w->width / w->width, cell / w->width % w->width,
				  cell % w->width };
		int through = (tasks - d.f - d.l - d.b) / 3;

		for (int i = 0; i < w->n_now[cell]; i++)
			extend_state(w, d, &w->now[(size_t)cell * (size_t)w->most + (size_t)i],
			      through + d.f);
	}
}

static double walk_all(struct walk *w)
{
	size_t states = (size_t)w->n_cells * (size_t)w->most;
	int last = 3 * w->m->n;
	double best = INFINITY;

	w->now = alloc_array(states, sizeof(*w->now));
	w->next = alloc_array(states, sizeof(*w->next));
	w->n_now = alloc_array((size_t)w->n_cells, sizeof(*w->n_now));
	w->n_next = alloc_array((size_t)w->n_cells, sizeof(*w->n_next));
	w->n_now[0] = 1; /* the first state: time 0, nothing done */
	for (int tasks = 0; tasks < last; tasks++) {
		struct state *states_were = w->now;
		int *n_were = w->n_now;

		take_layer(w, tasks);
		w->now = w->next;
		w->n_now = w->n_next;
		w->next = states_were;
		w->n_next = n_were;
	}
	for (int i = 0; i < w->n_now[0]; i++)
		best = fmin(best, w->now[i].free_s - w->m->overhead_s);
	free(w->now);
	free(w->next);
	free(w->n_now);
	free(w->n_next);
	return best;
}

static double formula_s(const struct single_machine *m, int slots)
{
	double own_s = m->forward_s + m->loss_s + m->backward_s;
	double trip_s = own_s + fmax(m->lag_loss_s + m->lag_back_s, m->lag_round_s);
	double work_s = m->n * own_s + (3 * m->n - 1) * m->overhead_s;
	double edges_s =
		slots * (slots - 1) / 2.0 * (m->forward_s + m->backward_s + 2 * m->overhead_s);
	double slots_s = (m->n * trip_s + (m->n - slots) * m->overhead_s + edges_s) / slots;

	return fmax(work_s, fmax(slots_s, trip_s));
}

double single_machine_least_s(const struct single_machine *m, int most_states, bool *exact)
{
	int slots = m->slots < m->n ? m->slots : m->n;
	struct walk w = {
		.m = m, .slots = slots, .width = slots + 1, .most = most_states, .exact = true
	};
	double least_s;

	*exact = true;
	if (slots < 1)
		return 0;
	least_s = formula_s(m, slots);
	*exact = false;
	if (slots > SINGLE_MACHINE_MOST_SLOTS || m->n > SINGLE_MACHINE_MOST_MB || most_states < 1)
		return least_s;
	w.n_cells = w.width * w.width * w.width;
	least_s = fmax(least_s, walk_all(&w));
	*exact = w.exact && isfinite(least_s);
	return isfinite(least_s) ? least_s : formula_s(m, slots);
}
