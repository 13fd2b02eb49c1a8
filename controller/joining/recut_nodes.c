/* recut_nodes.c - assigns nodes to the stages of a new cut (recut_nodes.h).
 *
 * Links between nodes of adjacent stages were good enough for the former stages. Therefore the
 * nodes keep their order along the stages, and only the borders between stages move. */
#include "controller/joining/recut_nodes.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "controller/joining/recut_order.h"
#include "model/cut.h"
#include "wire/msg.h"

/* Work that is assumed for a stage without layers, because such a stage computes the loss. */
static const double least_work = 0.1;

static int count_here(const struct recut_nodes *x)
{
	int n = 0;

	for (uint32_t i = 0; i < x->n; i++)
		n += x->here[i];
	return n;
}

/* Returns the stage whose nodes have the most work each, among stage `from` and later stages. */
static int busiest(const struct model_config *model, const int *sizes, int from)
{
	int best = from;
	double most = -1;

	for (int s = from; s < (int)model->n_stages; s++) {
		double work = fmax(model_stage_work(model, (uint32_t)s), least_work) / sizes[s];

		if (work > most) {
			best = s;
			most = work;
		}
	}
	return best;
}

/* Sets the number of nodes of each stage according to the work of the stage. The nodes of stage 0
 * share the microbatches equally, so their number must divide the number of microbatches. */
static void size_by_work(const struct recut_nodes *x, int n_here, int *sizes)
{
	int n = (int)x->model->n_stages;

	for (int s = 0; s < n; s++)
		sizes[s] = 1;
	for (int left = n_here - n; left > 0; left--)
		sizes[busiest(x->model, sizes, 0)]++;
	while (n > 1 && x->n_microbatches % sizes[0] != 0) {
		sizes[0]--;
		sizes[busiest(x->model, sizes, 1)]++;
	}
}

/* Divides the connected nodes among the stages, at least one for each. If a stage has fewer nodes
 * than ordered, deal_away later adds absent nodes to it. */
static void size_as_ordered(const struct recut_order *o, int n_here, int *sizes)
{
	for (uint32_t s = 0; s < o->n_nodes; s++)
		sizes[s] = 1;
	for (int left = n_here - (int)o->n_nodes; left > 0; left--) {
		int most = 0;

		for (uint32_t s = 1; s < o->n_nodes; s++)
			if (o->nodes[s] - sizes[s] > o->nodes[most] - sizes[most])
				most = (int)s;
		sizes[most]++;
	}
}

static int check_order(const struct recut_nodes *x, const struct recut_order *o, int n_here,
		       struct error *err)
{
	uint32_t sum = 0;

	for (uint32_t s = 0; s < o->n_nodes; s++)
		sum += (uint32_t)o->nodes[s];
	if (o->n_nodes > 0 && o->n_nodes != x->model->n_stages)
		return error_set(err, -EINVAL, "--stages has %u stages, and --cut %u", o->n_nodes,
				 x->model->n_stages);
	if (o->n_nodes > 0 && sum != x->n)
		return error_set(err, -EINVAL, "--stages adds up to %u nodes, and the run has %u",
				 sum, x->n);
	if (n_here < (int)x->model->n_stages)
		return error_set(err, -EINVAL,
				 "%u stages need a node each, and %d nodes are here",
				 x->model->n_stages, n_here);
	if (o->n_nodes > 0 && x->n_microbatches % o->nodes[0] != 0)
		return error_set(err, -EINVAL,
				 "%d nodes in stage 0 cannot share the %d microbatches of an "
				 "iteration equally",
				 o->nodes[0], x->n_microbatches);
	if (x->model->n_stages == 1 && x->n_microbatches % (int)x->n != 0)
		return error_set(err, -EINVAL,
				 "one stage has all %u nodes, which cannot share the %d "
				 "microbatches of an iteration equally",
				 x->n, x->n_microbatches);
	return 0;
}

/* Assigns the connected nodes to the stages, in their order along the former stages. Nodes without
 * a former stage come last. */
static void deal_here(const struct recut_nodes *x, const int *sizes, int *stage_of)
{
	int stage = 0, used = 0;

	for (int before = 0; before <= MSG_STAGES; before++)
		for (uint32_t i = 0; i < x->n; i++) {
			if (!x->here[i] || (x->was[i] < 0 ? MSG_STAGES : x->was[i]) != before)
				continue;
			if (used == sizes[stage]) {
				stage++;
				used = 0;
			}
			stage_of[i] = stage;
			used++;
		}
}

/* Assigns the absent nodes to the stages that have fewer connected nodes than ordered. */
static void deal_away(const struct recut_nodes *x, const struct recut_order *o, int *sizes,
		      int *stage_of)
{
	int stage = 0;

	for (uint32_t i = 0; i < x->n; i++) {
		if (x->here[i])
			continue;
		while (sizes[stage] == o->nodes[stage])
			stage++;
		stage_of[i] = stage;
		sizes[stage]++;
	}
}

int recut_deal(const struct recut_nodes *x, const struct recut_order *o, int *stage_of,
	       struct error *err)
{
	int sizes[MSG_STAGES], n_here = count_here(x), rc = check_order(x, o, n_here, err);

	if (rc != 0)
		return rc;
	if (o->n_nodes > 0)
		size_as_ordered(o, n_here, sizes);
	else
		size_by_work(x, n_here, sizes);
	for (uint32_t i = 0; i < x->n; i++)
		stage_of[i] = x->model->n_stages == 1 ? 0 : RECUT_AWAY;
	deal_here(x, sizes, stage_of);
	if (o->n_nodes > 0)
		deal_away(x, o, sizes, stage_of);
	return 0;
}
