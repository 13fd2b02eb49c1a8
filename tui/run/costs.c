/* Computes the cost of a run from a file of prices, and the goodput of the run. */
#include "tui/run/costs.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tui/json_line.h"
#include "tui/run/roster.h"
#include "wire/goodput.h"

enum { NEWEST = 32 };

static const char *add_price(struct prices *p, const char *key, const json_t *v)
{
	double dollars = json_number_value(v);

	if (!json_is_number(v) || !(dollars >= 0 && dollars <= 1e6))
		return "a price in dollars an hour, from 0 to 1000000";
	if (strcmp(key, "others") == 0) {
		p->others = dollars;
		return NULL;
	}
	if (strlen(key) >= sizeof(p->list[0].name) || p->n == PRICES)
		return p->n == PRICES ? "no more than 256 prices"
				      : "a node (n07), a place, or others";
	snprintf(p->list[p->n].name, sizeof(p->list[0].name), "%s", key);
	p->list[p->n++].dollars = dollars;
	return NULL;
}

int prices_parse(struct prices *out, const char *name, const char *json, struct error *err)
{
	json_error_t where;
	json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &where), *v;
	struct prices p = { .are_known = true };
	const char *key, *expected;
	int rc = 0;

	if (!root)
		return error_set(err, -EINVAL, "%s:%d: %s", name, where.line, where.text);
	if (!json_is_object(root) || json_object_size(root) == 0)
		rc = error_set(err, -EINVAL,
			       "%s:1: expected prices in dollars an hour, as {\"n07\": 2.5, "
			       "\"Oregon\": 1.2, \"others\": 1}",
			       name);
	json_object_foreach(root, key, v)
	{
		expected = rc == 0 ? add_price(&p, key, v) : NULL;
		if (expected)
			rc = error_set(err, -EINVAL, "%s:%d: %.40s: expected %s", name,
				       json_line(json, key), key, expected);
	}
	json_decref(root);
	if (rc == 0)
		*out = p;
	return rc;
}

/* Returns the price of a node. The price of the node itself takes precedence over the price of its
 * place. */
static double price_of(const struct prices *p, const struct msg_see_node *m)
{
	double price = p->others;

	for (uint32_t i = 0; i < p->n; i++)
		if (strcmp(p->list[i].name, m->location) == 0)
			price = p->list[i].dollars;
	for (uint32_t i = 0; i < p->n; i++)
		if (roster_names(p->list[i].name, m->node))
			return p->list[i].dollars;
	return price;
}

/* Returns the median duration of the newest iterations, in seconds. For an emulated run it is in
 * plan seconds: the duration that the emulated network would give. */
static double pace_s(const struct state *s)
{
	const struct state_history *h = &s->history;
	size_t n = h->n_iterations < NEWEST ? h->n_iterations : NEWEST;
	float took[NEWEST];

	for (size_t i = 0; i < n; i++) {
		const struct msg_see_iteration *it = &h->iterations[h->n_iterations - 1 - i];

		took[i] = s->run.emulated ? it->iteration_s : it->real_s;
	}
	return (double)state_median(took, n);
}

struct cost costs_of(const struct prices *p, const struct state *s, int without, double slower)
{
	double tokens = (double)s->run.tokens_per_iteration;
	struct cost c = { 0, 0 };

	for (uint32_t i = 0; i < s->n_nodes; i++) {
		const struct msg_see_node *m = &s->nodes[i].see;

		if (s->nodes[i].known && m->state != NODE_ABSENT && m->state != NODE_DEAD &&
		    m->state != NODE_LEFT &&
		    (int)i != without)
			c.per_hour += price_of(p, m);
	}
	if (tokens > 0)
		c.per_mtoken = c.per_hour / 3600 * pace_s(s) * slower / tokens * 1e6;
	return c;
}

double costs_goodput(const struct state *s)
{
	return goodput_of(s->history.iterations, s->history.n_iterations, s->run.microbatches,
			  s->run.time_scale > 0 ? s->run.time_scale : 1);
}
