/* Reads the rows of a run. Each statement of a reader sees one consistent state of the file. The
 * results of several statements fit together, because a commit is written as a whole and is not
 * changed later. */
#include "store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "store/db.h"
#include "store/list.h"

/* SQLite keeps a NaN as NULL. */
static double column_real(sqlite3_stmt *q, int column)
{
	return sqlite3_column_type(q, column) == SQLITE_NULL ? (double)NAN
							      : sqlite3_column_double(q, column);
}

static uint64_t column_u64(sqlite3_stmt *q, int column)
{
	return (uint64_t)sqlite3_column_int64(q, column);
}

static uint32_t column_u32(sqlite3_stmt *q, int column)
{
	return (uint32_t)sqlite3_column_int64(q, column);
}

/* Returns "" if the column is NULL. */
static const char *column_string(sqlite3_stmt *q, int column)
{
	const char *t = (const char *)sqlite3_column_text(q, column);

	return t ? t : "";
}

/* Sets *last to the largest value of a column; 0: the table is empty. */
static int read_last(struct store *s, enum db_statement which, uint64_t *last, struct error *err)
{
	sqlite3_stmt *q;
	int rc = db_query(s, which, NULL, 0, &q, err);

	if (rc == 0)
		rc = db_row(s, q, err);
	if (rc < 0)
		return rc;
	*last = rc == 1 ? column_u64(q, 0) : 0;
	if (rc == 1)
		db_done(q);
	return 0;
}

int store_last_commit(struct store *s, uint64_t *iteration, struct error *err)
{
	return read_last(s, DB_LAST_COMMIT, iteration, err);
}

int store_last_scripted(struct store *s, uint64_t *iteration, struct error *err)
{
	return read_last(s, DB_LAST_SCRIPTED, iteration, err);
}

int store_visited(struct store *s, uint32_t path_length, bool *visited, struct error *err)
{
	struct db_value v[] = { db_int(path_length) };
	sqlite3_stmt *q;
	int rc = db_query(s, DB_VISITED, v, DB_COUNT(v), &q, err);

	if (rc == 0)
		rc = db_row(s, q, err);
	if (rc < 0)
		return rc;
	*visited = rc == 1 && column_u64(q, 0) > 0;
	if (rc == 1)
		db_done(q);
	return 0;
}

int store_last_note(struct store *s, uint64_t *id, struct error *err)
{
	return read_last(s, DB_LAST_NOTE, id, err);
}

static int read_visits(struct store *s, sqlite3_stmt *q, struct store_commit *c, struct error *err)
{
	uint16_t *visits = NULL;
	uint32_t n = 0;
	int rc = list_parse_u16(column_string(q, 25), &visits, &n);

	if (rc == 0 && n > ROUTE_HOPS)
		rc = -EBADMSG;
	if (rc == 0) {
		memcpy(c->visits.of, visits, n * sizeof(*visits));
		c->visits.n = n;
	}
	free(visits);
	if (rc != 0)
		return error_set(err, rc, "%s: is damaged: the visits of iteration %" PRIu64,
				 s->path, c->iteration);
	return 0;
}

/* Reads a row of the table `commits`. Ends the query on an error. */
static int commit_row(struct store *s, sqlite3_stmt *q, struct store_commit *c, struct error *err)
{
	int rc;

	*c = (struct store_commit){
		.iteration = column_u64(q, 0), .epoch = column_u64(q, 1),
		.attempt = column_u32(q, 2), .scale = (float)column_real(q, 3),
		.lr = (float)column_real(q, 4), .beta1 = (float)column_real(q, 5),
		.beta2 = (float)column_real(q, 6), .eps = (float)column_real(q, 7),
		.weight_decay = (float)column_real(q, 8), .loss = (float)column_real(q, 9),
		.gradient_norm = column_real(q, 10),
		.repeats = { column_u32(q, 20), column_u64(q, 11) },
		.iteration_s = column_real(q, 12), .predicted_s = column_real(q, 13),
		.sync_s = column_real(q, 14), .real_s = column_real(q, 15),
		.collisions = { column_u32(q, 16), column_real(q, 17) },
		.alive = column_u32(q, 18), .path_length = column_u32(q, 19),
		.wall_us = sqlite3_column_int64(q, 21),
		.stack_from = column_u64(q, 22),
	};
	rc = db_formats(s, q, 23, 24, &c->formats, err);
	if (rc == 0)
		rc = read_visits(s, q, c, err);
	if (rc != 0)
		db_done(q);
	return rc;
}

/* The arrays of a commit that was read. store_commit_clear frees them. */
struct parts {
	struct route *routes;
	struct store_order *orders;
	struct store_reduction *reductions;
	size_t n_routes, n_orders, n_reductions;
	size_t room_routes, room_orders, room_reductions;
};

void store_commit_clear(struct store_commit *c)
{
	struct parts *p = c->owned;

	if (p) {
		for (size_t i = 0; i < p->n_orders; i++) {
			free((void *)p->orders[i].counted);
			free((void *)p->orders[i].device);
		}
		for (size_t i = 0; i < p->n_reductions; i++)
			free((void *)p->reductions[i].nodes);
		free(p->routes);
		free(p->orders);
		free(p->reductions);
		free(p);
	}
	*c = (struct store_commit){ 0 };
}

/* Adds the route in a row. The row's list of nodes and its list of stages must have the same
 * length, at most ROUTE_HOPS. */
static int take_route(struct parts *p, sqlite3_stmt *q)
{
	struct route *r;
	uint16_t *nodes = NULL;
	uint8_t *stages = NULL;
	uint32_t n_stages;
	int rc;

	array_reserve(&p->routes, &p->room_routes, p->n_routes + 1, sizeof(*p->routes));
	r = &p->routes[p->n_routes];
	*r = (struct route){ .microbatch = column_u32(q, 0), .shard = column_u32(q, 1),
			     .wave = column_u32(q, 2), .attempt = column_u32(q, 3) };
	rc = list_parse_u16(column_string(q, 4), &nodes, &r->n_hops);
	if (rc == 0)
		rc = list_parse_u8(column_string(q, 5), &stages, &n_stages);
	if (rc == 0 && (n_stages != r->n_hops || n_stages > ROUTE_HOPS))
		rc = -EBADMSG;
	if (rc == 0) {
		memcpy(r->nodes, nodes, n_stages * sizeof(*nodes));
		memcpy(r->stages, stages, n_stages * sizeof(*stages));
		p->n_routes++;
	}
	free(stages);
	free(nodes);
	return rc;
}

static int take_order(struct parts *p, sqlite3_stmt *q)
{
	struct store_order *o;
	struct store_counted *counted;
	int rc;

	array_reserve(&p->orders, &p->room_orders, p->n_orders + 1, sizeof(*p->orders));
	o = &p->orders[p->n_orders];
	*o = (struct store_order){ .node = (uint16_t)column_u32(q, 0),
				   .stage = (uint8_t)column_u32(q, 1) };
	rc = list_parse_counted(column_string(q, 2), &counted, &o->n_counted);
	if (rc != 0)
		return rc;
	o->counted = counted;
	p->n_orders++;
	return 0;
}

static int take_reduction(struct parts *p, sqlite3_stmt *q)
{
	struct store_reduction *r;
	uint16_t *nodes;
	int rc;

	array_reserve(&p->reductions, &p->room_reductions, p->n_reductions + 1,
		      sizeof(*p->reductions));
	r = &p->reductions[p->n_reductions];
	*r = (struct store_reduction){ .stage = (uint8_t)column_u32(q, 0) };
	rc = list_parse_u16(column_string(q, 1), &nodes, &r->n_nodes);
	if (rc != 0)
		return rc;
	r->nodes = nodes;
	p->n_reductions++;
	return 0;
}

/* Adds the device of a node to the node's entry in p->orders, which is sorted by node. A node that
 * counted no gradient has no entry, and its device is ignored. */
static int take_computed(struct parts *p, sqlite3_stmt *q)
{
	uint16_t node = (uint16_t)column_u32(q, 0);
	size_t low = 0, high = p->n_orders;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (p->orders[middle].node < node)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == p->n_orders || p->orders[low].node != node || p->orders[low].device)
		return 0;
	p->orders[low].device = alloc_string(column_string(q, 1));
	return 0;
}

static int take_all(struct store *s, enum db_statement which, uint64_t iteration,
		    struct parts *p, int (*take)(struct parts *p, sqlite3_stmt *q),
		    struct error *err)
{
	struct db_value v[] = { db_u64(iteration) };
	sqlite3_stmt *q;
	int rc = db_query(s, which, v, 1, &q, err);

	while (rc == 0 && (rc = db_row(s, q, err)) == 1) {
		rc = take(p, q);
		if (rc == 0)
			continue;
		db_done(q);
		return error_set(err, rc, "%s: is damaged: a list of iteration %" PRIu64
				 " is malformed", s->path, iteration);
	}
	return rc;
}

/* Reads the row of the table `alike`: of[part] is the iteration whose rows hold that part of the
 * commit. */
static int read_alike(struct store *s, uint64_t iteration, uint64_t of[DB_PARTS], struct error *err)
{
	struct db_value v[] = { db_u64(iteration) };
	sqlite3_stmt *q;
	int rc = db_query(s, DB_GET_ALIKE, v, 1, &q, err);

	if (rc == 0)
		rc = db_row(s, q, err);
	if (rc == 0)
		return error_set(err, -EBADMSG, "%s: is damaged: iteration %" PRIu64
				 " is incomplete", s->path, iteration);
	if (rc < 0)
		return rc;
	for (int i = 0; i < DB_PARTS; i++)
		of[i] = column_u64(q, i);
	db_done(q);
	return 0;
}

static int read_parts(struct store *s, struct store_commit *c, struct error *err)
{
	struct parts *p = alloc_new(sizeof(*p));
	uint64_t of[DB_PARTS];
	int rc;

	c->owned = p;
	rc = read_alike(s, c->iteration, of, err);
	if (rc == 0)
		rc = take_all(s, DB_GET_ROUTES, of[DB_ROUTES], p, take_route, err);
	if (rc == 0)
		rc = take_all(s, DB_GET_ORDERS, of[DB_ORDERS], p, take_order, err);
	if (rc == 0)
		rc = take_all(s, DB_GET_REDUCTIONS, of[DB_REDUCTIONS], p, take_reduction, err);
	if (rc == 0)
		rc = take_all(s, DB_GET_COMPUTED, of[DB_COMPUTED], p, take_computed, err);
	c->routes = p->routes;
	c->orders = p->orders;
	c->reductions = p->reductions;
	c->n_routes = p->n_routes;
	c->n_orders = p->n_orders;
	c->n_reductions = p->n_reductions;
	return rc;
}

int store_read_commit(struct store *s, uint64_t iteration, struct store_commit *out,
		      struct error *err)
{
	struct db_value v[] = { db_u64(iteration) };
	struct store_commit c;
	sqlite3_stmt *q;
	int rc = db_query(s, DB_GET_COMMIT, v, 1, &q, err);

	if (rc == 0)
		rc = db_row(s, q, err);
	if (rc == 0)
		return error_set(err, -ENOENT, "%s: iteration %" PRIu64 " is not committed",
				 s->path, iteration);
	if (rc < 0)
		return rc;
	rc = commit_row(s, q, &c, err);
	if (rc != 0)
		return rc;
	db_done(q);
	rc = read_parts(s, &c, err);
	if (rc != 0) {
		store_commit_clear(&c);
		return rc;
	}
	*out = c;
	return 0;
}

/* ---- functions that call `visit` for each row ----
 *
 * `visit` must not call the function that called it, because both would use the same prepared
 * statement.
 */

/* Ends the walk through the rows if the visitor has returned an error. Returns rc. */
static int visited(sqlite3_stmt *q, int rc)
{
	if (rc != 0)
		db_done(q);
	return rc;
}

int store_each_commit(struct store *s, uint64_t from, uint64_t to,
		      int (*visit)(void *context, const struct store_commit *c), void *context,
		      struct error *err)
{
	struct db_value v[] = { db_u64(from), db_int(to > INT64_MAX ? INT64_MAX : (int64_t)to) };
	sqlite3_stmt *q;
	int rc = db_query(s, DB_GET_COMMITS, v, DB_COUNT(v), &q, err);

	while (rc == 0 && (rc = db_row(s, q, err)) == 1) {
		struct store_commit c;

		rc = commit_row(s, q, &c, err);
		if (rc != 0)
			return rc;
		rc = visited(q, visit(context, &c));
	}
	return rc;
}

int store_each_plan(struct store *s, uint64_t from,
		    int (*visit)(void *context, const struct store_plan *p), void *context,
		    struct error *err)
{
	struct db_value v[] = { db_int((int64_t)from) };
	sqlite3_stmt *q;
	int rc = db_query(s, DB_GET_PLANS, v, 1, &q, err);

	while (rc == 0 && (rc = db_row(s, q, err)) == 1) {
		struct store_plan p = { .epoch = column_u64(q, 0),
					.iteration = column_u64(q, 1),
					.reason = column_string(q, 2),
					.path_length = column_u32(q, 3),
					.plan = column_string(q, 4),
					.iteration_s = column_real(q, 5),
					.sync_s = column_real(q, 6) };

		rc = visited(q, visit(context, &p));
	}
	return rc;
}

int store_each_hash(struct store *s, uint64_t iteration,
		    int (*visit)(void *context, const struct store_hash *h), void *context,
		    struct error *err)
{
	struct db_value v[] = { db_u64(iteration) };
	sqlite3_stmt *q;
	int rc = db_query(s, DB_GET_HASHES, v, 1, &q, err);

	while (rc == 0 && (rc = db_row(s, q, err)) == 1) {
		struct store_hash h = { .iteration = column_u64(q, 0),
					.stage = (uint8_t)column_u32(q, 1),
					.node = (uint16_t)column_u32(q, 2),
					.hash = column_u64(q, 3) };

		rc = visited(q, visit(context, &h));
	}
	return rc;
}

int store_each_task(struct store *s, uint64_t iteration,
		    int (*visit)(void *context, const struct store_task *t), void *context,
		    struct error *err)
{
	struct db_value v[] = { db_u64(iteration) };
	sqlite3_stmt *q;
	int rc = db_query(s, DB_GET_TASKS, v, 1, &q, err);

	while (rc == 0 && (rc = db_row(s, q, err)) == 1) {
		struct store_task t = {
			.iteration = column_u64(q, 0), .node = (uint16_t)column_u32(q, 1),
			.microbatch = column_u32(q, 2), .attempt = column_u32(q, 3),
			.kind = *column_string(q, 4), .counted = column_u32(q, 5) != 0,
			.waited_for = sqlite3_column_int64(q, 6),
			.arrived_us = sqlite3_column_int64(q, 7),
			.start_us = sqlite3_column_int64(q, 8),
			.end_us = sqlite3_column_int64(q, 9),
		};

		rc = visited(q, visit(context, &t));
	}
	return rc;
}

int store_each_validation(struct store *s,
			  int (*visit)(void *context, const struct store_validation *v),
			  void *context, struct error *err)
{
	sqlite3_stmt *q;
	int rc = db_query(s, DB_GET_VALIDATIONS, NULL, 0, &q, err);

	while (rc == 0 && (rc = db_row(s, q, err)) == 1) {
		struct store_validation l = { .iteration = column_u64(q, 0),
					      .loss = column_real(q, 1),
					      .wall_us = sqlite3_column_int64(q, 2) };

		rc = visited(q, visit(context, &l));
	}
	return rc;
}

int store_each_note(struct store *s, int (*visit)(void *context, const struct store_note *n),
		    void *context, struct error *err)
{
	sqlite3_stmt *q;
	int rc = db_query(s, DB_GET_NOTES, NULL, 0, &q, err);

	while (rc == 0 && (rc = db_row(s, q, err)) == 1) {
		struct store_note n = { .id = column_u64(q, 0), .iteration = column_u64(q, 1),
					.wall_us = sqlite3_column_int64(q, 2),
					.kind = column_string(q, 3),
					.mark = (char)sqlite3_column_int(q, 4),
					.node = sqlite3_column_int(q, 5),
					.text = column_string(q, 6) };

		rc = visited(q, visit(context, &n));
	}
	return rc;
}

int store_each_fault(struct store *s, int (*visit)(void *context, const struct store_fault *f),
		     void *context, struct error *err)
{
	sqlite3_stmt *q;
	int rc = db_query(s, DB_GET_FAULTS, NULL, 0, &q, err);

	while (rc == 0 && (rc = db_row(s, q, err)) == 1) {
		struct store_fault f = {
			.id = column_u32(q, 0), .iteration = column_u64(q, 1),
			.kind = column_string(q, 2), .node = sqlite3_column_int(q, 3),
			.peer = sqlite3_column_int(q, 4),
			.factor = column_real(q, 5), .ttl_ms = column_u32(q, 6),
			.started_wall_us = sqlite3_column_int64(q, 7),
			.ended_wall_us = sqlite3_column_int64(q, 8),
		};

		rc = visited(q, visit(context, &f));
	}
	return rc;
}

int store_each_moment(struct store *s, uint64_t after,
		      int (*visit)(void *context, const struct store_moment *m), void *context,
		      struct error *err)
{
	struct db_value v[] = { db_u64(after) };
	sqlite3_stmt *q;
	int rc = db_query(s, DB_GET_MOMENTS, v, DB_COUNT(v), &q, err);

	while (rc == 0 && (rc = db_row(s, q, err)) == 1) {
		struct store_moment m = {
			.id = column_u64(q, 0),
			.writer = column_u64(q, 1),
			.iteration = column_u64(q, 2),
			.at_us = sqlite3_column_int64(q, 3),
			.wall_us = sqlite3_column_int64(q, 4),
			.kind = column_string(q, 5),
			.node = sqlite3_column_int(q, 6),
			.stage = sqlite3_column_int(q, 7),
			.value = sqlite3_column_int64(q, 8),
			.word = column_string(q, 9),
			.text = column_string(q, 10),
			.forward_s = column_real(q, 11),
			.backward_s = column_real(q, 12),
			.loss_s = column_real(q, 13),
			.device = column_string(q, 14),
			.host = column_string(q, 15),
			.name = column_string(q, 16),
			.place = column_string(q, 17),
		};

		rc = visited(q, visit(context, &m));
	}
	return rc;
}

int store_get(struct store *s, const char *key, char **value, struct error *err)
{
	struct db_value v[] = { db_text(key) };
	sqlite3_stmt *q;
	int rc = db_query(s, DB_GET_STATE, v, 1, &q, err);

	if (rc == 0)
		rc = db_row(s, q, err);
	if (rc == 0)
		return error_set(err, -ENOENT, "%s: nothing is kept under \"%s\"", s->path, key);
	if (rc < 0)
		return rc;
	*value = alloc_string(column_string(q, 0));
	db_done(q);
	return 0;
}

int store_each_device(struct store *s,
		      int (*visit)(void *context, const char *device, uint32_t nodes),
		      void *context, struct error *err)
{
	sqlite3_stmt *q;
	int rc = db_query(s, DB_GET_DEVICES, NULL, 0, &q, err);

	while (rc == 0 && (rc = db_row(s, q, err)) == 1) {
		rc = visited(q, visit(context, column_string(q, 0), column_u32(q, 1)));
	}
	return rc;
}
