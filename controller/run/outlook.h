/* outlook.h - predicts the training loss at the end of a run whose learning rate begins to fall. */
#ifndef CONTROLLER_RUN_OUTLOOK_H
#define CONTROLLER_RUN_OUTLOOK_H

#include <stdbool.h>
#include <stddef.h>

struct outlook {
	float trend;     /* loss at the end if the rate stayed high */
	float low, high; /* range of the loss with the decay */
};

/* Continues the curve of n losses, of iterations at[i], to iteration `end`, before which the rate
 * falls. Takes the newer half of the losses, for they follow a line over the logarithm of the
 * iteration. Returns false if they are too few. */
bool outlook_make(struct outlook *out, const double *at, const double *loss, size_t n, double end);

#endif
