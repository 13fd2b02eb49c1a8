/* The table of measured losses, and interpolation in it.
 *
 * In a given number of hours, recipes make unequal numbers of iterations. With this table an
 * operator can compare the losses that they would reach. */
#include "schedule/recipes/losses.h"

#include <math.h>

/* Number of weights of the model `deep`, and number of tokens (bytes of text) that it reads in an
 * iteration. */
#define DEEP_WEIGHTS 587328.0
#define DEEP_TOKENS 7680.0

/* Means of seeds 1, 2 and 3, from the tables of docs/convergence.md. The recipes of 15% and 50%
 * were trained with seed 1 only. Their losses here are the mean loss of `full`, plus the difference
 * between the recipe and `full` with seed 1. */
const struct recipe recipes[RECIPES] = {
	{ "full", RECIPE_WHOLE, 0, { { 1000, 1.332 }, { 4000, 1.066 } } },
	{ "grow at 15%", RECIPE_GROWS, 15, { { 1000, 1.285 }, { 1124, 1.259 }, { 4000, 1.048 } } },
	{ "speed", RECIPE_GROWS, 30, { { 1000, 1.318 }, { 1289, 1.271 }, { 5156, 1.025 } } },
	{ "grow at 50%", RECIPE_GROWS, 50, { { 1000, 1.360 }, { 1606, 1.285 } } },
	{ "robust", RECIPE_ROBUST, 20, { { 1000, 1.364 }, { 1458, 1.296 }, { 5843, 1.073 } } },
	{ "ends only", RECIPE_ENDS, 100, { { 1000, 1.417 }, { 4126, 1.233 }, { 16500, 1.112 } } },
};

double recipe_loss(const struct recipe *r, double tokens_per_weight)
{
	double at = log(tokens_per_weight * DEEP_WEIGHTS / DEEP_TOKENS);

	for (int i = 0; i + 1 < RECIPE_LENGTHS && r->measured[i + 1].iterations > 0; i++) {
		const struct measured_loss *a = &r->measured[i], *b = &r->measured[i + 1];
		double low = log(a->iterations), high = log(b->iterations);

		/* The tolerance includes the measured lengths themselves, because their logarithms
		 * are rounded. */
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
