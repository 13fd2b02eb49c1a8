/* The steps of a choice.
 *
 * First, list_settings lists the settings: numbers of stages, sizes of microbatches and numbers of
 * slots. For each setting, a rough estimate finds a good division of the fleet (division.h). The
 * best divisions form a pool of candidates. Successive halving plans the pool, local search
 * (refine.h) improves the best candidates, and the answer chooses formats and plans the best
 * candidates once more. */
#include "schedule/fleet/choose.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "schedule/fleet/baselines.h"
#include "schedule/fleet/evaluate.h"
#include "schedule/fleet/holds.h"
#include "schedule/fleet/refine.h"
#include "schedule/format/request.h"

enum {
	/* Limit of stages, unless the request gives a number or the model needs more */
	MOST_STAGES = 16,
	MOST_SETTINGS = 512,
	STEPS = 2000, /* number of proposals in a search for a division among few groups */
	FEW_GROUPS = 5,
	POOL = 48,       /* number of candidates that are planned at first */
	/* largest number of settings in the pool, for each number of stages */
	OF_ONE_SIZE = 6,
	/* Number of candidates that are left after the halving, to be refined by single changes. */
	REFINED = 4,
	QUICK = 100,   /* evaluations for planning a candidate after a change */
	GOOD = 1000,   /* evaluations for each candidate in the last round of the halving */
	PROMISING = 8, /* number of promising candidates that are planned again after refinement */
	AGAIN = 4000,  /* most evaluations for planning a promising candidate again */
	FINAL = 20000  /* evaluations for each candidate in the answer */
};
/* Default limit of the work of a choice: for 20 nodes or fewer, and for each further node. The unit
 * is a simulated task (evaluate.h). */
#define WORK 80000000
#define WORK_OF_NODE 680000
/* Shares of the whole work at which three parts of a choice end: the halving, the refinement of
 * the pool's candidates, and the further refinement of the best candidate. */
#define HALVED 0.2
#define FIRST_REFINED 0.5
#define ALL_REFINED 0.7
#define PLANNED_AGAIN 0.15 /* share of the work for the promising candidates */
/* A more exact format is used if it makes the iteration at most this many times as long. */
#define WITHIN 1.01

double choose_cost(const struct candidate *c, const struct aim *aim)
{
	if (isinf(c->seconds) || c->price_per_hour > aim->most_per_hour)
		return INFINITY;
	return aim->by_price ? c->seconds * c->price_per_hour : c->seconds;
}

/* A candidate whose plan may become better with more evaluations */
struct promise {
	struct candidate c;
	/* Cost, if the iteration takes the geometric mean of its planned time and its lower
	 * bound */
	double cost;
};

/* The state of a choice. It keeps the best candidate with each number of stages, the fastest
 * candidate, the cheapest, and the promising ones in ascending order of cost. */
struct course {
	struct effort effort;
	struct groups groups;
	struct division_setting settings[MOST_SETTINGS];
	struct division *divisions; /* array of n_settings */
	int n_settings, steps;
	struct candidate of_size[CLUSTER_MOST_STAGES + 1], fastest, cheapest;
	struct promise promising[PROMISING];
	int n_promising;
};

static const struct candidate_frame *frame_of(const struct course *c)
{
	return &c->effort.q->frame;
}

/* ---- settings ---- */

/* Returns the number of sequences of the smallest microbatch that is tried. */
static int smallest_microbatch(const struct candidate_frame *f)
{
	int least = f->least_sequences ? f->least_sequences : f->shape->batch;

	while (!f->least_sequences && least % 2 == 0 && least > f->shape->batch / 4)
		least /= 2;
	return least;
}

static void add_settings(struct course *c, int n_stages)
{
	const struct candidate_frame *f = frame_of(c);
	int least = smallest_microbatch(f);
	int most = f->most_sequences ? f->most_sequences : 8 * f->shape->batch;

	for (int b = least; b <= most && b <= f->batch; b *= 2) {
		for (int wanted = 1; wanted <= 3 && f->batch % b == 0; wanted += 2)
			if (c->n_settings < MOST_SETTINGS &&
			    candidate_visits_all(f, n_stages, f->batch / b))
				c->settings[c->n_settings++] =
					(struct division_setting){ n_stages, b, wanted };
	}
}

/* Lists the settings. Lists only numbers of stages for which the number of skipped stages is
 * whole, so that all candidates do the same work. */
static void list_settings(struct course *c, int most)
{
	const struct candidate_frame *f = frame_of(c);

	for (int n = 1; n <= most; n++) {
		bool fits = n <= f->fleet->n_nodes && n <= f->shape->n_layers + 1 &&
			    n * f->skip % f->of_stages == 0 && candidate_skip(f, n) < n;

		if (fits && (c->effort.q->n_stages == 0 || c->effort.q->n_stages == n))
			add_settings(c, n);
	}
}

static void search_one(void *arg, int i)
{
	struct course *c = arg;
	const struct choose_request *q = c->effort.q;

	if (!division_search(&q->frame, &c->groups, &q->aim, &c->settings[i], c->steps, (uint64_t)i,
			     &c->divisions[i]))
		c->divisions[i].cost = INFINITY;
}

/* ---- the pool ---- */

static void keep(struct candidate *to, const struct candidate *c, double cost, double best,
		 const struct candidate_frame *f)
{
	if (!(cost < best))
		return;
	candidate_copy_choice(to, c, f);
	to->seconds = c->seconds;
	to->price_per_hour = c->price_per_hour;
}

/* Returns true if both candidates have the same setting and layers, and if each stage has as many
 * nodes of each group of similar nodes in the one candidate as in the other. */
static bool are_alike(const struct course *c, const struct candidate *a, const struct candidate *b)
{
	int more[GROUPS_MOST][CLUSTER_MOST_STAGES + 1] = { 0 };

	if (a->n_stages != b->n_stages || a->sequences != b->sequences ||
	    a->wanted_slots != b->wanted_slots ||
	    memcmp(a->layers, b->layers, (size_t)a->n_stages * sizeof(int)) != 0)
		return false;
	for (int i = 0; i < frame_of(c)->fleet->n_nodes; i++) {
		more[c->groups.of_node[i]][a->stage_of[i] + 1]++;
		more[c->groups.of_node[i]][b->stage_of[i] + 1]--;
	}
	for (int g = 0; g < c->groups.n; g++)
		for (int s = 0; s <= a->n_stages; s++)
			if (more[g][s] != 0)
				return false;
	return true;
}

static bool is_promising_already(const struct course *c, const struct candidate *x)
{
	for (int i = 0; i < c->n_promising; i++)
		if (are_alike(c, &c->promising[i].c, x))
			return true;
	return false;
}

/* Keeps the candidate if it is among the most promising ones. A plan from few evaluations can be
 * 10% slower than the candidate's best plan. The iteration of such a plan is far longer than the
 * candidate's lower bound. */
static void note_promise(struct course *c, const struct candidate *x)
{
	const struct plan_predicted *p = &x->plan->predicted;
	double cost = choose_cost(x, &c->effort.q->aim) * sqrt(p->lower_bound_s / p->iteration_s);
	int k = c->n_promising;

	if (k == PROMISING && cost >= c->promising[k - 1].cost)
		return;
	if (is_promising_already(c, x))
		return;
	if (k < PROMISING)
		c->n_promising++;
	else
		k--;
	candidate_copy_choice(&c->promising[k].c, x, frame_of(c));
	c->promising[k].cost = cost;
	for (; k > 0 && c->promising[k].cost < c->promising[k - 1].cost; k--) {
		struct promise better = c->promising[k];

		c->promising[k] = c->promising[k - 1];
		c->promising[k - 1] = better;
	}
}

/* Keeps a copy of the candidate if it is promising, the fastest so far, the cheapest so far, or
 * the best so far with its number of stages. */
static void note(void *arg, struct candidate *x)
{
	struct course *c = arg;
	const struct aim *aim = &c->effort.q->aim;
	double price = x->seconds * x->price_per_hour;
	struct candidate *alike = &c->of_size[x->n_stages];

	if (isinf(choose_cost(x, aim)))
		return;
	keep(alike, x, choose_cost(x, aim), choose_cost(alike, aim), frame_of(c));
	keep(&c->fastest, x, x->seconds, c->fastest.seconds, frame_of(c));
	keep(&c->cheapest, x, price,
	     isinf(c->cheapest.seconds) ? INFINITY
					: c->cheapest.seconds * c->cheapest.price_per_hour,
	     frame_of(c));
	note_promise(c, x);
}

/* Returns the setting with the least estimated cost among those not taken yet. -1: none is
 * left. */
static int next_setting(const struct course *c, const bool *taken, const int *of_size)
{
	int best = -1;

	for (int i = 0; i < c->n_settings; i++)
		if (!taken[i] && of_size[c->settings[i].n_stages] < OF_ONE_SIZE &&
		    c->divisions[i].cost < (best < 0 ? INFINITY : c->divisions[best].cost))
			best = i;
	return best;
}

static int fill_pool(struct course *c, struct candidate **pool)
{
	bool taken[MOST_SETTINGS] = { false };
	int of_size[CLUSTER_MOST_STAGES + 1] = { 0 }, n = 0, i;

	while (n + 2 <= POOL && (i = next_setting(c, taken, of_size)) >= 0) {
		taken[i] = true;
		of_size[c->settings[i].n_stages]++;
		for (int spread = 0; spread < 2; spread++) {
			division_realise(&c->divisions[i], &c->settings[i], frame_of(c), &c->groups,
					 spread, pool[n]);
			if (candidate_is_possible(pool[n], frame_of(c)) &&
			    (spread == 0 || n == 0 ||
			     !candidate_same_choice(pool[n], pool[n - 1], frame_of(c))))
				n++;
		}
	}
	return n;
}

/* Moves the best candidates to the front. */
static void sort_pool(struct candidate **pool, int n, const struct aim *aim)
{
	for (int i = 1; i < n; i++) {
		struct candidate *x = pool[i];
		int k = i;

		for (; k > 0 && choose_cost(x, aim) < choose_cost(pool[k - 1], aim); k--)
			pool[k] = pool[k - 1];
		pool[k] = x;
	}
}

/* Plans the pool's candidates with more and more evaluations, and drops half of them each time. */
static void halve(struct course *c, struct candidate **pool, int *n)
{
	const struct aim *aim = &c->effort.q->aim;

	for (int64_t evaluations = 10; *n > 0; evaluations *= 4) {
		effort_evaluate(&c->effort, pool, *n, evaluations);
		for (int i = 0; i < *n; i++)
			note(c, pool[i]);
		sort_pool(pool, *n, aim);
		c->effort.best = pool[0];
		if (*n <= REFINED || evaluations >= GOOD || effort_is_over(&c->effort, HALVED))
			break;
		*n = *n / 2 > REFINED ? *n / 2 : REFINED;
	}
	*n = *n < REFINED ? *n : REFINED;
	while (*n > 0 && isinf(choose_cost(pool[*n - 1], aim)))
		--*n;
}

/* Brings more numbers of stages into the pool, so that each number may be refined. If two
 * candidates of the pool have equally many stages, the later one is replaced by the best candidate
 * with a number of stages that is new to the pool. */
static void diversify(struct course *c, struct candidate **pool, int n)
{
	const struct aim *aim = &c->effort.q->aim;
	bool had[CLUSTER_MOST_STAGES + 1] = { false };

	for (int i = 0; i < n; i++) {
		int best = 0;

		if (!had[pool[i]->n_stages]) {
			had[pool[i]->n_stages] = true;
			continue;
		}
		for (int s = 1; s <= CLUSTER_MOST_STAGES; s++)
			if (!had[s] && !isinf(choose_cost(&c->of_size[s], aim)) &&
			    (best == 0 || choose_cost(&c->of_size[s], aim) <
						  choose_cost(&c->of_size[best], aim)))
				best = s;
		if (best == 0)
			continue;
		had[best] = true;
		candidate_copy_choice(pool[i], &c->of_size[best], frame_of(c));
		pool[i]->seconds = c->of_size[best].seconds;
		pool[i]->price_per_hour = c->of_size[best].price_per_hour;
	}
}

static void refine_pool(struct course *c, struct candidate **pool, int n)
{
	const struct refine_notes notes = { note, c };
	int64_t evaluations = QUICK;
	struct rng rng;

	rng_init_stream(&rng, frame_of(c)->seed, MOST_SETTINGS);
	while (evaluations > 10 &&
	       effort_of(pool[0], evaluations, frame_of(c)) * 400 > c->effort.work)
		evaluations /= 2;
	for (int i = 0; i < n; i++)
		refine(&c->effort, pool[i], evaluations,
		       HALVED + (FIRST_REFINED - HALVED) * (i + 1) / n, &rng, &notes);
	sort_pool(pool, n, &c->effort.q->aim);
	c->effort.best = pool[0];
	refine(&c->effort, pool[0], evaluations, ALL_REFINED, &rng, &notes);
}

/* Plans the promising candidates with more evaluations. If one of them is then better than *best,
 * copies the best of them to *best. */
static void plan_again(struct course *c, struct candidate *best)
{
	const struct aim *aim = &c->effort.q->aim;
	struct candidate *list[PROMISING];
	int64_t evaluations = AGAIN;
	int n = c->n_promising;

	while (evaluations > QUICK && (double)(effort_of(best, evaluations, frame_of(c)) * n) >
					      PLANNED_AGAIN * (double)c->effort.work)
		evaluations /= 2;
	for (int i = 0; i < n; i++)
		list[i] = &c->promising[i].c;
	effort_evaluate(&c->effort, list, n, evaluations);
	for (int i = 0; i < n; i++) {
		keep(best, list[i], choose_cost(list[i], aim), choose_cost(best, aim), frame_of(c));
		note(c, list[i]);
	}
}

/* ---- formats ---- */

/* Tries more exact formats, the most exact first, for activations and then for sums of gradients.
 * Takes the first format that makes the iteration at most WITHIN times as long. */
static void choose_formats(struct course *c, struct candidate *best, int64_t evaluations)
{
	struct tensor_formats coarsest = best->formats;
	struct candidate x, *list[1] = { &x };
	double cost = choose_cost(best, &c->effort.q->aim);

	candidate_init(&x, frame_of(c));
	for (int part = 0; part < 2; part++) {
		int most = (int)(part ? coarsest.sum_wire : coarsest.wire);

		for (int t = FORMAT_FP32; t < most; t++) {
			candidate_copy_choice(&x, best, frame_of(c));
			if (part ? !tensor_format_suits_sums((enum tensor_format)t)
				 : !tensor_format_suits_activations((enum tensor_format)t))
				continue;
			*(part ? &x.formats.sum_wire : &x.formats.wire) = (enum tensor_format)t;
			effort_evaluate(&c->effort, list, 1, evaluations);
			if (choose_cost(&x, &c->effort.q->aim) > WITHIN * cost)
				continue;
			candidate_move(best, &x, frame_of(c));
			break;
		}
	}
	candidate_fini(&x);
}

/* ---- the answer ---- */

static void add_answer(struct choice *out, const struct candidate *x, const struct course *c)
{
	if (isinf(choose_cost(x, &c->effort.q->aim)) || out->n == CHOICE_MOST)
		return;
	for (int i = 0; i < out->n; i++)
		if (candidate_same_choice(&out->list[i], x, frame_of(c)))
			return;
	candidate_init(&out->list[out->n], frame_of(c));
	candidate_copy_choice(&out->list[out->n++], x, frame_of(c));
}

static int64_t final_evaluations(const struct course *c, const struct candidate *best, int n)
{
	int64_t left = c->effort.work - c->effort.done, evaluations = FINAL;

	while (evaluations > QUICK && effort_of(best, evaluations, frame_of(c)) * n > left)
		evaluations /= 2;
	return evaluations;
}

/* Plans the best candidates again with the rest of the work: the best candidate, the fastest, the
 * cheapest, and the best with each number of stages. */
static void answer(struct course *c, struct candidate *best, struct choice *out)
{
	struct candidate *list[CHOICE_MOST], sorted[CHOICE_MOST];
	int64_t evaluations;

	add_answer(out, best, c);
	add_answer(out, &c->fastest, c);
	if (!isnan(c->cheapest.price_per_hour))
		add_answer(out, &c->cheapest, c);
	for (int s = 1; s <= CLUSTER_MOST_STAGES; s++)
		add_answer(out, &c->of_size[s], c);
	for (int i = 0; i < out->n; i++)
		list[i] = &out->list[i];
	evaluations = final_evaluations(c, best, out->n);
	effort_evaluate(&c->effort, list, out->n, evaluations);
	sort_pool(list, out->n, &c->effort.q->aim);
	for (int i = 0; i < out->n; i++)
		sorted[i] = *list[i];
	memcpy(out->list, sorted, sizeof(sorted[0]) * (size_t)out->n);
	if (!frame_of(c)->keeps_formats)
		choose_formats(c, &out->list[0], evaluations);
}

/* Adds the left-out node to each stage of the candidate in turn, plans the result, and keeps the
 * lowest cost. */
static void try_node(struct course *c, const struct candidate *best, struct choice_left_out *left)
{
	struct candidate x, *list[1] = { &x };

	candidate_init(&x, frame_of(c));
	for (int s = 0; s < best->n_stages; s++) {
		double with;

		candidate_copy_choice(&x, best, frame_of(c));
		x.stage_of[left->node] = s;
		if (!candidate_is_possible(&x, frame_of(c)))
			continue;
		effort_evaluate(&c->effort, list, 1, QUICK);
		with = choose_cost(&x, &c->effort.q->aim) / choose_cost(best, &c->effort.q->aim);
		if (with < left->cost_with) {
			left->cost_with = with;
			left->stage = s;
		}
	}
	candidate_fini(&x);
}

static void explain_left_out(struct course *c, const struct candidate *best, struct choice *out)
{
	const struct candidate_frame *f = frame_of(c);
	bool explained[GROUPS_MOST] = { false };

	out->left_out = alloc_array(GROUPS_MOST, sizeof(*out->left_out));
	for (int i = 0; i < f->fleet->n_nodes; i++) {
		struct choice_left_out *l = &out->left_out[out->n_left_out];

		if (best->stage_of[i] >= 0 || explained[c->groups.of_node[i]])
			continue;
		explained[c->groups.of_node[i]] = true;
		out->n_left_out++;
		*l = (struct choice_left_out){ .node = i, .cost_with = INFINITY };
		l->missing_bytes = stage_cost_fit(f->shape, fleet_machines_of(f->fleet, i), 1,
						  false, best->sequences, 1)
					   .missing_bytes;
		if (l->missing_bytes == 0)
			try_node(c, best, l);
	}
}

static int check_request(const struct choose_request *q, struct error *err)
{
	const struct candidate_frame *f = &q->frame;
	int least = smallest_microbatch(f), most = q->n_stages ? q->n_stages : CLUSTER_MOST_STAGES;

	if (q->aim.by_price || !isinf(q->aim.most_per_hour)) {
		int rc = fleet_check_prices(f->fleet, err);

		if (rc != 0)
			return rc;
	}
	if (f->batch % least != 0)
		return error_set(err, -EINVAL,
				 "the batch is %d sequences, expected a multiple of %d, the "
				 "smallest microbatch",
				 f->batch, least);
	return holds_model(f, least, most, err);
}

static void course_init(struct course *c, const struct choose_request *q)
{
	int extra = q->frame.fleet->n_nodes > 20 ? q->frame.fleet->n_nodes - 20 : 0;

	memset(c, 0, sizeof(*c));
	c->effort = (struct effort){ .q = q, .work = q->work };
	if (q->work <= 0)
		c->effort.work = WORK + WORK_OF_NODE * (int64_t)extra;
	c->effort.start_us = q->clock_us ? q->clock_us(q->clock_arg) : 0;
	groups_init(&c->groups, q->frame.fleet);
	for (int s = 0; s <= CLUSTER_MOST_STAGES; s++)
		candidate_init(&c->of_size[s], &q->frame);
	candidate_init(&c->fastest, &q->frame);
	candidate_init(&c->cheapest, &q->frame);
	for (int i = 0; i < PROMISING; i++)
		candidate_init(&c->promising[i].c, &q->frame);
	c->steps = STEPS;
	if (fleet_is_large(q->frame.fleet) && c->groups.n > FEW_GROUPS)
		c->steps = STEPS * c->groups.n / FEW_GROUPS;
	list_settings(c, q->n_stages ? q->n_stages : MOST_STAGES);
	c->divisions = alloc_array((size_t)c->n_settings, sizeof(*c->divisions));
}

static void course_fini(struct course *c)
{
	for (int s = 0; s <= CLUSTER_MOST_STAGES; s++)
		candidate_fini(&c->of_size[s]);
	candidate_fini(&c->fastest);
	candidate_fini(&c->cheapest);
	for (int i = 0; i < PROMISING; i++)
		candidate_fini(&c->promising[i].c);
	groups_fini(&c->groups);
	free(c->divisions);
}

static int run_course(struct course *c, struct choice *out, struct error *err)
{
	struct candidate room[POOL], *pool[POOL];
	int n, rc = 0;

	for (int i = 0; i < POOL; i++) {
		candidate_init(&room[i], frame_of(c));
		pool[i] = &room[i];
	}
	effort_run(&c->effort, c->n_settings, search_one, c);
	n = fill_pool(c, pool);
	halve(c, pool, &n);
	if (n > 0) {
		diversify(c, pool, n);
		refine_pool(c, pool, n);
		plan_again(c, pool[0]);
		answer(c, pool[0], out);
		explain_left_out(c, &out->list[0], out);
		if (c->effort.q->has_baselines)
			baselines_plan(&c->effort, out);
	} else {
		rc = error_set(err, PLAN_NOT_FOUND,
			       "no division of the fleet was found that has a plan%s",
			       isinf(c->effort.q->aim.most_per_hour)
				       ? ""
				       : " within the limit of the price an hour");
	}
	c->effort.best = NULL;
	for (int i = 0; i < POOL; i++)
		candidate_fini(&room[i]);
	return rc;
}

int choose(const struct choose_request *q, struct choice *out, struct error *err)
{
	struct course *c;
	int rc = check_request(q, err);

	if (rc != 0)
		return rc;
	memset(out, 0, sizeof(*out));
	c = alloc_new(sizeof(*c));
	course_init(c, q);
	rc = run_course(c, out, err);
	out->evaluated = c->effort.evaluated;
	course_fini(c);
	free(c);
	if (rc != 0)
		choice_fini(out);
	return rc;
}

void choose_explain(const struct choose_request *q, struct choice *out, int rank)
{
	struct course *c = alloc_new(sizeof(*c));

	course_init(c, q);
	free(out->left_out);
	out->n_left_out = 0;
	explain_left_out(c, &out->list[rank], out);
	course_fini(c);
	free(c);
}

void choice_fini(struct choice *c)
{
	for (int i = 0; i < c->n; i++)
		candidate_fini(&c->list[i]);
	candidate_fini(&c->equal);
	candidate_fini(&c->dtfm);
	free(c->left_out);
}
