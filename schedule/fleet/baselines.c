/* Plans equal cuts, for comparison with the chosen candidate.
 *
 * The search places the nodes freely. Therefore it gets one task time for each node, which holds in
 * all stages, although the stages of a cut may differ by one layer. The assignment that the search
 * finds becomes a candidate, which is evaluated like all others. */
#include "schedule/fleet/baselines.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "schedule/search/search.h"

enum { EVALUATIONS = 20000, MOST_STAGES = 16 };

/* Cuts the layers equally, and gives the nodes to the stages in turn. Leaves out each node that
 * cannot hold every stage of this cut. Returns false if fewer nodes than stages remain. */
static bool cut_equally(struct candidate *c, int n_stages, const struct candidate_frame *f)
{
	int n = 0, first = 0, microbatches = f->batch / c->sequences;

	c->n_stages = n_stages;
	for (int s = 0; s < n_stages; s++)
		c->layers[s] =
			f->shape->n_layers * (s + 1) / n_stages - f->shape->n_layers * s / n_stages;
	for (int i = 0; i < f->fleet->n_nodes; i++) {
		c->stage_of[i] = 0;
		if (candidate_fit(c, i, f).slots < 1)
			c->stage_of[i] = -1;
		n += c->stage_of[i] == 0;
	}
	if (n < n_stages)
		return false;
	first = n / n_stages;
	while (first > 1 && microbatches % first != 0)
		first--;
	for (int i = 0, k = 0; i < f->fleet->n_nodes; i++) {
		if (c->stage_of[i] < 0)
			continue;
		if (n_stages > 1 && k >= first)
			c->stage_of[i] = 1 + (k - first) % (n_stages - 1);
		k++;
		if (n_stages == 1 && k > first)
			c->stage_of[i] = -1;
	}
	return true;
}

/* Lets the search choose the stage of each node. */
static bool place_freely(struct candidate *c, enum plan_algorithm algorithm,
			 const struct candidate_frame *f)
{
	struct cluster *cluster = candidate_cluster(c, f);
	struct plan_request q;
	struct plan *plan = NULL;
	int *stage_of, rc, k = 0;

	if (!cluster)
		return false;
	cluster_reformat(cluster, &c->formats);
	plan_request_init(&q);
	q.algorithm = algorithm;
	q.path_length = c->n_stages - candidate_skip(f, c->n_stages);
	q.free_assignment = true;
	q.overlap_sync = true;
	q.evaluations = EVALUATIONS;
	q.seed = f->seed;
	rc = plan_search(cluster, &q, &plan, NULL);
	if (rc == 0) {
		stage_of = alloc_array((size_t)cluster->n_nodes, sizeof(int));
		plan_stages(plan, cluster->n_nodes, stage_of);
		for (int i = 0; i < f->fleet->n_nodes; i++)
			if (c->stage_of[i] >= 0)
				c->stage_of[i] = stage_of[k++];
		free(stage_of);
	}
	plan_free(plan);
	cluster_free(cluster);
	return rc == 0;
}

/* Plans the candidate with the algorithm that chose its assignment. */
static void evaluate_as(struct candidate *c, enum plan_algorithm algorithm,
			const struct candidate_frame *f)
{
	struct cluster *cluster = candidate_cluster(c, f);
	struct plan_request q;

	if (algorithm == PLAN_BEST) {
		candidate_evaluate(c, EVALUATIONS, f);
	} else if (cluster) {
		cluster_reformat(cluster, &c->formats);
		plan_request_init(&q);
		q.algorithm = algorithm;
		q.overlap_sync = true;
		q.evaluations = EVALUATIONS;
		q.seed = f->seed;
		c->price_per_hour = candidate_price(c, f);
		if (plan_search(cluster, &q, &c->plan, NULL) == 0)
			c->seconds = c->plan->predicted.iteration_s + plan_visible_sync_s(c->plan);
	}
	cluster_free(cluster);
}

struct trial {
	struct candidate c;
	enum plan_algorithm algorithm;
	const struct candidate_frame *f;
};

static void run_trial(void *arg, int i)
{
	struct trial *t = (struct trial *)arg + i;

	if (place_freely(&t->c, t->algorithm, t->f) && candidate_is_possible(&t->c, t->f))
		evaluate_as(&t->c, t->algorithm, t->f);
}

static void plan_each(struct effort *e, enum plan_algorithm algorithm, struct candidate *best)
{
	const struct candidate_frame *f = &e->q->frame;
	struct trial trials[MOST_STAGES];
	int n = 0;

	for (int s = 1; s <= MOST_STAGES && s <= f->shape->n_layers; s++) {
		struct trial *t = &trials[n];

		if (s * f->skip % f->of_stages != 0 || candidate_skip(f, s) >= s)
			continue;
		*t = (struct trial){ .algorithm = algorithm, .f = f };
		candidate_init(&t->c, f);
		t->c.sequences = f->shape->batch;
		t->c.wanted_slots = 3;
		if (f->batch % t->c.sequences == 0 && cut_equally(&t->c, s, f) &&
		    candidate_is_possible(&t->c, f))
			n++;
		else
			candidate_fini(&t->c);
	}
	effort_run(e, n, run_trial, trials);
	for (int i = 0; i < n; i++) {
		if (choose_cost(&trials[i].c, &e->q->aim) < choose_cost(best, &e->q->aim))
			candidate_move(best, &trials[i].c, f);
		candidate_fini(&trials[i].c);
	}
}

void baselines_plan(struct effort *e, struct choice *out)
{
	candidate_init(&out->equal, &e->q->frame);
	candidate_init(&out->dtfm, &e->q->frame);
	plan_each(e, PLAN_BEST, &out->equal);
	plan_each(e, PLAN_DTFM, &out->dtfm);
}
