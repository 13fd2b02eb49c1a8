/* The table of measured losses, and interpolation in it.
 *
 * In a given number of hours, recipes make unequal numbers of iterations. With this table an
 * operator can compare the losses after these iterations. */
#include "schedule/recipes/losses.h"

#include <math.h>

/* Number of weights of the model `deep`, and number of tokens (bytes of text) that it reads in an
 * iteration. */
#define DEEP_WEIGHTS 587328.0
#define DEEP_TOKENS 7680.0

/* The losses come from the tables of docs/rates.md, as means over the seeds 1, 2 and 3. If a loss
 * was measured with fewer seeds, it is the mean of `full` plus the mean difference from `full` over
 * the seeds with which the recipe and `full` were both measured. The losses of 27 hours (the third
 * length, or the second of `robust`) were measured with seed 1. They are shifted: by the mean
 * difference between the table and seed 1 at the same recipe's lengths of 13.5 and 54 hours. */
const struct recipe recipes[RECIPES] = {
	{ "full", RECIPE_WHOLE, 0, { { 1000, 1.309 }, { 2000, 1.138 }, { 4000, 1.055 } } },
	{ "speed",
	  RECIPE_GROWS,
	  30,
	  { { 1000, 1.272 }, { 1293, 1.220 }, { 2586, 1.091 }, { 5172, 1.012 } } },
	{ "grow at 50%",
	  RECIPE_GROWS,
	  50,
	  { { 1000, 1.326 }, { 1606, 1.232 }, { 3212, 1.083 }, { 6424, 1.020 } } },
	{ "robust", RECIPE_ROBUST, 20, { { 1458, 1.221 }, { 2916, 1.115 }, { 5832, 1.047 } } },
	{ "ends only",
	  RECIPE_ENDS,
	  100,
	  { { 1000, 1.423 }, { 4076, 1.222 }, { 8152, 1.147 }, { 16304, 1.097 } } },
};

double recipe_loss(const struct recipe *r, double tokens_per_weight)
{
	double at = log(tokens_per_weight * DEEP_WEIGHTS / DEEP_TOKENS);

	for (int i = 0; i + 1 < RECIPE_LENGTHS && r->measured[i + 1].iterations > 0; i++) {
		const struct measured_loss *a = &r->measured[i], *b = &r->measured[i + 1];
		double low = log(a->iterations), high = log(b->iterations);

		/* Without the tolerance, the rounding of logarithms could exclude the measured
		 * lengths themselves. */
		if (at >= low - 1e-9 && at <= high + 1e-9)
			return a->loss + (b->loss - a->loss) * (at - low) / (high - low);
	}
	return NAN;
}

void recipe_lengths(const struct recipe *r, double *low, double *high)
{
	*low = r->measured[0].iterations * DEEP_TOKENS / DEEP_WEIGHTS;
	for (int i = 0; i < RECIPE_LENGTHS && r->measured[i].iterations > 0; i++)
		*high = r->measured[i].iterations * DEEP_TOKENS / DEEP_WEIGHTS;
}
