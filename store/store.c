/* Opening, locking and closing a run; what is written and read is in write.c and read.c. */
#include "store/store.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "store/db.h"

enum {
	APPLICATION = 0x534b5052, /* "SKPR": says in the file's header whose it is */
	BUSY_MS = 2000 /* how long another program's moment with the file is waited for */
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
	if (s->db) {
		db_finalize(s);
		sqlite3_close(s->db);
	}
	if (s->reserved)
		unlink(s->reserve);
	if (s->lock >= 0)
		close(s->lock);
	free(s->reserve);
	write_forget(s);
	free_run(&s->run);
	free(s->path);
	free(s);
}

static int store_new(struct store **out, const char *folder, struct error *err)
{
	struct store *s = calloc(1, sizeof(*s));

	if (!s || asprintf(&s->path, "%s/run.db", folder) < 0) {
		free(s);
		return error_set(err, -ENOMEM, "%s: out of memory", folder);
	}
	s->lock = -1;
	s->thinned = UINT64_MAX;
	if (asprintf(&s->reserve, "%s/run.reserve", folder) < 0) {
		s->reserve = NULL;
		store_close(s);
		return error_set(err, -ENOMEM, "%s: out of memory", folder);
	}
	*out = s;
	return 0;
}

bool store_reserved(const struct store *s)
{
	return s->reserved;
}

int store_reserve(struct store *s, struct error *err)
{
	int fd, code;

	if (s->reserved)
		return 0;
	fd = open(s->reserve, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_set(err, -errno, "%s: %s", s->reserve, strerror(errno));
	do
		code = posix_fallocate(fd, 0, STORE_RESERVE);
	while (code == EINTR);
	close(fd);
	s->reserved = code == 0;
	if (s->reserved)
		return 0;
	unlink(s->reserve);
	code = code == EDQUOT || code == EFBIG ? ENOSPC : code;
	return error_set(err, -code, "%s: %d MiB cannot be held back: %s", s->reserve,
			 STORE_RESERVE >> 20, strerror(code));
}

/* What a writer that died held back is its successor's. */
static void take_reserve(struct store *s)
{
	struct stat st;

	s->reserved = lstat(s->reserve, &st) == 0 && S_ISREG(st.st_mode);
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

/* The kernel lets go of the lock when its holder dies, however it dies. The file stays:
 * removing it would let two processes hold two files of one name. */
static int take_lock(struct store *s, const char *folder, struct error *err)
{
	char *path;
	int lock, rc = 0;

	if (asprintf(&path, "%s/run.lock", folder) < 0)
		return error_set(err, -ENOMEM, "%s: out of memory", folder);
	lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (lock < 0)
		rc = error_set(err, -errno, "%s: %s", path, strerror(errno));
	else if (flock(lock, LOCK_EX | LOCK_NB) != 0)
		rc = errno == EWOULDBLOCK
			     ? lock_refused(path, lock, err)
			     : error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (rc != 0) {
		if (lock >= 0)
			close(lock);
	} else {
		/* For people only: a full disk may swallow it. */
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
			 ? error_set(err, -EBADMSG, "%s: is damaged: %s gave nothing", s->path,
				     sql)
			 : db_error(s, result, err);
	sqlite3_finalize(q);
	return result;
}

/* Of its owner alone, as all of a run is, whatever the umask; SQLite's own files beside it follow it. */
static int open_file(struct store *s, int flags, struct error *err)
{
	int fd = flags & SQLITE_OPEN_READWRITE
			 ? open(s->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | (flags & SQLITE_OPEN_CREATE ? O_CREAT : 0), 0600)
			 : -1;
	int result;

	if (fd >= 0) {
		(void)!fchmod(fd, 0600); /* begun by an earlier version, and then perhaps another's */
		close(fd);
	}
	result = sqlite3_open_v2(s->path, &s->db, flags | SQLITE_OPEN_NOMUTEX, NULL);

	if (result != SQLITE_OK)
		return db_error(s, result, err);
	sqlite3_extended_result_codes(s->db, 1);
	sqlite3_busy_timeout(s->db, BUSY_MS);
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
	if (version < 1 || version > STORE_VERSION) /* what 2 has beside 1 its next writer makes */
		return error_set(err, -EPROTONOSUPPORT,
				 "%s: has schema version %lld, this program reads up to version %d",
				 s->path, (long long)version, STORE_VERSION);
	return 0;
}

static char *column_copy(sqlite3_stmt *q, int column)
{
	const unsigned char *text = sqlite3_column_text(q, column);

	return text ? strdup((const char *)text) : NULL;
}

static int read_corpus(struct store *s, size_t n, struct error *err)
{
	const char **paths = calloc(n + 1, sizeof(*paths));
	sqlite3_stmt *q;
	int rc;

	if (!paths)
		return error_set(err, -ENOMEM, "%s: out of memory", s->path);
	s->run.corpus = paths;
	rc = db_query(s, DB_GET_CORPUS, NULL, 0, &q, err);
	if (rc != 0)
		return rc;
	while ((rc = db_row(s, q, err)) == 1 && s->run.n_corpus < n) {
		paths[s->run.n_corpus] = column_copy(q, 0);
		if (!paths[s->run.n_corpus]) {
			db_done(q);
			return error_set(err, -ENOMEM, "%s: out of memory", s->path);
		}
		s->run.n_corpus++;
	}
	if (rc == 1)
		db_done(q);
	return rc < 0 ? rc : 0;
}

/* Earlier records do not say: fp32. */
static int read_wire(struct store *s, const char *said, bool *bf16, struct error *err)
{
	*bf16 = said && strcmp(said, "bf16") == 0;
	if (!said || *bf16 || strcmp(said, "fp32") == 0)
		return 0;
	return error_set(err, -EPROTONOSUPPORT, "%s: its activations travel as \"%s\": expected fp32 or bf16",
			 s->path, said);
}

/* The run's row, as store_create wrote it. */
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
				 "%s: is damaged: it does not say what run it is of", s->path);
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
	rc = read_wire(s, (const char *)sqlite3_column_text(q, 15), &r->bf16, err);
	db_done(q);
	if (rc != 0)
		return rc;
	if (!r->name || !r->version || !r->model || !r->cluster || !r->optimizer)
		return error_set(err, -ENOMEM, "%s: out of memory", s->path);
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
		rc = put_state(s, "wire", r->bf16 ? "bf16" : "fp32", err);
	if (rc == 0 && r->hash)
		rc = put_state(s, "hash", r->hash, err);
	if (rc == 0 && r->options)
		rc = put_state(s, "options", r->options, err);
	return rc;
}

/* Schema and run, in a file that nobody knows yet. */
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
		rc = db_script(s, db_schema_later, err);
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

/* What a creation that failed or died has left at this name; the lock is ours. */
static void remove_file(struct store *s, const char *name)
{
	static const char *const tails[] = { "", "-journal", "-wal", "-shm" };

	close_file(s);
	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		char *path;

		if (asprintf(&path, "%s%s", name, tails[i]) < 0)
			continue;
		unlink(path);
		free(path);
	}
}

/* Made aside, whole, then renamed: run.db is there when, and only when, the run is. */
static int make_file(struct store *s, const char *aside, const struct store_run *run,
		     struct error *err)
{
	char *name = s->path;
	int rc;

	s->path = (char *)aside; /* what errors name */
	rc = open_file(s, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
	if (rc == 0)
		rc = make_schema(s, run, err);
	close_file(s);
	s->path = name;
	return rc == 0 ? file_move(aside, name, err) : rc;
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

/* The lock first, then the file under another name: a crash on the way leaves no store that
 * looks whole. Only when the run's row is in it does it get its name. */
int store_create(struct store **out, const char *folder, const struct store_run *run,
		 struct error *err)
{
	struct store *s;
	struct stat st;
	char *aside = NULL;
	int rc = file_make_folder(folder, err);

	if (rc == 0)
		rc = store_new(&s, folder, err);
	if (rc != 0)
		return rc;
	rc = take_lock(s, folder, err);
	if (rc != 0)
		goto close;
	if (stat(s->path, &st) == 0) {
		rc = error_set(err, -EEXIST, "%s: there is a run in this folder already",
			       s->path);
		goto close;
	}
	if (asprintf(&aside, "%s.new", s->path) < 0) {
		aside = NULL;
		rc = error_set(err, -ENOMEM, "%s: out of memory", s->path);
		goto close;
	}
	remove_file(s, aside);
	rc = make_file(s, aside, run, err);
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
	free(aside);
	*out = s;
	return 0;

remove:
	remove_file(s, aside);
close:
	free(aside);
	store_close(s);
	return rc;
}

/* SQLite would wait for the file to appear as its own; a missing run deserves a plain word. */
static int must_exist(const struct store *s, struct error *err)
{
	struct stat st;

	if (stat(s->path, &st) == 0)
		return 0;
	return error_set(err, -errno, "%s: %s", s->path,
			 errno == ENOENT ? "no run in this folder" : strerror(errno));
}

/* Taking the epoch proves at once that the file can be written. */
static int take_epoch(struct store *s, struct error *err)
{
	int rc = db_script(s, "PRAGMA synchronous = FULL; BEGIN IMMEDIATE", err);

	s->sync_full = true;
	if (rc != 0)
		return rc;
	rc = db_run(s, DB_NEXT_EPOCH, NULL, 0, err);
	if (rc == 0)
		rc = read_epoch(s, err);
	if (rc == 0)
		rc = db_script(s, db_schema_later, err);
	return db_end(s, rc, err);
}

int store_resume(struct store **out, const char *folder, struct error *err)
{
	struct store *s;
	int rc = store_new(&s, folder, err);

	if (rc != 0)
		return rc;
	rc = must_exist(s, err);
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
		rc = read_run(s, err);
	if (rc != 0) {
		store_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

/* "file:" and the path with everything but plain characters as %XX. NULL without memory. */
static char *immutable_uri(const char *path)
{
	static const char tail[] = "?immutable=1";
	char *uri = malloc(5 + 3 * strlen(path) + sizeof(tail)), *to = uri;

	if (!uri)
		return NULL;
	to += sprintf(to, "file:");
	for (; *path; path++) {
		unsigned char c = (unsigned char)*path;

		to += sprintf(to, isalnum(c) || strchr("/._-", c) ? "%c" : "%%%02X", c);
	}
	memcpy(to, tail, sizeof(tail));
	return uri;
}

/* WAL mode needs a writable folder for its index, unless nobody writes: then the file may be
 * read as it stands. */
static int open_immutable(struct store *s, struct error *err)
{
	char *wal = NULL, *uri = NULL;
	struct stat st;
	int rc;

	if (asprintf(&wal, "%s-wal", s->path) < 0)
		return error_set(err, -ENOMEM, "%s: out of memory", s->path);
	if (stat(wal, &st) == 0 && st.st_size > 0) {
		rc = error_set(err, -EROFS,
			       "%s: the run was not closed and its folder is read-only here; "
			       "copy the folder",
			       s->path);
		goto free_wal;
	}
	uri = immutable_uri(s->path);
	if (!uri) {
		rc = error_set(err, -ENOMEM, "%s: out of memory", s->path);
		goto free_wal;
	}
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
	struct store *s;
	int rc = store_new(&s, folder, err);

	if (rc != 0)
		return rc;
	rc = must_exist(s, err);
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
