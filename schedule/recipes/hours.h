/* hours.h - computes what each recipe reaches in a given time on a cluster: how many iterations
 * fit, when nodes change their stages, and how the loss compares with the loss of training all
 * stages for the same time.
 */
#ifndef SCHEDULE_HOURS_H
#define SCHEDULE_HOURS_H

#include <stdint.h>

#include "base/error.h"
#include "base/model_shape.h"
#include "schedule/format/cluster.h"
#include "schedule/format/request.h"
#include "schedule/recipes/losses.h"

struct hours_request {
	/* The request of each search; path_length and skip_share are not read */
	struct plan_request search;
	double seconds;         /* time of the run, more than 0 */
	double state_ratio;     /* time of a fetch as a multiple of sync_pair_s (phase_plans.h) */
	/* Shape of the model, borrowed; NULL: unknown, and no losses are estimated. */
	const struct model_shape *shape;
	void (*on_progress)(void *arg, double done); /* done: from 0 to 1; NULL: none */
	void *progress_arg;
};

struct hours_row {
	const struct recipe *recipe;
	uint64_t iterations; /* number of iterations that fit into the time */
	/* First iteration that visits all stages, if earlier iterations skip stages; 0: all
	 * iterations visit all stages, or no iteration does. */
	uint64_t grows_at;
	double first_s, then_s; /* seconds of an iteration with its sums, in the two phases */
	int moves; /* number of nodes that change their stage when the second phase begins */
	/* Number of tokens in the whole run, divided by the model's weights; 0: unknown. */
	double tokens_per_weight;
	/* Change of the loss relative to the first row: -0.02 is 2% lower; NAN: not measured. */
	double change;
};

/* Plans the phases of all recipes, and fills in the rows. Nodes may change their stage between
 * phases. Paths visit stages in ascending order, and never skip the last stage. -EINVAL: no
 * stage of the cluster may be skipped. Other errors are those of phase_plans_choose. */
int hours_compare(const struct cluster *c, const struct hours_request *q,
		  struct hours_row rows[RECIPES], struct error *err);

/* Considers only recipes whose finished model has all stages. Returns the row with the lowest
 * measured loss; NULL: no loss is known. */
const struct hours_row *hours_best(const struct hours_row rows[RECIPES]);

/* Writes the options of `controller` that make this recipe, without the number of iterations. */
enum { HOURS_OPTIONS = 400 };
void hours_options(const struct hours_row *row, const struct cluster *c, char out[HOURS_OPTIONS]);

#endif
