/* losses.h - the measured losses of recipes, by the number of tokens for each weight of the model.
 *
 * The losses are those of docs/rates.md: one model (`deep`, 587,328 weights), AdamW with the
 * presets' schedule WSD and a rate of 8e-3. Their absolute values say nothing about other models.
 * For another model, only the ratio of the losses of two recipes in equal time is used, and only
 * within the measured lengths.
 */
#ifndef SCHEDULE_LOSSES_H
#define SCHEDULE_LOSSES_H

enum { RECIPE_LENGTHS = 4, RECIPES = 5 };

/* The phases of a recipe, which decide its time */
enum recipe_kind { RECIPE_WHOLE, RECIPE_GROWS, RECIPE_ROBUST, RECIPE_ENDS };

struct measured_loss {
	double iterations; /* number of iterations of `deep`; 0: this entry is unused */
	double loss;       /* held-out loss in nats per byte, with all trained stages visited */
};

struct recipe {
	const char *name;
	enum recipe_kind kind;
	/* Length of the first phase, in percent of all iterations. In this phase, microbatches
	 * visit only the first and the last stage. */
	int first_percent;
	struct measured_loss measured[RECIPE_LENGTHS]; /* in ascending order of iterations */
};

/* The first recipe trains the whole model in every iteration. All other recipes are compared with
 * it. */
extern const struct recipe recipes[RECIPES];

/* Returns the loss of `deep` after this many tokens for each of its weights, interpolated over the
 * logarithm of the tokens. NAN: outside the measured lengths. */
double recipe_loss(const struct recipe *r, double tokens_per_weight);
/* Gives the range of lengths over which the recipe was measured, in tokens for each weight. */
void recipe_lengths(const struct recipe *r, double *low, double *high);

#endif
