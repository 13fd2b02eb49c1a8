/* losses.h - the losses that recipes have reached, by the tokens that each weight has been trained
 * with.
 *
 * The losses are those of docs/convergence.md: one model (`deep`, 587,328 weights), AdamW along a
 * cosine, each recipe with its best learning rate. Only ratios of losses are carried over to other
 * models, between runs of equal time, and only within the measured lengths.
 */
#ifndef SCHEDULE_LOSSES_H
#define SCHEDULE_LOSSES_H

enum { RECIPE_LENGTHS = 3, RECIPES = 6 };

/* The phases of a recipe, which decide its time */
enum recipe_kind { RECIPE_WHOLE, RECIPE_GROWS, RECIPE_ROBUST, RECIPE_ENDS };

struct measured_loss {
	double iterations; /* of `deep`; 0: no further measurement */
	double loss;       /* held-out, nats per byte, all trained stages visited */
};

struct recipe {
	const char *name;
	enum recipe_kind kind;
	int first_percent; /* iterations that visit only the first and the last stage */
	struct measured_loss measured[RECIPE_LENGTHS]; /* ascending */
};

/* The first recipe is the whole model in every iteration: the others are compared with it. */
extern const struct recipe recipes[RECIPES];

/* Returns the loss of `deep` after this many tokens for each of its weights, interpolated over the
 * logarithm of the tokens. NAN: outside the measured lengths. */
double recipe_loss(const struct recipe *r, double tokens_per_weight);
/* Gives the least and the most tokens for each weight with which the recipe was measured. */
void recipe_lengths(const struct recipe *r, double *low, double *high);

#endif
