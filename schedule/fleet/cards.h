/* cards.h - the table of cards (deploy/cards.json): the makers' figures, and the share of a card's
 * peak arithmetic that skippipe reaches. */
#ifndef SCHEDULE_CARDS_H
#define SCHEDULE_CARDS_H

#include <stdbool.h>

#include "base/error.h"

struct cards; /* opaque: the table */

struct card {
	const char *name;  /* name of the card, borrowed from the table */
	double flop_per_s; /* peak arithmetic for dense bf16 with sums in fp32 */
	double memory_bytes;
	double bytes_per_s;      /* memory bandwidth */
	bool has_measured_share; /* the share that skippipe reaches was measured on this card */
};

int cards_read(const char *path, struct cards **out, struct error *err);
void cards_free(struct cards *t); /* t may be NULL */

/* Finds a card by its name. -ENOENT: the table has no such card; the message lists all cards. */
int cards_find(const struct cards *t, const char *name, struct card *out, struct error *err);
/* Returns the share of flop_per_s that training reaches with a model of this width. The share is
 * interpolated between the measured widths, and constant beyond them. */
double cards_share(const struct cards *t, double width);

#endif
