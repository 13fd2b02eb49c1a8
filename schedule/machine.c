#include "schedule/machine.h"

#include <math.h>

/* Microbatches of one kind of lag: how many are through with F, L and B. */
struct turn {
	int f, l, b;
	double sent_s[MACHINE_MOST_MB], lost_s[MACHINE_MOST_MB]; /* ends of their F, L */
};

struct sequence {
	const struct machine *m;
	struct turn turns[MACHINE_MOST_LAGS];
	int f, b, w, n; /* over all kinds; without a split w is b */
	double tail_s;  /* after the last B of a microbatch */
	double best_s;
	long steps_left;
};

static double round_s(const struct machine *m, const struct machine_lag *lag)
{
	return fmax(lag->loss_s + m->loss_s + lag->back_s, lag->round_s + m->loss_s);
}

/* The chains under way and to come end after this, at the least. */
static double least_chain(const struct sequence *q, double free_s)
{
	const struct machine *m = q->m;
	double least = 0, rest_s = m->backward_s + q->tail_s;
	int unsent = q->n - q->f;

	for (int k = 0; k < m->n_lags; k++) {
		const struct machine_lag *lag = &m->lags[k];
		const struct turn *t = &q->turns[k];
		int left = lag->n - t->f;
		double sent =
			left > 0     ? free_s + left * m->forward_s + (left - 1) * m->overhead_s
			: lag->n > 0 ? t->sent_s[lag->n - 1]
				     : 0;

		if (t->b == lag->n)
			continue;
		least = fmax(least, sent + round_s(m, lag) + rest_s);
		if (t->l == lag->n)
			least = fmax(least, t->lost_s[lag->n - 1] + lag->back_s + rest_s);
	}
	if (unsent > 0) { /* of all, some kind is sent last */
		double shortest = INFINITY;

		for (int k = 0; k < m->n_lags; k++) {
			if (q->turns[k].f < m->lags[k].n)
				shortest = fmin(shortest, round_s(m, &m->lags[k]));
		}
		least = fmax(least, free_s + unsent * m->forward_s +
					    (unsent - 1) * m->overhead_s + shortest + rest_s);
	}
	return least;
}

static double least_end(const struct sequence *q, double free_s)
{
	const struct machine *m = q->m;
	int lost = 0, weights = m->split ? q->n - q->w : 0, tasks;
	double work_s;

	for (int k = 0; k < m->n_lags; k++)
		lost += q->turns[k].l;
	tasks = (q->n - q->f) + (q->n - lost) + (q->n - q->b) + weights;
	work_s = free_s + (q->n - q->f) * m->forward_s + (q->n - lost) * m->loss_s +
		 (q->n - q->b) * m->backward_s + weights * m->weights_s +
		 (tasks - 1) * m->overhead_s;
	return fmax(work_s, least_chain(q, free_s));
}

static void sequence(struct sequence *q, double free_s, double end_s);

/* The next task with the lags of kind k: B, then L, then F. */
static void next_of_kind(struct sequence *q, int k, double free_s)
{
	const struct machine *m = q->m;
	const struct machine_lag *lag = &m->lags[k];
	struct turn *t = &q->turns[k];
	double start_s, end_s;

	if (t->b < t->l) {
		start_s = fmax(t->lost_s[t->b] + lag->back_s,
			       t->sent_s[t->b] + lag->round_s + m->loss_s);
		end_s = fmax(free_s, start_s) + m->backward_s;
		t->b++;
		q->b++;
		q->w += !m->split;
		sequence(q, end_s + m->overhead_s, end_s);
		t->b--;
		q->b--;
		q->w -= !m->split;
	}
	if (t->l < t->f) {
		end_s = fmax(free_s, t->sent_s[t->l] + lag->loss_s) + m->loss_s;
		t->lost_s[t->l++] = end_s;
		sequence(q, end_s + m->overhead_s, end_s);
		t->l--;
	}
	if (t->f < lag->n && q->f - q->w < m->slots) {
		end_s = free_s + m->forward_s;
		t->sent_s[t->f++] = end_s;
		q->f++;
		sequence(q, end_s + m->overhead_s, end_s);
		t->f--;
		q->f--;
	}
}

static void sequence(struct sequence *q, double free_s, double end_s)
{
	if (q->w == q->n) {
		q->best_s = fmin(q->best_s, end_s);
		return;
	}
	if (q->steps_left-- <= 0 || least_end(q, free_s) >= q->best_s)
		return;
	for (int k = 0; k < q->m->n_lags; k++)
		next_of_kind(q, k, free_s);
	if (q->w < q->b) { /* only with a split */
		end_s = free_s + q->m->weights_s;
		q->w++;
		sequence(q, end_s + q->m->overhead_s, end_s);
		q->w--;
	}
}

static double formula(const struct machine *m, int n, int slots)
{
	double tail_s = m->split ? m->overhead_s + m->weights_s : 0;
	double own_s = m->forward_s + m->backward_s + tail_s, trips_s = 0, longest_s = 0;
	double work_s = n * (own_s + m->loss_s) + (3 * n - 1) * m->overhead_s;
	double last_s = m->split ? m->weights_s : m->backward_s;
	double edges_s =
		slots * (slots - 1) / 2.0 * (m->forward_s + last_s + 2 * m->overhead_s);

	for (int k = 0; k < m->n_lags; k++) {
		double trip_s = own_s + round_s(m, &m->lags[k]);

		trips_s += m->lags[k].n * trip_s;
		if (m->lags[k].n > 0)
			longest_s = fmax(longest_s, trip_s);
	}
	return fmax(fmax(work_s, longest_s),
		    (trips_s + (n - slots) * m->overhead_s + edges_s) / slots);
}

double machine_least_s(const struct machine *m, double below_s, long most_steps, bool *exact)
{
	struct sequence q = { .m = m,
			      .best_s = below_s,
			      .steps_left = most_steps,
			      .tail_s = m->split ? m->overhead_s + m->weights_s : 0 };
	int slots = m->slots;

	for (int k = 0; k < m->n_lags; k++)
		q.n += m->lags[k].n;
	slots = slots < q.n ? slots : q.n;
	*exact = true;
	if (slots < 1)
		return 0;
	if (q.n <= MACHINE_MOST_MB)
		sequence(&q, 0, 0);
	*exact = q.n <= MACHINE_MOST_MB && q.steps_left > 0;
	return *exact ? q.best_s : fmin(formula(m, q.n, slots), below_s);
}
