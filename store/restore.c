/* Records the files of checkpoints, and the restores of stages. A restore goes back to an earlier
 * iteration, so this module also deletes the rows of the iterations that it undoes. */
#include "store/store.h"

#include <errno.h>

#include "store/db.h"

int store_shard(struct store *s, const struct store_shard *k, struct error *err)
{
	struct db_value v[] = { db_u64(k->iteration), db_int(k->stage), db_int(k->node),
				db_text(k->host),     db_u64(k->hash),  db_u64(k->bytes),
				db_int(k->wall_us) };

	return db_write(s, false, DB_PUT_SHARD, v, DB_COUNT(v), err);
}

static int put_restore(struct store *s, const struct store_restore *r, struct error *err)
{
	struct db_value v[] = {
		db_u64(r->iteration),
		db_u64(r->last),
		db_int(r->stage),
		db_int(r->node),
		db_u64(r->hash),
		db_int(r->wall_us),
		r->n_from > 0 ? db_int(r->from[0]) : db_null(),
		db_real((double)r->weight[0]),
		r->n_from > 1 ? db_int(r->from[1]) : db_null(),
		db_real((double)r->weight[1])
	};

	return db_run(s, DB_PUT_RESTORE, v, DB_COUNT(v), err);
}

/* Deletes the rows of all iterations after the given iteration. If a stage was restored as an
 * average of other stages, the weights of the given iteration have changed. The rows of this
 * iteration's checkpoint are then deleted too.
 */
static int forget_after(struct store *s, uint64_t iteration, bool averaged, struct error *err)
{
	static const enum db_statement deletions[] = {
		DB_DROP_COMMITS,     DB_DROP_ROUTES,  DB_DROP_ORDERS,
		DB_DROP_REDUCTIONS,  DB_DROP_HASHES,  DB_DROP_TASKS,
		DB_DROP_VALIDATIONS, DB_DROP_MOMENTS, DB_DROP_RESTORES,
		DB_DROP_COMPUTED,    DB_DROP_ALIKE,
	};
	struct db_value v[] = { db_u64(iteration) };
	struct db_value checkpoint[] = { db_u64(averaged ? iteration : iteration + 1) };
	int rc = db_run(s, DB_DROP_SHARDS, checkpoint, 1, err);

	for (size_t i = 0; rc == 0 && i < sizeof(deletions) / sizeof(deletions[0]); i++)
		rc = db_run(s, deletions[i], v, 1, err);
	return rc;
}

static int try_restore(struct store *s, const struct store_restore *rows, size_t n,
		       bool averaged, struct error *err)
{
	int rc = db_begin(s, true, err);

	if (rc != 0)
		return rc;
	/* The new rows take their `last` from earlier rows, before some of these are deleted. */
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = put_restore(s, &rows[i], err);
	if (rc == 0)
		rc = forget_after(s, rows[0].iteration, averaged, err);
	return db_end(s, rc, err);
}

int store_restore(struct store *s, const struct store_restore *rows, size_t n,
		  struct error *err)
{
	bool averaged = false;
	int rc;

	write_forget(s);
	if (n == 0)
		return error_set(err, -EINVAL, "%s: a restore without stages", s->path);
	for (size_t i = 0; i < n; i++) {
		averaged = averaged || rows[i].n_from > 0;
		if (rows[i].iteration != rows[0].iteration || rows[i].n_from > 2)
			return error_set(err, -EINVAL,
					 "%s: a restore to two different iterations", s->path);
	}
	do
		rc = try_restore(s, rows, n, averaged, err);
	while (db_again(s, rc));
	return rc;
}

int store_each_shard(struct store *s, int (*visit)(void *context, const struct store_shard *k),
		     void *context, struct error *err)
{
	sqlite3_stmt *q;
	int rc = db_query(s, DB_GET_SHARDS, NULL, 0, &q, err);

	while (rc == 0 && (rc = db_row(s, q, err)) == 1) {
		struct store_shard k = {
			.iteration = (uint64_t)sqlite3_column_int64(q, 0),
			.stage = (uint8_t)sqlite3_column_int(q, 1),
			.node = (uint16_t)sqlite3_column_int(q, 2),
			.host = (const char *)sqlite3_column_text(q, 3),
			.hash = (uint64_t)sqlite3_column_int64(q, 4),
			.bytes = (uint64_t)sqlite3_column_int64(q, 5),
			.wall_us = sqlite3_column_int64(q, 6),
		};

		rc = visit(context, &k);
		if (rc != 0)
			db_done(q);
	}
	return rc;
}

int store_each_restore(struct store *s,
		       int (*visit)(void *context, const struct store_restore *r),
		       void *context, struct error *err)
{
	sqlite3_stmt *q;
	int rc = db_query(s, DB_GET_RESTORES, NULL, 0, &q, err);

	while (rc == 0 && (rc = db_row(s, q, err)) == 1) {
		struct store_restore r = {
			.iteration = (uint64_t)sqlite3_column_int64(q, 0),
			.last = (uint64_t)sqlite3_column_int64(q, 1),
			.stage = (uint8_t)sqlite3_column_int(q, 2),
			.node = (uint16_t)sqlite3_column_int(q, 3),
			.hash = (uint64_t)sqlite3_column_int64(q, 4),
			.wall_us = sqlite3_column_int64(q, 5),
		};

		for (int i = 0; i < 2; i++) {
			if (sqlite3_column_type(q, 6 + 2 * i) == SQLITE_NULL)
				break;
			r.from[i] = (uint8_t)sqlite3_column_int(q, 6 + 2 * i);
			r.weight[i] = (float)sqlite3_column_double(q, 7 + 2 * i);
			r.n_from++;
		}
		rc = visit(context, &r);
		if (rc != 0)
			db_done(q);
	}
	return rc;
}
