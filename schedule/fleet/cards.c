/* Reads the table of cards. */
#include "schedule/fleet/cards.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"

enum { MOST_BYTES = 1 << 20 };
#define TERA 1e12
#define GIGA 1e9

struct cards {
	json_t *root; /* the parsed file, which owns the texts */
	struct card *cards;
	int n;
	/* Array of n_shares pairs: a model's width, and the share of a card's peak arithmetic that
	 * training reaches at this width. Widths ascend. */
	double (*shares)[2];
	int n_shares;
};

static const char *const keys[] = { "format", "about", "reached", "cards", NULL };
static const char *const card_keys[] = { "name",   "bf16_tflops", "memory_gb", "bandwidth_gb_per_s",
					 "source", NULL };

static int read_card(const json_t *v, const char *where, struct card *c, struct error *err)
{
	double tera, memory, bandwidth;
	int rc;

	c->name = json_string_value(json_object_get(v, "name"));
	if (!c->name || !json_is_string(json_object_get(v, "source")))
		return json_expected(v, where, "", "an object with a name and a source", err);
	rc = json_known_keys(v, where, card_keys, err);
	if (rc == 0)
		rc = json_number(v, where, "bf16_tflops", 1e-6, NULL, &tera, err);
	if (rc == 0)
		rc = json_number(v, where, "memory_gb", 1e-3, NULL, &memory, err);
	if (rc == 0)
		rc = json_number(v, where, "bandwidth_gb_per_s", 1e-3, NULL, &bandwidth, err);
	if (rc != 0)
		return rc;
	c->flop_per_s = tera * TERA;
	c->memory_bytes = memory * GIGA;
	c->bytes_per_s = bandwidth * GIGA;
	return 0;
}

static int read_shares(struct cards *t, const char **measured_on, struct error *err)
{
	const json_t *reached = json_object_get(t->root, "reached"), *list;
	int rc = json_list(reached, "reached", "by_width", -1, &list, err);

	*measured_on = json_string_value(json_object_get(reached, "measured_on"));
	if (rc != 0 || !*measured_on || json_array_size(list) < 1)
		return rc ? rc
			  : json_expected(reached, "", "reached", "measured_on, and shares", err);
	t->n_shares = (int)json_array_size(list);
	t->shares = alloc_array((size_t)t->n_shares, sizeof(*t->shares));
	for (int i = 0; i < t->n_shares; i++) {
		const json_t *pair = json_array_get(list, (size_t)i);
		double width = json_number_value(json_array_get(pair, 0));
		double share = json_number_value(json_array_get(pair, 1));

		if (!(width > (i ? t->shares[i - 1][0] : 0)) || !(share > 0 && share <= 1))
			return error_set(err, -EINVAL,
					 "reached.by_width[%d]: expected a width above the one "
					 "before, and a share from 0 to 1",
					 i);
		t->shares[i][0] = width;
		t->shares[i][1] = share;
	}
	return 0;
}

static int read_table(struct cards *t, struct error *err)
{
	const char *measured_on;
	const json_t *list;
	int rc = read_shares(t, &measured_on, err);

	if (rc == 0)
		rc = json_list(t->root, "", "cards", -1, &list, err);
	if (rc != 0)
		return rc;
	t->n = (int)json_array_size(list);
	t->cards = alloc_array((size_t)t->n, sizeof(*t->cards));
	for (int i = 0; rc == 0 && i < t->n; i++) {
		char where[32];

		snprintf(where, sizeof(where), "cards[%d]", i);
		rc = read_card(json_array_get(list, (size_t)i), where, &t->cards[i], err);
		t->cards[i].has_measured_share =
			rc == 0 && strcmp(t->cards[i].name, measured_on) == 0;
	}
	return rc;
}

int cards_read(const char *path, struct cards **out, struct error *err)
{
	struct cards *t;
	char *text;
	size_t size;
	int rc = file_read_text(path, MOST_BYTES, &text, &size, err);

	if (rc != 0)
		return rc;
	t = alloc_new(sizeof(*t));
	rc = json_parse(text, size, "facts", keys, &t->root, err);
	free(text);
	if (rc == 0)
		rc = read_table(t, err);
	if (rc != 0) {
		cards_free(t);
		return error_prefix(err, rc, "%s", path);
	}
	*out = t;
	return 0;
}

void cards_free(struct cards *t)
{
	if (!t)
		return;
	free(t->cards);
	free(t->shares);
	json_decref(t->root);
	free(t);
}

int cards_find(const struct cards *t, const char *name, struct card *out, struct error *err)
{
	char known[300] = "";

	for (int i = 0; i < t->n; i++) {
		size_t used = strlen(known);

		if (strcmp(t->cards[i].name, name) == 0) {
			*out = t->cards[i];
			return 0;
		}
		snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
			 t->cards[i].name);
	}
	return error_set(err, -ENOENT, "no card \"%.40s\" in the table; it has %s", name, known);
}

double cards_share(const struct cards *t, double width)
{
	int i = 0;

	while (i < t->n_shares && t->shares[i][0] < width)
		i++;
	if (i == 0 || i == t->n_shares)
		return t->shares[i ? i - 1 : 0][1];
	return t->shares[i - 1][1] + (t->shares[i][1] - t->shares[i - 1][1]) *
					     log(width / t->shares[i - 1][0]) /
					     log(t->shares[i][0] / t->shares[i - 1][0]);
}
