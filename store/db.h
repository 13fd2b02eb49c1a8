/* db.h - the store's access to SQLite: statements by name, values, transactions, error messages.
 *
 * Private to store/. All statements are in one table (db.c). A statement is prepared at its first
 * use and kept.
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
	DB_SET_STAGES,
	DB_SET_ID,
	DB_PUT_PLAN,
	DB_GET_PLANS,
	DB_PUT_COMMIT,
	DB_PUT_ROUTE,
	DB_PUT_ORDER,
	DB_PUT_REDUCTION,
	DB_LAST_COMMIT,
	DB_LAST_SCRIPTED,
	DB_VISITED,
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

/* The parts of a commit. Each part is often equal to the same part of the previous commit. */
enum db_part { DB_ROUTES, DB_ORDERS, DB_REDUCTIONS, DB_COMPUTED, DB_PARTS };

/* The rows that were written last for a part of a commit. The rows are kept as text, so that the
 * next commit can be compared with them. */
struct db_written {
	uint64_t iteration;
	char *text;
};

/* Statements that wait because another program has locked the file. They run in this order after
 * the program has unlocked the file. */
struct db_deferred {
	struct db_statement_of {
		enum db_statement which;
		int n;
		struct db_value *values; /* array of `n` values, owned, with their texts */
	} *list;                         /* the n statements */
	size_t n, room;
	size_t bytes; /* approximate memory of the list and its values */
	/* Length of the list when the open transaction began; a rollback cuts the list to this
	 * length. */
	size_t begun;
	bool is_open; /* a transaction is open, and its statements are deferred */
};

struct store {
	sqlite3 *db;
	sqlite3_stmt *statements[DB_STATEMENTS];
	char *path;          /* path of run.db, for error messages */
	int lock;            /* file descriptor of run.lock, held by the writer; -1: a reader */
	int64_t epoch;       /* epoch of this writer; for a reader, epoch of the newest writer */
	bool is_durable;     /* PRAGMA synchronous is FULL */
	struct db_written written[DB_PARTS];
	bool is_locked; /* at the last write, another program held the lock */
	struct db_deferred deferred;
	/* Newest iteration that store_thin has handled; UINT64_MAX: this number was not read
	 * yet. */
	uint64_t thinned_to;
	char *reserve_path;
	bool has_reserve;
	struct store_run run;
};

struct db_value {
	enum { DB_NULL, DB_INT, DB_REAL, DB_TEXT } kind;
	int64_t i;
	double f;
	const char *t; /* a text, borrowed until the statement has run */
};

static inline struct db_value db_null(void)
{
	return (struct db_value){ .kind = DB_NULL };
}

static inline struct db_value db_int(int64_t i)
{
	return (struct db_value){ .kind = DB_INT, .i = i };
}

/* Keeps all 64 bits, as a signed integer. */
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

/* Translates SQLite's result into a negative errno and a message that names the file. */
int db_error(struct store *s, int result, struct error *err);

/* Reads an iteration's formats; `wire` and `sum_wire` are the numbers of the columns that contain
 * the formats' names. -EPROTONOSUPPORT: a name is unknown. */
int db_formats(struct store *s, sqlite3_stmt *q, int wire, int sum_wire,
	       struct tensor_formats *formats, struct error *err);

/* Runs a statement that returns no rows. */
int db_run(struct store *s, enum db_statement which, const struct db_value *values, int n,
	   struct error *err);
/* Starts a query. The caller calls db_row until it returns 0, or ends early with db_done. */
int db_query(struct store *s, enum db_statement which, const struct db_value *values, int n,
	     sqlite3_stmt **out, struct error *err);
/* Fetches the next row. Returns 1, 0 if there are no more rows, or a negative errno. */
int db_row(struct store *s, sqlite3_stmt *q, struct error *err);
/* Ends a query before its last row. */
void db_done(sqlite3_stmt *q);

/* A transaction consists of a call of db_begin, any number of calls of db_run, and a call of
 * db_end. The caller gives db_end the first error, or 0 if there was none. If rc is 0, db_end
 * commits. If rc is not 0, db_end rolls back. db_end returns the result of the whole transaction.
 *
 * While another program has locked the file, db_begin of a durable transaction fails with -EBUSY.
 * If a transaction need not be durable, its statements are deferred. The first transaction after
 * the file is unlocked runs the deferred statements.
 */
int db_begin(struct store *s, bool durable, struct error *err);
int db_end(struct store *s, int rc, struct error *err);
/* Runs one statement as a transaction of its own. */
int db_write(struct store *s, bool durable, enum db_statement which,
	     const struct db_value *values, int n, struct error *err);

/* Deletes the reserve file (store_reserve) if a write failed with `rc` because the disk is full.
 * Returns true if the file is deleted, so that the caller should repeat the write. */
bool db_again(struct store *s, int rc);

/* Runs the statements of a script, such as the schema. */
int db_script(struct store *s, const char *sql, struct error *err);
/* Frees all prepared statements, and the deferred ones. */
void db_finalize(struct store *s);

/* Time for which a statement waits for the lock if it is the first statement that finds the file
 * locked. The caller is blocked meanwhile. */
enum { DB_WAIT_MS = 500 };
/* Sets the time for which a statement waits while another program holds the file's lock. */
void db_wait(struct store *s, int wait_ms);

#define DB_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

extern const char db_schema[];

/* Forgets which parts of a commit were written last, because a restore has deleted rows. The next
 * commit therefore writes all of its parts. */
void write_forget(struct store *s);

#endif
