/* outlook.h - predicts the training loss at the end of a run whose learning rate begins to fall. */
#ifndef CONTROLLER_RUN_OUTLOOK_H
#define CONTROLLER_RUN_OUTLOOK_H

#include <stdbool.h>
#include <stddef.h>

struct outlook {
	float trend;     /* predicted loss at the end if the learning rate stayed high */
	float low, high; /* range of the predicted loss if the learning rate falls */
};

/* Predicts the loss at iteration `end` if the learning rate falls until then. loss[i] is the loss
 * at iteration at[i], for n losses. Uses only the newer half of the losses, because these follow a
 * line over the logarithm of the iteration. Returns false if there are too few losses. */
bool outlook_make(struct outlook *out, const double *at, const double *loss, size_t n, double end);

#endif
