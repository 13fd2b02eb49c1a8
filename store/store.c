/* Creates, opens, locks and closes the record of a run. A record is created under another name and
 * then renamed, so that a crash leaves either a complete record or none. The functions that write
 * and read rows are in write.c, read.c and restore.c. */
#include "store/store.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "store/db.h"

enum {
	LOCK_TRIES = 5,
	APPLICATION = 0x534b5052, /* "SKPR", the application id in the file's header */
	/* Time for which a program waits when it opens or closes the store while another program
	 * has locked the file. At any other time, a statement waits at most DB_WAIT_MS. */
	OPEN_BUSY_MS = 10000,
	CLOSE_BUSY_MS = 1000
};

static void free_run(struct store_run *r)
{
	for (size_t i = 0; i < r->n_corpus; i++)
		free((char *)r->corpus[i]);
	free((char **)r->corpus);
	free((char *)r->name);
	free((char *)r->version);
	free((char *)r->model);
	free((char *)r->cluster);
	free((char *)r->optimizer);
	free((char *)r->hash);
	*r = (struct store_run){ 0 };
}

void store_close(struct store *s)
{
	if (!s)
		return;
	if (s->db && s->deferred.n > 0) {
		db_wait(s, CLOSE_BUSY_MS);
		store_unlocked(s, NULL);
	}
	if (s->db) {
		db_finalize(s);
		sqlite3_close(s->db);
	}
	if (s->has_reserve)
		unlink(s->reserve_path);
	if (s->lock >= 0)
		close(s->lock);
	free(s->reserve_path);
	write_forget(s);
	free_run(&s->run);
	free(s->path);
	free(s);
}

/* If a path begins with "file:", SQLite may take the text for a URI, and use only a part of it as
 * the path. The prefix "./" prevents this. */
static struct store *store_new(const char *folder)
{
	struct store *s = alloc_new(sizeof(*s));

	s->path = alloc_format("%s%s/run.db", strncmp(folder, "file:", 5) == 0 ? "./" : "", folder);
	s->reserve_path = alloc_format("%s/run.reserve", folder);
	s->lock = -1;
	s->thinned_to = UINT64_MAX;
	return s;
}

bool store_reserved(const struct store *s)
{
	return s->has_reserve;
}

int store_reserve(struct store *s, struct error *err)
{
	int fd, code;

	if (s->has_reserve)
		return 0;
	fd = open(s->reserve_path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_set(err, -errno, "%s: %s", s->reserve_path, strerror(errno));
	do
		code = posix_fallocate(fd, 0, STORE_RESERVE);
	while (code == EINTR);
	close(fd);
	s->has_reserve = code == 0;
	if (s->has_reserve)
		return 0;
	unlink(s->reserve_path);
	code = code == EDQUOT || code == EFBIG ? ENOSPC : code;
	return error_set(err, -code, "%s: %d MiB cannot be reserved: %s", s->reserve_path,
			 STORE_RESERVE >> 20, strerror(code));
}

/* If a dead writer has left its reserve file (store_reserve), notes that there is a reserve. */
static void take_reserve(struct store *s)
{
	struct stat st;

	s->has_reserve = lstat(s->reserve_path, &st) == 0 && S_ISREG(st.st_mode);
}

static int lock_refused(const char *path, int lock, struct error *err)
{
	char pid[32] = "";
	ssize_t n = pread(lock, pid, sizeof(pid) - 1, 0);

	pid[n < 0 ? 0 : n] = '\0';
	pid[strcspn(pid, "\n")] = '\0';
	return error_set(
		err, -EBUSY,
		"%s: the run has a controller already (process %s); there can be only one",
		path, *pid ? pid : "unknown");
}

/* Tests the writer's lock by taking a shared lock, which is released at once. */
bool store_has_writer(const char *folder)
{
	char *path = alloc_format("%s/run.lock", folder);
	int lock = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	bool held = lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;

	if (lock >= 0)
		close(lock);
	free(path);
	return held;
}

/* Takes the writer's lock. A process that only tests the lock (store_has_writer) holds it for a
 * moment, so the lock is tried more than once. */
static int take_flock(int lock)
{
	static const struct timespec pause = { .tv_nsec = 20000000 };
	int rc = flock(lock, LOCK_EX | LOCK_NB);

	for (int i = 0; rc != 0 && errno == EWOULDBLOCK && i < LOCK_TRIES; i++) {
		nanosleep(&pause, NULL);
		rc = flock(lock, LOCK_EX | LOCK_NB);
	}
	return rc;
}

/* The kernel releases the lock when its holder dies in any way. The lock file is never deleted,
 * because two processes could then hold locks on two files of the same name. */
static int take_lock(struct store *s, const char *folder, struct error *err)
{
	char *path = alloc_format("%s/run.lock", folder);
	int lock, rc = 0;

	lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (lock < 0)
		rc = error_set(err, -errno, "%s: %s", path, strerror(errno));
	else if (take_flock(lock) != 0)
		rc = errno == EWOULDBLOCK
			     ? lock_refused(path, lock, err)
			     : error_set(err, -errno,
					 "%s: its file system locks no files: %s; take a folder on "
					 "a local disk",
					 path, strerror(errno));
	if (rc != 0) {
		if (lock >= 0)
			close(lock);
	} else {
		/* The process id is for error messages only, so a failed write does not matter. */
		if (ftruncate(lock, 0) == 0)
			dprintf(lock, "%ld\n", (long)getpid());
		s->lock = lock;
	}
	free(path);
	return rc;
}

static int pragma_number(struct store *s, const char *sql, int64_t *out, struct error *err)
{
	sqlite3_stmt *q;
	int result = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);

	if (result == SQLITE_OK)
		result = sqlite3_step(q);
	if (result == SQLITE_ROW) {
		*out = sqlite3_column_int64(q, 0);
		sqlite3_finalize(q);
		return 0;
	}
	result = result == SQLITE_DONE
			 ? error_set(err, -EBADMSG, "%s: is damaged: no answer to %s", s->path,
				     sql)
			 : db_error(s, result, err);
	sqlite3_finalize(q);
	return result;
}

/* Sets a file's permissions to 0600 before it is written, because the umask, or copying the file,
 * may have set other permissions. SQLite gives the same permissions to the journal and WAL files
 * in the same folder. */
static void make_private(const char *path, bool create)
{
	int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | (create ? O_CREAT : 0), 0600);

	if (fd < 0)
		return;
	(void)!fchmod(fd, 0600);
	close(fd);
}

/* Checks the length of the path, because SQLite refuses a long path without giving a reason. The
 * name of SQLite's journal is 8 bytes longer than the path. */
static int check_length(const struct store *s, struct error *err)
{
	const size_t most = (size_t)sqlite3_vfs_find(NULL)->mxPathname - strlen("-journal");
	char *folder = alloc_format("%.*s", (int)(strrchr(s->path, '/') - s->path), s->path);
	char *full = realpath(folder, NULL);
	size_t n = (full ? strlen(full) : strlen(folder)) + strlen(strrchr(s->path, '/'));

	free(full);
	free(folder);
	if (n <= most)
		return 0;
	return error_set(err, -ENAMETOOLONG,
			 "%s: this path is %zu bytes long, and a record's at most %zu: choose a "
			 "folder with a shorter path",
			 s->path, n, most);
}

static int open_file(struct store *s, int flags, struct error *err)
{
	int result = check_length(s, err);

	if (result != 0)
		return result;
	if (flags & SQLITE_OPEN_READWRITE)
		make_private(s->path, flags & SQLITE_OPEN_CREATE);
	result = sqlite3_open_v2(s->path, &s->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
	if (result != SQLITE_OK)
		return db_error(s, result, err);
	sqlite3_extended_result_codes(s->db, 1);
	sqlite3_busy_timeout(s->db, OPEN_BUSY_MS);
	return 0;
}

static int check_schema(struct store *s, struct error *err)
{
	int64_t application, version;
	int rc = pragma_number(s, "PRAGMA application_id", &application, err);

	if (rc == 0)
		rc = pragma_number(s, "PRAGMA user_version", &version, err);
	if (rc != 0)
		return rc;
	if (application != APPLICATION)
		return error_set(err, -EINVAL, "%s: is not a run of skippipe", s->path);
	if (version != STORE_VERSION)
		return error_set(err, -EPROTONOSUPPORT,
				 "%s: has schema version %lld, this program reads version %d",
				 s->path, (long long)version, STORE_VERSION);
	return 0;
}

static char *column_copy(sqlite3_stmt *q, int column)
{
	const unsigned char *text = sqlite3_column_text(q, column);

	return text ? alloc_string((const char *)text) : NULL;
}

static int read_corpus(struct store *s, size_t n, struct error *err)
{
	const char **paths = alloc_array(n, sizeof(*paths));
	sqlite3_stmt *q;
	int rc;

	s->run.corpus = paths;
	rc = db_query(s, DB_GET_CORPUS, NULL, 0, &q, err);
	if (rc != 0)
		return rc;
	while ((rc = db_row(s, q, err)) == 1 && s->run.n_corpus < n) {
		paths[s->run.n_corpus] = column_copy(q, 0);
		if (!paths[s->run.n_corpus]) {
			db_done(q);
			return error_set(err, -EBADMSG, "%s: is damaged: a corpus without a path",
					 s->path);
		}
		s->run.n_corpus++;
	}
	if (rc == 1)
		db_done(q);
	return rc < 0 ? rc : 0;
}

static int read_format(struct store *s, const char *name, bool of_sums, enum tensor_format *format,
		       struct error *err)
{
	if (name && tensor_format_parse(name, format) == 0 &&
	    (of_sums ? tensor_format_suits_sums(*format)
		     : tensor_format_suits_activations(*format)))
		return 0;
	return error_set(err, -EPROTONOSUPPORT, "%s: its %s travel as \"%s\": expected fp32, %s",
			 s->path, of_sums ? "sums" : "activations", name ? name : "",
			 of_sums ? "q8, q6 or q4" : "bf16, q8 or q6");
}

int db_formats(struct store *s, sqlite3_stmt *q, int wire, int sum_wire,
	       struct tensor_formats *formats, struct error *err)
{
	int rc = read_format(s, (const char *)sqlite3_column_text(q, wire), false, &formats->wire,
			     err);

	return rc ? rc
		  : read_format(s, (const char *)sqlite3_column_text(q, sum_wire), true,
				&formats->sum_wire, err);
}

/* Reads the properties of the run that store_create has written. */
static int read_run(struct store *s, struct error *err)
{
	struct store_run *r = &s->run;
	sqlite3_stmt *q;
	size_t n_corpus;
	int rc = db_query(s, DB_GET_RUN, NULL, 0, &q, err);

	if (rc == 0)
		rc = db_row(s, q, err);
	if (rc == 0)
		return error_set(err, -EBADMSG,
				 "%s: is damaged: the row of the run is missing", s->path);
	if (rc < 0)
		return rc;
	r->name = column_copy(q, 0);
	r->version = column_copy(q, 1);
	r->model = column_copy(q, 2);
	r->cluster = column_copy(q, 3);
	r->optimizer = column_copy(q, 4);
	r->hash = column_copy(q, 16);
	r->id = (uint64_t)sqlite3_column_int64(q, 5);
	r->seed = (uint64_t)sqlite3_column_int64(q, 6);
	r->corpus_hash = (uint64_t)sqlite3_column_int64(q, 7);
	r->started_wall_us = sqlite3_column_int64(q, 8);
	r->batch = (uint32_t)sqlite3_column_int64(q, 9);
	r->sequence = (uint32_t)sqlite3_column_int64(q, 10);
	r->n_shards = (uint32_t)sqlite3_column_int64(q, 11);
	r->per_shard = (uint32_t)sqlite3_column_int64(q, 12);
	r->threads = (uint32_t)sqlite3_column_int64(q, 13);
	n_corpus = (size_t)sqlite3_column_int64(q, 14);
	rc = db_formats(s, q, 15, 17, &r->formats, err);
	db_done(q);
	if (rc != 0)
		return rc;
	if (!r->name || !r->version || !r->model || !r->cluster || !r->optimizer ||
	    !r->hash)
		return error_set(err, -EBADMSG, "%s: is damaged: the row of the run is incomplete",
				 s->path);
	return read_corpus(s, n_corpus, err);
}

static int read_epoch(struct store *s, struct error *err)
{
	sqlite3_stmt *q;
	int rc = db_query(s, DB_EPOCH, NULL, 0, &q, err);

	if (rc == 0)
		rc = db_row(s, q, err);
	if (rc == 0)
		return error_set(err, -EBADMSG, "%s: is damaged: no writer's epoch", s->path);
	if (rc < 0)
		return rc;
	s->epoch = sqlite3_column_int64(q, 0);
	db_done(q);
	return 0;
}

static int put_state(struct store *s, const char *key, const char *value, struct error *err)
{
	struct db_value v[] = { db_text(key), db_text(value) };

	return db_run(s, DB_PUT_STATE, v, DB_COUNT(v), err);
}

static int write_run(struct store *s, const struct store_run *r, struct error *err)
{
	struct db_value v[] = {
		db_text(r->name),     db_text(r->version),    db_text(r->model),
		db_text(r->cluster),  db_text(r->optimizer),  db_u64(r->id),
		db_u64(r->seed),      db_u64(r->corpus_hash), db_int(r->started_wall_us),
		db_int(r->batch),     db_int(r->sequence),    db_int(r->n_shards),
		db_int(r->per_shard), db_int(r->threads)
	};
	int rc = db_run(s, DB_PUT_RUN, v, DB_COUNT(v), err);

	for (size_t i = 0; rc == 0 && i < r->n_corpus; i++) {
		struct db_value c[] = { db_int((int64_t)i), db_text(r->corpus[i]) };

		rc = db_run(s, DB_PUT_CORPUS, c, DB_COUNT(c), err);
	}
	if (rc == 0)
		rc = put_state(s, "wire", tensor_format_name(r->formats.wire), err);
	if (rc == 0)
		rc = put_state(s, "sum_wire", tensor_format_name(r->formats.sum_wire), err);
	if (rc == 0)
		rc = put_state(s, "hash", r->hash, err);
	if (rc == 0 && r->origin)
		rc = put_state(s, "origin", r->origin, err);
	if (rc == 0 && r->options)
		rc = put_state(s, "options", r->options, err);
	return rc;
}

/* Writes the schema and the run's properties to a new file. */
static int make_schema(struct store *s, const struct store_run *run, struct error *err)
{
	char marks[96];
	int rc;

	snprintf(marks, sizeof(marks), "PRAGMA application_id = %d; PRAGMA user_version = %d",
		 APPLICATION, STORE_VERSION);
	rc = db_script(s, "PRAGMA synchronous = FULL; BEGIN IMMEDIATE", err);
	if (rc != 0)
		return rc;
	rc = db_script(s, db_schema, err);
	if (rc == 0)
		rc = write_run(s, run, err);
	if (rc == 0)
		rc = db_run(s, DB_NEXT_EPOCH, NULL, 0, err);
	if (rc == 0)
		rc = db_script(s, marks, err);
	return db_end(s, rc, err);
}

static void close_file(struct store *s)
{
	db_finalize(s);
	sqlite3_close(s->db);
	s->db = NULL;
}

/* Removes the file of this name and SQLite's files in the same folder, if a failed or killed
 * creation has left them. The caller holds the lock. */
static void remove_file(struct store *s, const char *name)
{
	static const char *const tails[] = { "", "-journal", "-wal", "-shm" };

	close_file(s);
	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		char *path = alloc_format("%s%s", name, tails[i]);

		unlink(path);
		free(path);
	}
}

/* Creates the file under a temporary name and renames it when it is complete. Thus run.db exists if
 * and only if the run does. */
static int make_file(struct store *s, const char *temporary, const struct store_run *run,
		     struct error *err)
{
	char *name = s->path;
	int rc;

	/* Until the rename, error messages name the temporary path. */
	s->path = (char *)temporary;
	rc = open_file(s, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
	if (rc == 0)
		rc = make_schema(s, run, err);
	close_file(s);
	s->path = name;
	return rc == 0 ? file_move(temporary, name, err) : rc;
}

static int open_to_write(struct store *s, struct error *err)
{
	int rc = open_file(s, SQLITE_OPEN_READWRITE, err);

	if (rc == 0)
		rc = check_schema(s, err);
	if (rc == 0)
		rc = db_script(s, "PRAGMA journal_mode = WAL", err);
	return rc;
}

int store_create(struct store **out, const char *folder, const struct store_run *run,
		 struct error *err)
{
	struct store *s;
	struct stat st;
	char *temporary = NULL;
	int rc = file_make_folder(folder, err);

	if (rc != 0)
		return rc;
	s = store_new(folder);
	rc = take_lock(s, folder, err);
	if (rc != 0)
		goto close;
	if (stat(s->path, &st) == 0) {
		rc = error_set(err, -EEXIST,
			       "%s: there is a run in this folder already (--resume continues it)",
			       s->path);
		goto close;
	}
	temporary = alloc_format("%s.new", s->path);
	remove_file(s, temporary);
	rc = make_file(s, temporary, run, err);
	if (rc != 0)
		goto remove;
	rc = open_to_write(s, err);
	if (rc == 0)
		rc = read_epoch(s, err);
	if (rc == 0)
		rc = read_run(s, err);
	if (rc != 0) {
		remove_file(s, s->path);
		goto close;
	}
	free(temporary);
	db_wait(s, DB_WAIT_MS);
	*out = s;
	return 0;

remove:
	remove_file(s, temporary);
close:
	free(temporary);
	store_close(s);
	return rc;
}

/* Checks that the file exists, because SQLite does not report a missing file in plain words. */
static int must_exist(const struct store *s, struct error *err)
{
	struct stat st;

	if (stat(s->path, &st) == 0)
		return 0;
	return error_set(err, -errno, "%s: %s", s->path,
			 errno == ENOENT ? "no run in this folder" : strerror(errno));
}

/* Makes this process the writer by raising the epoch. Raising the epoch also proves at once that
 * the file is writable. */
static int take_epoch(struct store *s, struct error *err)
{
	int rc = db_script(s, "PRAGMA synchronous = FULL; BEGIN IMMEDIATE", err);

	s->is_durable = true;
	if (rc != 0)
		return rc;
	rc = db_run(s, DB_NEXT_EPOCH, NULL, 0, err);
	if (rc == 0)
		rc = read_epoch(s, err);
	return db_end(s, rc, err);
}

int store_resume(struct store **out, const char *folder, struct error *err)
{
	struct store *s = store_new(folder);
	int rc = must_exist(s, err);

	if (rc == 0)
		rc = take_lock(s, folder, err);
	if (rc == 0) {
		take_reserve(s);
		rc = open_to_write(s, err);
	}
	if (rc == 0)
		do
			rc = take_epoch(s, err);
		while (db_again(s, rc));
	if (rc == 0)
		db_wait(s, DB_WAIT_MS);
	if (rc == 0)
		rc = read_run(s, err);
	if (rc != 0) {
		store_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

/* Returns a URI for the path. The URI tells SQLite that the file never changes. */
static char *immutable_uri(const char *path)
{
	static const char tail[] = "?immutable=1";
	char *uri = alloc_new(5 + 3 * strlen(path) + sizeof(tail)), *to = uri;

	to += sprintf(to, "file:");
	for (; *path; path++) {
		unsigned char c = (unsigned char)*path;

		to += sprintf(to, isalnum(c) || strchr("/._-", c) ? "%c" : "%%%02X", c);
	}
	memcpy(to, tail, sizeof(tail));
	return uri;
}

/* Opens a run on a read-only file system. WAL mode needs a writable folder for its index, unless
 * the file does not change. */
static int open_immutable(struct store *s, struct error *err)
{
	char *wal = alloc_format("%s-wal", s->path), *uri;
	struct stat st;
	int rc;

	if (stat(wal, &st) == 0 && st.st_size > 0) {
		rc = error_set(err, -EROFS,
			       "%s: the run was not closed and its folder is read-only here; "
			       "copy the folder",
			       s->path);
		goto free_wal;
	}
	uri = immutable_uri(s->path);
	db_finalize(s);
	sqlite3_close(s->db);
	s->db = NULL;
	rc = sqlite3_open_v2(uri, &s->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
	rc = rc == SQLITE_OK ? 0 : db_error(s, rc, err);
	free(uri);
free_wal:
	free(wal);
	return rc;
}

int store_open(struct store **out, const char *folder, struct error *err)
{
	struct store *s = store_new(folder);
	int rc = must_exist(s, err);

	if (rc == 0)
		rc = open_file(s, SQLITE_OPEN_READONLY, err);
	if (rc == 0)
		rc = check_schema(s, err);
	if (rc == -EROFS || rc == -EACCES || rc == -ENOENT) {
		rc = s->db ? open_immutable(s, err) : rc;
		if (rc == 0)
			rc = check_schema(s, err);
	}
	if (rc == 0)
		rc = read_epoch(s, err);
	if (rc == 0)
		rc = read_run(s, err);
	if (rc != 0) {
		store_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

const struct store_run *store_run_of(const struct store *s)
{
	return &s->run;
}

uint64_t store_writer_epoch(const struct store *s)
{
	return (uint64_t)s->epoch;
}
