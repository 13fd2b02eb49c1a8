/* outlook.h - predicts the training loss at the end of a run whose learning rate begins to fall. */
#ifndef CONTROLLER_RUN_OUTLOOK_H
#define CONTROLLER_RUN_OUTLOOK_H

#include <stdbool.h>
#include <stddef.h>

struct outlook {
	float trend;     /* predicted loss at the end if the rate stayed high */
	float low, high; /* range of the predicted loss if the rate decays */
};

/* Predicts the loss at iteration `end`, before which the rate falls, from a curve of n losses at
 * the iterations at[i]. Uses the newer half of the losses, because it follows a line over the
 * logarithm of the iteration. Returns false if there are too few losses. */
bool outlook_make(struct outlook *out, const double *at, const double *loss, size_t n, double end);

#endif
