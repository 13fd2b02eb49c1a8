/* takeover_record.c - the routes of the iteration under way, for a controller that takes the run over: written before
 * agents are told, and read again.
 */
#include "controller/iteration/takeover_record.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "controller/controller.h"
#include "controller/history/finish.h"
#include "schedule/execution/simulate.h"

/* ---- what the store knows ---- */

static json_t *changed_routes(const struct controller *c)
{
	json_t *all = json_array();

	for (uint32_t i = 0; all && i < c->routes.n; i++) {
		const struct microbatch *m = &c->routes.microbatches[i];
		json_t *nodes, *stages;

		if (m->route.attempt == c->first_attempt)
			continue;
		nodes = json_array();
		stages = json_array();
		for (uint32_t h = 0; h < m->route.n_hops; h++) {
			json_array_append_new(nodes, json_integer(m->nodes[h]));
			json_array_append_new(stages, json_integer(m->stages[h]));
		}
		json_array_append_new(
			all, json_pack("{s:i, s:I, s:I, s:I, s:I, s:b, s:o, s:o}", "microbatch", (int)i,
				       "attempt", (json_int_t)m->route.attempt,
				       "since", (json_int_t)m->route.since,
				       "owed_forward", (json_int_t)m->owed_forward,
				       "owed_backward", (json_int_t)m->owed_backward,
				       "owed_loss", m->owed_loss,
				       "nodes", nodes, "stages", stages));
	}
	return all;
}

/* *any: something has become of the plan. */
static char *format_routes(const struct controller *c, bool *any)
{
	json_t *gone = json_array(), *routes = changed_routes(c), *o;
	char *text;

	for (uint32_t i = 0; gone && i < c->n_members; i++)
		if (c->members[i].lost_here)
			json_array_append_new(gone, json_integer((json_int_t)i));
	*any = json_array_size(routes) > 0 || json_array_size(gone) > 0;
	o = json_pack("{s:I, s:I, s:o, s:o}", "iteration", *any ? (json_int_t)c->iteration : 0,
		      "first_attempt", (json_int_t)c->first_attempt, "gone", gone, "routes", routes);
	text = o ? json_dumps(o, JSON_COMPACT) : NULL;
	json_decref(o);
	return text;
}

/* Most iterations go as planned, and nothing is written then: what stands there is of an earlier one. Where one
 * begins anew its first attempt is another. */
void takeover_record(struct controller *c)
{
	struct error err = { "out of memory" };
	bool any;
	char *text = format_routes(c, &any);

	if (text && c->takeover.text &&
	    ((!any && c->takeover.recorded_first == c->first_attempt) || strcmp(text, c->takeover.text) == 0)) {
		free(text);
		return;
	}
	if (!text || store_set(c->store, "under_way", text, &err) != 0) {
		controller_unrecorded(c, err.text);
		free(text);
		return;
	}
	free(c->takeover.text);
	c->takeover.text = text;
	c->takeover.recorded_first = c->first_attempt;
}

/* ---- reading it ---- */

static bool read_numbers(const json_t *from, uint32_t n, uint32_t below, uint16_t *to)
{
	if (json_array_size(from) != n)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		json_int_t v = json_integer_value(json_array_get(from, i));

		if (!json_is_integer(json_array_get(from, i)) || v < 0 || v >= below)
			return false;
		to[i] = (uint16_t)v;
	}
	return true;
}

static bool take_route(struct controller *c, json_t *o)
{
	uint16_t nodes[MSG_STAGES], stages[MSG_STAGES];
	json_t *n, *s;
	json_int_t id, attempt, since, forward, backward;
	struct microbatch *m;
	int loss;

	if (json_unpack(o, "{s:I, s:I, s:I, s:I, s:I, s:b, s:o, s:o}", "microbatch", &id, "attempt", &attempt,
			"since", &since, "owed_forward", &forward, "owed_backward", &backward, "owed_loss",
			&loss, "nodes", &n, "stages", &s) != 0 || id < 0 || id >= c->routes.n ||
	    attempt <= c->first_attempt || attempt > UINT32_MAX / 2 || since < c->first_attempt ||
	    since > attempt)
		return false;
	m = &c->routes.microbatches[id];
	if ((uint64_t)(forward | backward) >> 1 >> (m->route.n_hops - 1) != 0)
		return false;
	if (!read_numbers(n, m->route.n_hops, c->n_members, nodes) ||
	    !read_numbers(s, m->route.n_hops, (uint32_t)c->cluster->n_stages, stages))
		return false;
	for (uint32_t h = 0; h < m->route.n_hops; h++) {
		if (c->cluster->nodes[nodes[h]].stage != stages[h])
			return false;
		m->nodes[h] = nodes[h];
		m->stages[h] = (uint8_t)stages[h];
	}
	m->route.attempt = (uint32_t)attempt;
	m->route.since = (uint32_t)since;
	m->owed_forward = (uint64_t)forward;
	m->owed_backward = (uint64_t)backward;
	m->owed_loss = loss;
	m->moved = true; /* for all we know */
	c->routes.rerun++;
	return true;
}

/* The routes as they were when the predecessor died. */
static bool read_record(struct controller *c, const struct plan *p)
{
	json_t *o, *gone, *routes, *item;
	json_int_t iteration, first;
	struct error err;
	char *text = NULL;
	size_t i;
	bool ok;

	if (store_get(c->store, "under_way", &text, &err) != 0)
		return false;
	o = json_loads(text, 0, NULL);
	free(text);
	ok = o && json_unpack(o, "{s:I, s:I, s:o, s:o}", "iteration", &iteration, "first_attempt",
			      &first, "gone", &gone, "routes", &routes) == 0 &&
	     first >= 0 && first < c->first_attempt;
	if (ok) {
		c->first_attempt = (uint32_t)first;
		ok = routes_from_plan(&c->routes, p, c->shard_of, c->n_shards, c->per_shard,
				      c->first_attempt, &err) == 0;
	}
	if (ok && iteration == (json_int_t)c->iteration) {
		json_array_foreach(routes, i, item)
			ok = ok && take_route(c, item);
		json_array_foreach(gone, i, item) {
			json_int_t id = json_integer_value(item);

			if (id >= 0 && id < c->n_members)
				c->members[id].lost_here = true;
		}
	}
	json_decref(o);
	return ok;
}

static int last_plan(void *context, const struct store_plan *p)
{
	struct planned *to = context;
	struct plan *plan;
	struct error err;

	if (plan_parse(p->plan, strlen(p->plan), &plan, &err) != 0)
		return 0;
	plan_free(to->plan);
	to->plan = plan;
	to->epoch = p->epoch;
	to->iteration = p->iteration;
	return 0;
}

static struct planned *read_plan(struct controller *c)
{
	struct planned *p = calloc(1, sizeof(*p));
	struct error err;

	if (!p)
		return NULL;
	snprintf(p->reason, sizeof(p->reason), "the run was taken over");
	if (store_each_plan(c->store, c->epoch, last_plan, p, &err) != 0 || !p->plan ||
	    p->epoch != c->epoch || p->iteration > c->iteration ||
	    (uint32_t)p->plan->path_length != c->path_length ||
	    simulate(c->cluster, p->plan, &p->trace, &err) != 0) {
		planned_free(p);
		return NULL;
	}
	return p;
}

void takeover_read(struct controller *c)
{
	uint32_t own = c->first_attempt;

	c->takeover.plan = read_plan(c);
	if (c->takeover.plan && !read_record(c, c->takeover.plan->plan)) {
		planned_free(c->takeover.plan);
		c->takeover.plan = NULL;
	}
	c->takeover.first = c->first_attempt;
	c->first_attempt = own;
}

bool takeover_recalls(const struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++)
		if (c->members[i].replica && c->members[i].recalling)
			return true;
	return false;
}
