/* db.h - the store's use of SQLite: statements by name, values, transactions, errors in words.
 *
 * Private to store/. Every statement is in one table (db.c), prepared when first used and kept.
 */
#ifndef STORE_DB_H
#define STORE_DB_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

enum db_statement {
	DB_BEGIN,
	DB_COMMIT,
	DB_ROLLBACK,
	DB_SYNC_FULL,
	DB_SYNC_NORMAL,
	DB_EPOCH,
	DB_NEXT_EPOCH,
	DB_PUT_RUN,
	DB_PUT_CORPUS,
	DB_GET_RUN,
	DB_GET_CORPUS,
	DB_SET_HASH,
	DB_SET_CLUSTER,
	DB_PUT_PLAN,
	DB_GET_PLANS,
	DB_PUT_COMMIT,
	DB_PUT_ROUTE,
	DB_PUT_ORDER,
	DB_PUT_REDUCTION,
	DB_LAST_COMMIT,
	DB_GET_COMMIT,
	DB_GET_COMMITS,
	DB_GET_ROUTES,
	DB_GET_ORDERS,
	DB_GET_REDUCTIONS,
	DB_PUT_ALIKE,
	DB_GET_ALIKE,
	DB_PUT_COMPUTED,
	DB_GET_COMPUTED,
	DB_GET_DEVICES,
	DB_PUT_HASH,
	DB_DROP_HASH,
	DB_GET_HASHES,
	DB_PUT_TASK,
	DB_GET_TASKS,
	DB_PUT_VALIDATION,
	DB_GET_VALIDATIONS,
	DB_PUT_NOTE,
	DB_GET_NOTES,
	DB_LAST_NOTE,
	DB_THIN_TASKS,
	DB_THIN_MOMENTS,
	DB_PUT_FAULT,
	DB_GET_FAULTS,
	DB_PUT_COMMAND,
	DB_GET_COMMANDS,
	DB_HAVE_TABLE,
	DB_PUT_SHARD,
	DB_GET_SHARDS,
	DB_PUT_RESTORE,
	DB_GET_RESTORES,
	DB_DROP_COMMITS,
	DB_DROP_ROUTES,
	DB_DROP_ORDERS,
	DB_DROP_REDUCTIONS,
	DB_DROP_COMPUTED,
	DB_DROP_ALIKE,
	DB_DROP_HASHES,
	DB_DROP_TASKS,
	DB_DROP_VALIDATIONS,
	DB_DROP_MOMENTS,
	DB_DROP_RESTORES,
	DB_DROP_SHARDS,
	DB_PUT_MOMENT,
	DB_GET_MOMENTS,
	DB_PUT_STATE,
	DB_DROP_STATE,
	DB_GET_STATE,
	DB_STATEMENTS
};

/* What of a commit is often as it was in the one before. */
enum db_part { DB_ROUTES, DB_ORDERS, DB_REDUCTIONS, DB_COMPUTED, DB_PARTS };

/* The newest of it that was written: the iteration, 0 none, and all of its rows as text. */
struct db_written {
	uint64_t iteration;
	char *text;
};

struct store {
	sqlite3 *db;
	sqlite3_stmt *statements[DB_STATEMENTS];
	char *path;       /* of run.db, for messages */
	int lock;         /* the writer's hold on run.lock; -1: a reader */
	int64_t epoch;    /* of this writer, or of the last one as a reader saw it */
	bool sync_full;   /* what PRAGMA synchronous is now */
	struct db_written written[DB_PARTS];
	uint64_t thinned; /* tasks up to this iteration were; UINT64_MAX: to be read first */
	char *reserve;    /* path of what is held back for a full disk */
	bool reserved;    /* it is */
	struct store_run run;
};

struct db_value {
	enum { DB_NULL, DB_INT, DB_REAL, DB_TEXT } kind;
	int64_t i;
	double f;
	const char *t; /* borrowed until the statement has run */
};

static inline struct db_value db_int(int64_t i)
{
	return (struct db_value){ .kind = DB_INT, .i = i };
}

/* All 64 bits, in two's complement. */
static inline struct db_value db_u64(uint64_t u)
{
	return db_int((int64_t)u);
}

static inline struct db_value db_real(double f)
{
	return (struct db_value){ .kind = DB_REAL, .f = f };
}

static inline struct db_value db_text(const char *t)
{
	return (struct db_value){ .kind = t ? DB_TEXT : DB_NULL, .t = t };
}

/* What SQLite's result means, as a negative errno, with the file's name in the message. */
int db_error(struct store *s, int result, struct error *err);

/* Runs a statement that gives no rows. */
int db_run(struct store *s, enum db_statement which, const struct db_value *values, int n,
	   struct error *err);
/* Prepared and bound: step it with db_row until it returns 0, or end early with db_done. */
int db_query(struct store *s, enum db_statement which, const struct db_value *values, int n,
	     sqlite3_stmt **out, struct error *err);
int db_row(struct store *s, sqlite3_stmt *q, struct error *err); /* 1 a row, 0 no more, or < 0 */
/* Ends a query, also before its last row. */
void db_done(sqlite3_stmt *q);

/* A write: db_begin, db_run..., then db_end with the result so far, which commits when rc is 0
 * and rolls back otherwise, and returns what became of it. */
int db_begin(struct store *s, bool durable, struct error *err);
int db_end(struct store *s, int rc, struct error *err);
/* One statement as a transaction of its own. */
int db_write(struct store *s, bool durable, enum db_statement which,
	     const struct db_value *values, int n, struct error *err);

/* A write came to `rc`: true where the disk was full, and is not now, since the reserve was given
 * up: it may be tried once more. */
bool db_again(struct store *s, int rc);

/* Runs several statements from text, as the schema is. */
int db_script(struct store *s, const char *sql, struct error *err);
/* 1, 0 or an error. */
int db_have_table(struct store *s, const char *name, struct error *err);
void db_finalize(struct store *s); /* all statements */

#define DB_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

extern const char db_schema[], db_schema_later[];

/* What was written last is not the newest any more, or was not written. */
void write_forget(struct store *s);

#endif
