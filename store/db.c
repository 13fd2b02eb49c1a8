/* The schema, the table of all SQL statements, and the functions that run them. Every write of the
 * store goes through db_begin, which checks that no other writer has taken over. */
#include "store/db.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/array.h"

/* Columns named wall_us are microseconds since 1970. Identifiers and hashes of 64 bits are kept
 * as signed integers. Lists are text, so that any SQLite shell can read a run. A list of nodes is
 * "0 7 12". A list of counted gradients is "L3 B4". L is a gradient of the loss layer, and B is a
 * gradient of a backward pass. The numbers are microbatches. */
const char db_schema[] =
	"CREATE TABLE run(one INTEGER PRIMARY KEY CHECK(one = 1), name TEXT NOT NULL,"
	" version TEXT NOT NULL, model TEXT NOT NULL, cluster TEXT NOT NULL,"
	" optimizer TEXT NOT NULL, id INTEGER NOT NULL, seed INTEGER NOT NULL,"
	" corpus_hash INTEGER NOT NULL, started_wall_us INTEGER NOT NULL, batch INTEGER NOT NULL,"
	" sequence INTEGER NOT NULL, n_shards INTEGER NOT NULL, per_shard INTEGER NOT NULL,"
	" threads INTEGER NOT NULL);"
	"CREATE TABLE corpus(rank INTEGER PRIMARY KEY, path TEXT NOT NULL);"
	"CREATE TABLE plan(epoch INTEGER PRIMARY KEY, iteration INTEGER NOT NULL,"
	" reason TEXT NOT NULL, path_length INTEGER NOT NULL, plan TEXT NOT NULL,"
	" iteration_s REAL NOT NULL, sync_s REAL NOT NULL);"
	"CREATE TABLE commits(iteration INTEGER PRIMARY KEY, epoch INTEGER NOT NULL,"
	" attempt INTEGER NOT NULL, scale REAL, lr REAL, beta1 REAL, beta2 REAL, eps REAL,"
	" weight_decay REAL, loss REAL, gradient_norm REAL, skipped INTEGER NOT NULL,"
	" iteration_s REAL, predicted_s REAL,"
	" sync_s REAL, real_s REAL, collisions INTEGER NOT NULL, wait_s REAL,"
	" alive INTEGER NOT NULL, path_length INTEGER NOT NULL, rerun INTEGER NOT NULL,"
	" wall_us INTEGER NOT NULL, stack_from INTEGER NOT NULL, wire TEXT NOT NULL,"
	" sum_wire TEXT NOT NULL, visits TEXT NOT NULL);"
	"CREATE TABLE route(iteration INTEGER, microbatch INTEGER, shard INTEGER NOT NULL,"
	" wave INTEGER NOT NULL, attempt INTEGER NOT NULL, nodes TEXT NOT NULL,"
	" stages TEXT NOT NULL, PRIMARY KEY(iteration, microbatch)) WITHOUT ROWID;"
	"CREATE TABLE counted(iteration INTEGER, node INTEGER, stage INTEGER NOT NULL,"
	" items TEXT NOT NULL, PRIMARY KEY(iteration, node)) WITHOUT ROWID;"
	"CREATE TABLE reduction(iteration INTEGER, stage INTEGER, nodes TEXT NOT NULL,"
	" PRIMARY KEY(iteration, stage)) WITHOUT ROWID;"
	"CREATE TABLE hash(iteration INTEGER, stage INTEGER, node INTEGER, hash INTEGER NOT NULL,"
	" PRIMARY KEY(iteration, stage, node)) WITHOUT ROWID;"
	"CREATE TABLE task(id INTEGER PRIMARY KEY, iteration INTEGER NOT NULL,"
	" node INTEGER NOT NULL, microbatch INTEGER NOT NULL, attempt INTEGER NOT NULL,"
	" kind TEXT NOT NULL, counted INTEGER NOT NULL, waited_for INTEGER, arrived_us INTEGER,"
	" start_us INTEGER, end_us INTEGER);"
	"CREATE INDEX task_iteration ON task(iteration);"
	"CREATE TABLE validation(iteration INTEGER PRIMARY KEY, loss REAL, wall_us INTEGER);"
	"CREATE TABLE note(id INTEGER PRIMARY KEY, iteration INTEGER NOT NULL,"
	" wall_us INTEGER NOT NULL, kind TEXT NOT NULL, mark INTEGER NOT NULL, node INTEGER,"
	" text TEXT NOT NULL);"
	"CREATE TABLE fault(id INTEGER PRIMARY KEY, iteration INTEGER NOT NULL,"
	" kind TEXT NOT NULL, node INTEGER, peer INTEGER, factor REAL, ttl_ms INTEGER,"
	" started_wall_us INTEGER, ended_wall_us INTEGER);"
	"CREATE TABLE command(id INTEGER PRIMARY KEY, iteration INTEGER NOT NULL,"
	" wall_us INTEGER NOT NULL, who TEXT NOT NULL, verb TEXT NOT NULL, node INTEGER,"
	" peer INTEGER, value INTEGER, text TEXT NOT NULL, status INTEGER NOT NULL,"
	" reply TEXT NOT NULL, undo TEXT, undone_by INTEGER NOT NULL);"
	"CREATE TABLE state(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
	"INSERT INTO state VALUES('writer-epoch', 0);"
	"CREATE TABLE moment(id INTEGER PRIMARY KEY, writer INTEGER NOT NULL,"
	" iteration INTEGER NOT NULL, at_us INTEGER NOT NULL, wall_us INTEGER NOT NULL,"
	" kind TEXT NOT NULL, node INTEGER, stage INTEGER, value INTEGER, word TEXT NOT NULL,"
	" text TEXT NOT NULL, forward_s REAL, backward_s REAL, loss_s REAL,"
	" device TEXT NOT NULL, host TEXT NOT NULL, name TEXT NOT NULL, place TEXT NOT NULL);"
	"CREATE TABLE shard(iteration INTEGER, stage INTEGER, node INTEGER,"
	" host TEXT NOT NULL, hash INTEGER NOT NULL, bytes INTEGER NOT NULL,"
	" wall_us INTEGER NOT NULL, PRIMARY KEY(iteration, stage, node)) WITHOUT ROWID;"
	"CREATE TABLE restore(id INTEGER PRIMARY KEY, iteration INTEGER NOT NULL,"
	" last INTEGER NOT NULL, stage INTEGER NOT NULL, node INTEGER NOT NULL,"
	" hash INTEGER NOT NULL, wall_us INTEGER NOT NULL, from1 INTEGER, weight1 REAL,"
	" from2 INTEGER, weight2 REAL);"
	"CREATE TABLE computed(iteration INTEGER, node INTEGER,"
	" device TEXT NOT NULL, PRIMARY KEY(iteration, node)) WITHOUT ROWID;"
	/* A part of a commit that equals an earlier commit's part is not written again. Instead,
	 * the table `alike` has a row for the iteration. For each part, the row names the
	 * iteration whose rows hold the part. */
	"CREATE TABLE alike(iteration INTEGER PRIMARY KEY, route INTEGER NOT NULL,"
	" counted INTEGER NOT NULL, reduction INTEGER NOT NULL, computed INTEGER NOT NULL);";

static const char *const texts[DB_STATEMENTS] = {
	[DB_BEGIN] = "BEGIN IMMEDIATE",
	[DB_COMMIT] = "COMMIT",
	[DB_ROLLBACK] = "ROLLBACK",
	[DB_SYNC_FULL] = "PRAGMA synchronous = FULL",
	[DB_SYNC_NORMAL] = "PRAGMA synchronous = NORMAL",
	[DB_EPOCH] = "SELECT value FROM state WHERE key = 'writer-epoch'",
	[DB_NEXT_EPOCH] = "UPDATE state SET value = value + 1 WHERE key = 'writer-epoch'",
	[DB_PUT_RUN] = "INSERT INTO run VALUES(1,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
	[DB_PUT_CORPUS] = "INSERT INTO corpus VALUES(?,?)",
	[DB_GET_RUN] = "SELECT name, version, model, cluster, optimizer, id, seed, corpus_hash,"
		       " started_wall_us, batch, sequence, n_shards, per_shard, threads,"
		       " (SELECT count(*) FROM corpus),"
		       " (SELECT value FROM state WHERE key = '=wire'),"
		       " (SELECT value FROM state WHERE key = '=hash'),"
		       " (SELECT value FROM state WHERE key = '=sum_wire') FROM run",
	[DB_GET_CORPUS] = "SELECT path FROM corpus ORDER BY rank",
	[DB_SET_HASH] = "UPDATE run SET corpus_hash = ?",
	[DB_SET_CLUSTER] = "UPDATE run SET cluster = ?",
	[DB_SET_STAGES] = "UPDATE run SET model = ?, batch = ?, n_shards = ?,"
			  " per_shard = ?",
	[DB_SET_ID] = "UPDATE run SET id = ?",
	[DB_PUT_PLAN] = "INSERT INTO plan VALUES(?,?,?,?,?,?,?)",
	[DB_GET_PLANS] = "SELECT epoch, iteration, reason, path_length, plan, iteration_s, sync_s"
			 " FROM plan WHERE epoch >= ? ORDER BY epoch",
	[DB_PUT_COMMIT] = "INSERT INTO commits"
			  " VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
	[DB_PUT_ROUTE] = "INSERT INTO route VALUES(?,?,?,?,?,?,?)",
	[DB_PUT_ORDER] = "INSERT INTO counted VALUES(?,?,?,?)",
	[DB_PUT_REDUCTION] = "INSERT INTO reduction VALUES(?,?,?)",
	[DB_LAST_COMMIT] = "SELECT max(iteration) FROM commits",
	[DB_LAST_SCRIPTED] = "SELECT max(iteration) FROM command WHERE who = '" STORE_SCRIPT "'",
	[DB_VISITED] = "SELECT count(*) FROM commits WHERE path_length > ? OR stack_from <> 0",
	[DB_GET_COMMIT] = "SELECT * FROM commits WHERE iteration = ?",
	[DB_GET_COMMITS] = "SELECT * FROM commits WHERE iteration BETWEEN ? AND ?"
			   " ORDER BY iteration",
	[DB_GET_ROUTES] = "SELECT microbatch, shard, wave, attempt, nodes, stages FROM route"
			  " WHERE iteration = ? ORDER BY microbatch",
	[DB_GET_ORDERS] = "SELECT node, stage, items FROM counted WHERE iteration = ?"
			  " ORDER BY node",
	[DB_GET_REDUCTIONS] = "SELECT stage, nodes FROM reduction WHERE iteration = ?"
			      " ORDER BY stage",
	[DB_PUT_ALIKE] = "INSERT INTO alike VALUES(?,?,?,?,?)",
	[DB_GET_ALIKE] = "SELECT route, counted, reduction, computed FROM alike"
			 " WHERE iteration = ?",
	[DB_PUT_COMPUTED] = "INSERT INTO computed VALUES(?,?,?)",
	[DB_GET_COMPUTED] = "SELECT node, device FROM computed WHERE iteration = ? ORDER BY node",
	[DB_GET_DEVICES] = "SELECT device, count(DISTINCT node) FROM computed GROUP BY device"
			   " ORDER BY 2 DESC, 1",
	[DB_PUT_HASH] = "INSERT OR IGNORE INTO hash VALUES(?,?,?,?)",
	[DB_DROP_HASH] = "DELETE FROM hash WHERE iteration = ? AND stage = ? AND node = ?",
	[DB_GET_HASHES] = "SELECT iteration, stage, node, hash FROM hash WHERE iteration = ?"
			  " ORDER BY stage, node",
	[DB_PUT_TASK] = "INSERT INTO task VALUES(NULL,?,?,?,?,?,?,?,?,?,?)",
	[DB_GET_TASKS] = "SELECT iteration, node, microbatch, attempt, kind, counted, waited_for,"
			 " arrived_us, start_us, end_us FROM task WHERE iteration = ? ORDER BY id",
	[DB_PUT_VALIDATION] = "INSERT OR REPLACE INTO validation VALUES(?,?,?)",
	[DB_GET_VALIDATIONS] = "SELECT iteration, loss, wall_us FROM validation ORDER BY 1",
	[DB_PUT_NOTE] = "INSERT INTO note VALUES(NULL,?,?,?,?,?,?)",
	[DB_GET_NOTES] = "SELECT id, iteration, wall_us, kind, mark, node, text FROM note"
			 " ORDER BY id",
	[DB_LAST_NOTE] = "SELECT max(id) FROM note",
	[DB_THIN_TASKS] = "DELETE FROM task WHERE iteration > ? AND iteration <= ?"
			  " AND iteration % ? <> 0",
	[DB_THIN_MOMENTS] = "DELETE FROM moment WHERE kind IN ('phase', 'commit', 'gpu', 'device')"
			    " AND iteration <= ? AND iteration % ? <> 0",
	[DB_PUT_FAULT] = "INSERT OR REPLACE INTO fault VALUES(?,?,?,?,?,?,?,?,?)",
	[DB_GET_FAULTS] = "SELECT * FROM fault ORDER BY id",
	[DB_PUT_COMMAND] = "INSERT OR REPLACE INTO command VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)",
	[DB_PUT_SHARD] = "INSERT OR REPLACE INTO shard VALUES(?,?,?,?,?,?,?)",
	[DB_GET_SHARDS] = "SELECT * FROM shard ORDER BY iteration DESC, stage, node",
	[DB_PUT_RESTORE] = "INSERT INTO restore VALUES(NULL, ?1,"
			   " (SELECT max(?2, coalesce(max(last), 0)) FROM restore),"
			   " ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
	[DB_GET_RESTORES] = "SELECT iteration, last, stage, node, hash, wall_us, from1, weight1,"
			    " from2, weight2 FROM restore ORDER BY id",
	[DB_DROP_COMMITS] = "DELETE FROM commits WHERE iteration > ?",
	[DB_DROP_ROUTES] = "DELETE FROM route WHERE iteration > ?",
	[DB_DROP_ORDERS] = "DELETE FROM counted WHERE iteration > ?",
	[DB_DROP_REDUCTIONS] = "DELETE FROM reduction WHERE iteration > ?",
	[DB_DROP_ALIKE] = "DELETE FROM alike WHERE iteration > ?",
	[DB_DROP_COMPUTED] = "DELETE FROM computed WHERE iteration > ?",
	[DB_DROP_HASHES] = "DELETE FROM hash WHERE iteration > ?",
	[DB_DROP_TASKS] = "DELETE FROM task WHERE iteration > ?",
	[DB_DROP_VALIDATIONS] = "DELETE FROM validation WHERE iteration > ?",
	[DB_DROP_MOMENTS] = "DELETE FROM moment WHERE iteration > ? AND kind = 'commit'",
	[DB_DROP_RESTORES] = "DELETE FROM restore WHERE iteration > ?",
	[DB_DROP_SHARDS] = "DELETE FROM shard WHERE iteration >= ?",
	[DB_PUT_MOMENT] = "INSERT INTO moment VALUES(NULL,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
	[DB_GET_MOMENTS] = "SELECT * FROM moment WHERE id > ? ORDER BY id",
	[DB_PUT_STATE] = "INSERT OR REPLACE INTO state VALUES('=' || ?, ?)",
	[DB_DROP_STATE] = "DELETE FROM state WHERE key = '=' || ?",
	[DB_GET_STATE] = "SELECT value FROM state WHERE key = '=' || ?",
};

/* Returns the errno of the system's error that caused an SQLite error. If there is no such errno,
 * returns `otherwise`. SQLite reports many causes by the same words "disk I/O error". For some
 * causes SQLite keeps the errno. For the other causes, errno still has the cause. */
static int system_error(struct store *s, int otherwise)
{
	int last_errno = errno, code = sqlite3_system_errno(s->db);

	if (code == 0)
		code = last_errno;
	switch (code) {
	case ENOSPC: case EFBIG: case EDQUOT:
		return ENOSPC;
	case EROFS: case EACCES: case ENOENT: case EMFILE: case ENFILE: case EPERM:
		return code;
	}
	return otherwise;
}

int db_error(struct store *s, int result, struct error *err)
{
	const char *cause = s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(result);
	int code;

	switch (result & 0xff) {
	case SQLITE_FULL:
		return error_set(err, -ENOSPC, "%s: no space left: %s", s->path, cause);
	case SQLITE_IOERR:
		code = system_error(s, EIO);
		if (code == EIO &&
		    (result == SQLITE_IOERR_SHMMAP || result == SQLITE_IOERR_SHMLOCK))
			return error_set(err, -code,
					 "%s: its file system shares no memory between programs, "
					 "or locks no files; take a folder on a local disk",
					 s->path);
		return error_set(err, -code, "%s: cannot be read or written: %s (%s)", s->path,
				 strerror(code), cause);
	case SQLITE_READONLY:
		return error_set(err, -EROFS, "%s: is read-only here: %s", s->path, cause);
	case SQLITE_CANTOPEN: case SQLITE_PERM:
		code = system_error(s, EACCES);
		return error_set(err, -code, "%s: cannot be opened: %s", s->path,
				 strerror(code));
	case SQLITE_NOTADB:
		return error_set(err, -EINVAL, "%s: is not a run of skippipe: %s", s->path, cause);
	case SQLITE_CORRUPT:
		return error_set(err, -EBADMSG, "%s: is damaged: %s", s->path, cause);
	case SQLITE_BUSY: case SQLITE_LOCKED: case SQLITE_PROTOCOL:
		/* If the file system cannot lock files, SQLite gives these results too. The file
		 * system's lock service may return, so a run waits as if another program held the
		 * lock. */
		if (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP)
			return error_set(err, -EBUSY,
					 "%s: its file system locks no files: %s; take a folder on "
					 "a local disk",
					 s->path, strerror(errno));
		if ((result & 0xff) == SQLITE_PROTOCOL)
			break;
		return error_set(err, -EBUSY, "%s: another program has locked it: %s", s->path,
				 cause);
	case SQLITE_NOMEM:
		return error_set(err, -ENOMEM, "%s: out of memory", s->path);
	case SQLITE_TOOBIG:
		return error_set(err, -EINVAL, "%s: a text is too long", s->path);
	case SQLITE_CONSTRAINT:
		code = result == SQLITE_CONSTRAINT_PRIMARYKEY || result == SQLITE_CONSTRAINT_ROWID
			       ? EEXIST
			       : EINVAL;
		return error_set(err, -code, "%s: %s", s->path, cause);
	}
	return error_set(err, -EIO, "%s: %s", s->path, cause);
}

static int bind_value(sqlite3_stmt *q, int at, const struct db_value *v)
{
	switch (v->kind) {
	case DB_NULL: return sqlite3_bind_null(q, at);
	case DB_INT: return sqlite3_bind_int64(q, at, v->i);
	case DB_REAL: return sqlite3_bind_double(q, at, v->f);
	case DB_TEXT: return sqlite3_bind_text(q, at, v->t, -1, SQLITE_STATIC);
	}
	return SQLITE_MISUSE;
}

int db_query(struct store *s, enum db_statement which, const struct db_value *values, int n,
	     sqlite3_stmt **out, struct error *err)
{
	sqlite3_stmt **q = &s->statements[which];
	int result;

	if (!*q) {
		result = sqlite3_prepare_v3(s->db, texts[which], -1, SQLITE_PREPARE_PERSISTENT, q,
					    NULL);
		if (result != SQLITE_OK)
			return db_error(s, result, err);
	}
	assert(sqlite3_bind_parameter_count(*q) == n);
	for (int i = 0; i < n; i++) {
		result = bind_value(*q, i + 1, &values[i]);
		if (result != SQLITE_OK) {
			db_done(*q);
			return db_error(s, result, err);
		}
	}
	*out = *q;
	return 0;
}

int db_row(struct store *s, sqlite3_stmt *q, struct error *err)
{
	int result;

	errno = 0;
	result = sqlite3_step(q);
	if (result == SQLITE_ROW)
		return 1;
	if (result == SQLITE_DONE) {
		db_done(q);
		return 0;
	}
	result = db_error(s, result, err);
	db_done(q);
	return result;
}

void db_done(sqlite3_stmt *q)
{
	sqlite3_reset(q);
	sqlite3_clear_bindings(q);
}

/* ---- statements that wait for the lock ---- */

enum {
	DEFERRED_MOST = 64 << 20 /* limit of the memory of deferred statements, in bytes */
};

static void free_deferred(struct db_deferred *d, size_t from)
{
	while (d->n > from) {
		struct db_statement_of *q = &d->list[--d->n];

		for (int i = 0; i < q->n; i++)
			free((char *)q->values[i].t);
		free(q->values);
	}
	if (d->n == 0)
		d->bytes = 0;
}

/* Keeps a copy of the statement and its values, to be run later. */
static void defer(struct store *s, enum db_statement which, const struct db_value *values, int n)
{
	struct db_deferred *d = &s->deferred;
	struct db_statement_of q = { which, n, alloc_array((size_t)n, sizeof(*values)) };

	d->bytes += sizeof(q) + (size_t)n * sizeof(*values);
	for (int i = 0; i < n; i++) {
		q.values[i] = values[i];
		if (values[i].kind != DB_TEXT) {
			q.values[i].t = NULL;
			continue;
		}
		q.values[i].t = alloc_string(values[i].t);
		d->bytes += strlen(values[i].t) + 1;
	}
	array_reserve(&d->list, &d->room, d->n + 1, sizeof(*d->list));
	d->list[d->n++] = q;
}

/* Runs the deferred statements. If the database refuses a row as a duplicate or as invalid, the
 * function drops the row, because the caller that wrote the row has continued and cannot handle
 * the error. */
static int run_deferred(struct store *s, struct error *err)
{
	int rc = 0;

	for (size_t i = 0; i < s->deferred.n && rc == 0; i++) {
		const struct db_statement_of *q = &s->deferred.list[i];

		rc = db_run(s, q->which, q->values, q->n, err);
		if (rc == -EEXIST || rc == -EINVAL)
			rc = 0;
	}
	return rc;
}

void db_wait(struct store *s, int wait_ms)
{
	sqlite3_busy_timeout(s->db, wait_ms);
}

/* Records whether another program has locked the file. The other program may hold the lock for a
 * long time. Therefore writes to a locked file fail at once and do not wait. */
static void set_locked(struct store *s, bool is_locked)
{
	s->is_locked = is_locked;
	db_wait(s, is_locked ? 0 : DB_WAIT_MS);
}

bool store_is_locked(const struct store *s)
{
	return s->is_locked;
}

int store_unlocked(struct store *s, struct error *err)
{
	int rc = db_begin(s, s->is_durable, err);

	if (rc == 0)
		rc = db_end(s, 0, err);
	return rc != 0 ? rc : s->is_locked ? -EBUSY : 0;
}

int db_run(struct store *s, enum db_statement which, const struct db_value *values, int n,
	   struct error *err)
{
	sqlite3_stmt *q;
	int rc;

	if (s->deferred.is_open) {
		defer(s, which, values, n);
		return 0;
	}
	rc = db_query(s, which, values, n, &q, err);
	if (rc != 0)
		return rc;
	rc = db_row(s, q, err);
	if (rc > 0) /* a pragma answers with a row */
		db_done(q);
	return rc < 0 ? rc : 0;
}

/* Checks that the file still has the epoch of this writer. A different epoch shows that another
 * writer has taken over. The flock alone cannot show this on file systems where a flock does not
 * reach other hosts. */
static int check_epoch(struct store *s, struct error *err)
{
	sqlite3_stmt *q;
	int64_t now;
	int rc = db_query(s, DB_EPOCH, NULL, 0, &q, err);

	if (rc != 0)
		return rc;
	rc = db_row(s, q, err);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return error_set(err, -EBADMSG, "%s: is damaged: no writer's epoch", s->path);
	now = sqlite3_column_int64(q, 0);
	db_done(q);
	if (now != s->epoch)
		return error_set(err, -ESTALE,
				 "%s: another controller has taken over this run (epoch %lld, "
				 "ours %lld)",
				 s->path, (long long)now, (long long)s->epoch);
	return 0;
}

int db_begin(struct store *s, bool durable, struct error *err)
{
	int rc;

	if (s->lock < 0)
		return error_set(err, -EROFS, "%s: is open for reading only", s->path);
	if (durable != s->is_durable) {
		rc = db_run(s, durable ? DB_SYNC_FULL : DB_SYNC_NORMAL, NULL, 0, err);
		if (rc != 0)
			return rc;
		s->is_durable = durable;
	}
	rc = db_run(s, DB_BEGIN, NULL, 0, err);
	if (rc == 0 || rc == -EBUSY)
		set_locked(s, rc == -EBUSY);
	if (rc == -EBUSY && !durable && s->deferred.bytes < DEFERRED_MOST) {
		s->deferred.is_open = true;
		s->deferred.begun = s->deferred.n;
		return 0;
	}
	if (rc != 0)
		return rc;
	rc = check_epoch(s, err);
	if (rc == 0)
		rc = run_deferred(s, err);
	return rc == 0 ? 0 : db_end(s, rc, err);
}

int db_end(struct store *s, int rc, struct error *err)
{
	if (s->deferred.is_open) {
		s->deferred.is_open = false;
		if (rc != 0)
			free_deferred(&s->deferred, s->deferred.begun);
		return rc;
	}
	if (rc == 0)
		rc = db_run(s, DB_COMMIT, NULL, 0, err);
	if (rc == 0)
		free_deferred(&s->deferred, 0);
	/* SQLite itself rolls back after some errors. */
	if (rc != 0 && !sqlite3_get_autocommit(s->db))
		db_run(s, DB_ROLLBACK, NULL, 0, NULL);
	return rc;
}

int db_write(struct store *s, bool durable, enum db_statement which,
	     const struct db_value *values, int n, struct error *err)
{
	int rc;

	do {
		rc = db_begin(s, durable, err);
		if (rc == 0)
			rc = db_end(s, db_run(s, which, values, n, err), err);
	} while (db_again(s, rc));
	return rc;
}

bool db_again(struct store *s, int rc)
{
	if (rc != -ENOSPC || !s->has_reserve)
		return false;
	s->has_reserve = false;
	return unlink(s->reserve_path) == 0;
}

int db_script(struct store *s, const char *sql, struct error *err)
{
	int result;

	errno = 0;
	result = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
	return result == SQLITE_OK ? 0 : db_error(s, result, err);
}

void db_finalize(struct store *s)
{
	for (int i = 0; i < DB_STATEMENTS; i++) {
		sqlite3_finalize(s->statements[i]);
		s->statements[i] = NULL;
	}
	free_deferred(&s->deferred, 0);
	free(s->deferred.list);
	s->deferred.list = NULL;
}
