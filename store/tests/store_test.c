/* Tests that everything that is written can be read again, that a run can have one writer and
 * many readers at the same time, and that commits have no gaps. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/tests/test.h"
#include "store/db.h"
#include "store/store.h"
#include "store/tests/sample.h"

FOLDER_TEST(the_properties_of_a_run_are_read)
{
	struct folder *f = *state;
	struct store *s = create(f->path);
	const struct store_run *r;
	struct error err;

	store_close(s);
	assert_int_equal(store_open(&s, f->path, &err), 0);
	r = store_run_of(s);
	assert_string_equal(r->name, a_run.name);
	assert_string_equal(r->model, a_run.model);
	assert_true(r->id == a_run.id && r->seed == a_run.seed);
	assert_true(r->corpus_hash == a_run.corpus_hash);
	assert_int_equal(r->per_shard, 6);
	assert_int_equal(r->n_corpus, 2);
	assert_string_equal(r->corpus[1], sample_corpus[1]);
	assert_int_equal(store_writer_epoch(s), 1);
	store_close(s);
}

/* The run's files have permissions 0600, whatever the umask is. If these permissions were
 * changed, the next writer that opens the run restores them. */
FOLDER_TEST(a_run_is_private)
{
	static const char *const names[] = { "run.db", "run.db-wal", "run.db-shm", "run.lock" };
	struct folder *f = *state;
	mode_t mask = umask(0);
	struct store *s = create(f->path);
	char path[256];
	struct error err;
	struct stat st;

	for (int again = 0; again < 2; again++) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			snprintf(path, sizeof(path), "%s/%s", f->path, names[i]);
			assert_int_equal(stat(path, &st), 0);
			assert_int_equal(st.st_mode & 0777, 0600);
		}
		store_close(s);
		snprintf(path, sizeof(path), "%s/run.db", f->path);
		assert_int_equal(chmod(path, 0644), 0);
		assert_int_equal(store_resume(&s, f->path, &err), 0);
		assert_int_equal(store_set(s, "anything", "1", &err), 0);
	}
	store_close(s);
	umask(mask);
}

/* SQLite refuses a path of some 500 bytes without saying why; the store names the cause. */
FOLDER_TEST(a_path_that_is_too_long_is_named_as_the_cause)
{
	struct folder *f = *state;
	char folder[700];
	struct error err;
	struct stat st;
	int rc = 0;

	snprintf(folder, sizeof(folder), "%s/%0200d/%0200d", f->path, 0, 0);
	while (rc == 0 && strlen(folder) < sizeof(folder) - 40) {
		struct store *s;

		snprintf(folder + strlen(folder), 40, "/aaaaaaa");
		rc = store_create(&s, folder, &a_run, &err);
		if (rc == 0)
			store_close(s);
	}
	assert_int_equal(rc, -ENAMETOOLONG);
	assert_non_null(strstr(err.text, "choose a folder with a shorter path"));
	strcat(folder, "/run.db.new");
	assert_int_equal(stat(folder, &st), -1); /* nothing is left of the failed creation */
	assert_int_equal(errno, ENOENT);
}

/* SQLite would take such a relative path for a URI, and open another file. */
FOLDER_TEST(a_path_may_look_like_a_uri)
{
	static const char *const names[] = { "file:a?mode=memory", "file:b#c%20d", "//e" };
	struct folder *f = *state;
	char here[512], path[512];
	struct error err = { "" };

	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(f->path), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct store *s = NULL;

		snprintf(path, sizeof(path), "%s%s", names[i][0] == '/' ? f->path : "", names[i]);
		assert_int_equal(store_create(&s, path, &a_run, &err), 0);
		store_close(s);
		assert_int_equal(store_open(&s, path, &err), 0);
		store_close(s);
		strcat(path, "/run.db");
		assert_int_equal(access(path, F_OK), 0);
	}
	assert_int_equal(chdir(here), 0);
}

FOLDER_TEST(the_corpus_hash_is_recorded_once)
{
	struct folder *f = *state;
	struct store_run run = a_run;
	struct store *s;
	struct error err;

	run.corpus_hash = 0;
	assert_int_equal(store_create(&s, f->path, &run, &err), 0);
	assert_int_equal(store_corpus(s, 77, &err), 0);
	assert_int_equal(store_corpus(s, 77, &err), 0);
	assert_int_equal(store_corpus(s, 78, &err), -EEXIST);
	store_close(s);
	assert_int_equal(store_open(&s, f->path, &err), 0);
	assert_int_equal(store_run_of(s)->corpus_hash, 77);
	store_close(s);
}

FOLDER_TEST(the_options_are_recorded_with_the_run)
{
	struct folder *f = *state;
	struct store_run run = a_run;
	struct store *s;
	struct error err;
	char *value;

	run.options = "{\"time_scale\":0.1}";
	assert_int_equal(store_create(&s, f->path, &run, &err), 0);
	store_close(s);
	assert_int_equal(store_open(&s, f->path, &err), 0);
	assert_int_equal(store_get(s, "options", &value, &err), 0);
	assert_string_equal(value, run.options);
	free(value);
	store_close(s);
}

static int reopen(struct store **s, const char *path, const char *wire, struct error *err)
{
	assert_int_equal(store_resume(s, path, err), 0);
	assert_int_equal(store_set(*s, "wire", wire, err), 0);
	store_close(*s);
	return store_open(s, path, err);
}

/* A format with an unknown name is an error. */
FOLDER_TEST(the_format_of_activations_is_recorded)
{
	struct folder *f = *state;
	struct store_run run = a_run;
	struct store *s;
	struct error err;

	run.formats.wire = FORMAT_Q6;
	run.formats.sum_wire = FORMAT_Q4;
	run.hash = "one";
	assert_int_equal(store_create(&s, f->path, &run, &err), 0);
	assert_int_equal(store_run_of(s)->formats.wire, FORMAT_Q6);
	assert_int_equal(store_run_of(s)->formats.sum_wire, FORMAT_Q4);
	assert_string_equal(store_run_of(s)->hash, "one");
	store_close(s);
	assert_int_equal(store_open(&s, f->path, &err), 0);
	assert_int_equal(store_run_of(s)->formats.wire, FORMAT_Q6);
	assert_int_equal(store_run_of(s)->formats.sum_wire, FORMAT_Q4);
	store_close(s);
	assert_int_equal(reopen(&s, f->path, "fp32", &err), 0);
	assert_int_equal(store_run_of(s)->formats.wire, FORMAT_FP32);
	store_close(s);
	assert_int_equal(reopen(&s, f->path, "fp8", &err), -EPROTONOSUPPORT);
	assert_non_null(strstr(err.text, "\"fp8\": expected fp32, bf16, q8 or q6"));
}

/* Stages count as visited if a path is longer than the given length, or if stages took the weights
 * of other stages. The sample's paths have 4 stages. Its even commits have stages that took
 * weights. */
FOLDER_TEST(the_record_says_whether_stages_were_visited)
{
	struct folder *f = *state;
	struct store *s = create(f->path);
	struct error err;
	bool visited = true;

	assert_int_equal(store_visited(s, 0, &visited, &err), 0);
	assert_false(visited);
	commit_one(s, 1);
	assert_int_equal(store_visited(s, 4, &visited, &err), 0);
	assert_false(visited);
	assert_int_equal(store_visited(s, 3, &visited, &err), 0);
	assert_true(visited);
	commit_one(s, 2);
	assert_int_equal(store_visited(s, 4, &visited, &err), 0);
	assert_true(visited);
	store_close(s);
}

FOLDER_TEST(a_commit_is_read_as_written)
{
	struct folder *f = *state;
	struct store *s = create(f->path);
	struct sample *p = calloc(1, sizeof(*p));
	struct store_commit c;
	struct error err;
	uint64_t last = 7;

	assert_int_equal(store_last_commit(s, &last, &err), 0);
	assert_int_equal(last, 0);
	for (uint64_t i = 1; i <= 3; i++)
		commit_one(s, i);
	store_close(s);
	assert_int_equal(store_open(&s, f->path, &err), 0);
	assert_int_equal(store_last_commit(s, &last, &err), 0);
	assert_int_equal(last, 3);
	for (uint64_t i = 1; i <= 3; i++) {
		assert_int_equal(store_read_commit(s, i, &c, &err), 0);
		assert_same(sample(p, i), &c);
		store_commit_clear(&c);
	}
	assert_int_equal(store_read_commit(s, 4, &c, &err), -ENOENT);
	assert_non_null(strstr(err.text, "iteration 4"));
	store_close(s);
	free(p);
}

FOLDER_TEST(an_iteration_is_committed_once_and_in_order)
{
	struct folder *f = *state;
	struct store *s = create(f->path);
	struct sample *p = calloc(1, sizeof(*p));
	struct error err;

	assert_int_equal(store_commit(s, sample(p, 2), &err), -EINVAL);
	assert_int_equal(store_commit(s, sample(p, 0), &err), -EINVAL);
	commit_one(s, 1);
	assert_int_equal(store_commit(s, sample(p, 1), &err), -EEXIST);
	assert_non_null(strstr(err.text, "iteration 1 is committed already"));
	assert_int_equal(store_commit(s, sample(p, 3), &err), -EINVAL);
	commit_one(s, 2);
	store_close(s);
	free(p);
}

FOLDER_TEST(a_contradictory_commit_leaves_nothing)
{
	struct folder *f = *state;
	struct store *s = create(f->path);
	struct sample *p = calloc(1, sizeof(*p));
	struct error err;
	uint64_t last = 7;

	sample(p, 1);
	p->routes[5].microbatch = 4;
	assert_int_equal(store_commit(s, &p->commit, &err), -EINVAL);
	assert_non_null(strstr(err.text, "microbatch 4 has two routes"));
	sample(p, 1);
	p->orders[3].node = 2;
	assert_int_equal(store_commit(s, &p->commit, &err), -EINVAL);
	assert_int_equal(store_last_commit(s, &last, &err), 0);
	assert_int_equal(last, 0);
	commit_one(s, 1);
	store_close(s);
	free(p);
}

FOLDER_TEST(a_run_has_a_writer_until_it_is_closed)
{
	struct folder *f = *state;
	struct store *s, *reader;
	struct error err;

	assert_false(store_has_writer(f->path));
	s = create(f->path);
	assert_true(store_has_writer(f->path));
	store_close(s);
	assert_int_equal(store_open(&reader, f->path, &err), 0);
	assert_false(store_has_writer(f->path));
	store_close(reader);
	assert_int_equal(store_resume(&s, f->path, &err), 0);
	assert_true(store_has_writer(f->path));
	store_close(s);
}

FOLDER_TEST(one_writer_many_readers)
{
	struct folder *f = *state;
	struct store *s = create(f->path), *second = NULL, *reader;
	struct error err;
	char pid[32];
	uint64_t last;

	snprintf(pid, sizeof(pid), "process %ld", (long)getpid());
	assert_int_equal(store_resume(&second, f->path, &err), -EBUSY);
	assert_non_null(strstr(err.text, pid));
	assert_int_equal(store_create(&second, f->path, &a_run, &err), -EBUSY);
	assert_null(second);
	assert_int_equal(store_open(&reader, f->path, &err), 0);
	commit_one(s, 1);
	assert_int_equal(store_last_commit(reader, &last, &err), 0);
	assert_int_equal(last, 1);
	assert_int_equal(store_set(reader, "a", "b", &err), -EROFS);
	store_close(reader);
	store_close(s);
	assert_int_equal(store_create(&second, f->path, &a_run, &err), -EEXIST);
	assert_int_equal(store_resume(&second, f->path, &err), 0);
	assert_int_equal(store_writer_epoch(second), 2);
	commit_one(second, 2);
	store_close(second);
}

/* Simulates a file system where flock does not reach other hosts: two writers hold the lock at
 * the same time. By the epoch, the first writer finds out that the second writer has taken
 * over. */
FOLDER_TEST(a_writer_that_was_replaced_is_refused)
{
	struct folder *f = *state;
	struct store *old = create(f->path), *new;
	struct sample *p = calloc(1, sizeof(*p));
	struct error err;
	char lock[128];

	snprintf(lock, sizeof(lock), "%s/run.lock", f->path);
	assert_int_equal(unlink(lock), 0);
	assert_int_equal(store_resume(&new, f->path, &err), 0);
	assert_int_equal(store_commit(old, sample(p, 1), &err), -ESTALE);
	assert_non_null(strstr(err.text, "another controller"));
	assert_int_equal(store_set(old, "a", "b", &err), -ESTALE);
	commit_one(new, 1);
	store_close(new);
	store_close(old);
	free(p);
}

/* The errno with which flock and mmap fail, as on some network file systems; 0: they do not
 * fail. */
static int flock_error, mmap_error;

int flock(int fd, int operation)
{
	if (flock_error == 0)
		return (int)syscall(SYS_flock, fd, operation);
	errno = flock_error;
	return -1;
}

static void *mmap_or_fail(void *at, size_t size, int access, int flags, int fd, off_t from)
{
	if (mmap_error == 0)
		return mmap(at, size, access, flags, fd, from);
	errno = mmap_error;
	return MAP_FAILED;
}

FOLDER_TEST(a_file_system_without_locks_or_shared_memory_is_named_as_the_cause)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	const sqlite3_syscall_ptr before = vfs->xGetSystemCall(vfs, "mmap");
	struct folder *f = *state;
	struct store *s;
	struct error err;

	flock_error = ENOLCK;
	assert_int_equal(store_create(&s, f->path, &a_run, &err), -ENOLCK);
	assert_non_null(strstr(err.text, "locks no files"));
	flock_error = 0;
	assert_non_null(before);
	mmap_error = ENODEV;
	vfs->xSetSystemCall(vfs, "mmap", (sqlite3_syscall_ptr)mmap_or_fail);
	assert_int_equal(store_create(&s, f->path, &a_run, &err), -EIO);
	assert_non_null(strstr(err.text, "shares no memory"));
	mmap_error = 0;
	vfs->xSetSystemCall(vfs, "mmap", before);
}

static int64_t number_of(const char *folder, const char *query)
{
	char path[128];
	sqlite3_stmt *q;
	sqlite3 *db;
	int64_t n;

	snprintf(path, sizeof(path), "%s/run.db", folder);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, query, -1, &q, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(q), SQLITE_ROW);
	n = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	sqlite3_close(db);
	return n;
}

/* Opens a transaction in the run's file, as another program may do. */
static sqlite3 *lock_file(const char *folder)
{
	char path[128];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/run.db", folder);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	return db;
}

/* Returns the time for which a statement waits while another program holds the lock, ms. */
static int patience_of(struct store *s)
{
	sqlite3_stmt *q;
	int ms;

	assert_int_equal(sqlite3_prepare_v2(s->db, "PRAGMA busy_timeout", -1, &q, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(q), SQLITE_ROW);
	ms = sqlite3_column_int(q, 0);
	sqlite3_finalize(q);
	return ms;
}

/* Opening a record may wait for the lock for a long time. Later statements must not wait so long,
 * because the controller is blocked meanwhile. */
FOLDER_TEST(a_writer_waits_shortly_once_it_is_open)
{
	struct folder *f = *state;
	struct store *s = create(f->path);
	struct error err;

	assert_int_equal(patience_of(s), DB_WAIT_MS);
	store_close(s);
	assert_int_equal(store_resume(&s, f->path, &err), 0);
	assert_int_equal(patience_of(s), DB_WAIT_MS);
	store_close(s);
}

/* While another program has locked the file, a commit is refused. Notes and settings wait in
 * memory, and the store writes them after the unlocking, the oldest first. */
FOLDER_TEST(rows_wait_while_another_program_holds_the_lock)
{
	struct folder *f = *state;
	struct store *s = create(f->path);
	struct sample *p = calloc(1, sizeof(*p));
	struct store_note note = { .id = 1, .kind = "log", .node = -1, .text = "a text" };
	struct error err;
	sqlite3 *other = lock_file(f->path);

	assert_int_equal(store_note(s, &note, &err), 0);
	assert_true(store_is_locked(s));
	assert_int_equal(store_set(s, "a", "first", &err), 0);
	assert_int_equal(store_set(s, "a", "second", &err), 0);
	assert_int_equal(store_commit(s, sample(p, 1), &err), -EBUSY);
	assert_non_null(strstr(err.text, "another program has locked it"));
	assert_int_equal(store_unlocked(s, &err), -EBUSY);
	assert_int_equal(number_of(f->path, "SELECT count(*) FROM note"), 0);
	assert_int_equal(sqlite3_close(other), SQLITE_OK);
	commit_one(s, 1);
	assert_false(store_is_locked(s));
	assert_int_equal(number_of(f->path, "SELECT count(*) FROM note WHERE text = 'a text'"), 1);
	assert_int_equal(number_of(f->path, "SELECT value = 'second' FROM state"
					    " WHERE key = '=a'"),
			 1);
	store_close(s);
	free(p);
}

static int fcntl_without_locks(int fd, int command, ...)
{
	va_list more;
	void *argument;

	va_start(more, command);
	argument = va_arg(more, void *);
	va_end(more);
	if (command != F_SETLK || ((struct flock *)argument)->l_type == F_UNLCK)
		return fcntl(fd, command, argument);
	errno = ENOLCK;
	return -1;
}

/* SQLite reports a file system that cannot lock files as if another program held the lock. The
 * store's message must not make the operator search for this program, which does not exist. */
FOLDER_TEST(a_file_system_without_locks_is_named)
{
	struct folder *f = *state;
	struct store *s = create(f->path);
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	struct store *reader = NULL;
	struct error of_writer = { "" }, of_reader = { "" };
	int rc;

	store_close(s);
	vfs->xSetSystemCall(vfs, "fcntl", (sqlite3_syscall_ptr)fcntl_without_locks);
	rc = store_open(&reader, f->path, &of_reader) == 0 ||
	     store_resume(&s, f->path, &of_writer) == 0;
	vfs->xSetSystemCall(vfs, "fcntl", NULL);
	assert_int_equal(rc, 0);
	assert_non_null(strstr(of_reader.text, "its file system locks no files"));
	assert_non_null(strstr(of_writer.text, "its file system locks no files"));
	assert_int_equal(store_resume(&s, f->path, &of_writer), 0);
	store_close(s);
}

/* Rows that wait for the file to be unlocked are written when the store is closed. */
FOLDER_TEST(rows_that_wait_survive_the_end)
{
	struct folder *f = *state;
	struct store *s = create(f->path);
	struct store_note note = { .id = 1, .kind = "log", .node = -1, .text = "a text" };
	sqlite3 *other = lock_file(f->path);

	assert_int_equal(store_note(s, &note, NULL), 0);
	assert_int_equal(sqlite3_close(other), SQLITE_OK);
	store_close(s);
	assert_int_equal(number_of(f->path, "SELECT count(*) FROM note"), 1);
}

static int count_rows(void *context)
{
	(*(int *)context)++;
	return 0;
}
static int see_plan(void *context, const struct store_plan *p)
{
	assert_string_equal(p->reason, "because");
	assert_string_equal(p->plan, "{\"p\":1}");
	return count_rows(context);
}
static int see_hash(void *context, const struct store_hash *h)
{
	assert_true(h->hash == UINT64_C(0xffffffff00000000) + h->node);
	return count_rows(context);
}
static int see_task(void *context, const struct store_task *t)
{
	assert_int_equal(t->kind, 'F');
	assert_int_equal(t->microbatch, *(int *)context);
	assert_int_equal(t->waited_for, -1);
	assert_int_equal(t->end_us, 30);
	return count_rows(context);
}
static int see_validation(void *context, const struct store_validation *v)
{
	assert_true(v->iteration == 0 ? isnan(v->loss) : v->loss == 2.5);
	return count_rows(context);
}
static int see_note(void *context, const struct store_note *n)
{
	assert_string_equal(n->text, "n09 \xe2\x80\x94 lost");
	assert_int_equal(n->mark, 'F');
	assert_int_equal(n->node, -1);
	return count_rows(context);
}
static int see_fault(void *context, const struct store_fault *x)
{
	assert_int_equal(x->ended_wall_us, 5);
	return count_rows(context);
}
static int stop_at_once(void *context, const struct store_note *n)
{
	(void)n;
	(*(int *)context)++;
	return 42;
}

FOLDER_TEST(other_rows_are_read_as_written)
{
	struct folder *f = *state;
	struct store *s = create(f->path);
	struct store_plan plan = { .epoch = 1, .iteration = 1, .reason = "because",
				   .path_length = 4, .plan = "{\"p\":1}" };
	struct store_note note = { .iteration = 4, .kind = "alert", .mark = 'F', .node = -1,
				   .text = "n09 \xe2\x80\x94 lost" };
	struct store_fault fault = { .id = 1, .kind = "kill", .node = 3, .peer = -1 };
	struct store_command command = { .id = 9, .who = "me", .verb = "skip", .text = "",
					 .status = 1, .reply = "", .undo = "skip 2" };
	struct store_validation none = { .iteration = 0, .loss = (double)NAN };
	struct store_validation some = { .iteration = 5, .loss = 2.5 };
	struct store_hash hashes[3], forgotten = { 1, 5, 3, 0 };
	struct store_task tasks[4];
	struct error err;
	char *value;
	int n = 0;

	for (uint16_t i = 0; i < 3; i++)
		hashes[i] = (struct store_hash){ 1, UINT64_C(0xffffffff00000000) + i, i, 0 };
	for (uint32_t i = 0; i < 4; i++)
		tasks[i] = (struct store_task){ 1, i, 0, 2, 'F', true, -1, 10, 20, 30 };
	assert_int_equal(store_plan(s, &plan, &err), 0);
	assert_int_equal(store_plan(s, &plan, &err), -EEXIST);
	assert_int_equal(store_hashes(s, hashes, 3, &err), 0);
	hashes[0].hash = 0; /* the second hash of a node is ignored */
	assert_int_equal(store_hashes(s, hashes, 1, &err), 0);
	assert_int_equal(store_hashes(s, &forgotten, 1, &err), 0);
	/* If a hash is forgotten, no other hash may be deleted. */
	assert_int_equal(store_forget_hash(s, &forgotten, &err), 0);
	assert_int_equal(store_forget_hash(s, &forgotten, &err), 0);
	assert_int_equal(store_tasks(s, tasks, 4, &err), 0);
	assert_int_equal(store_validation(s, &none, &err), 0);
	assert_int_equal(store_validation(s, &some, &err), 0);
	assert_int_equal(store_note(s, &note, &err), 0);
	assert_int_equal(store_note(s, &note, &err), 0);
	assert_int_equal(store_fault(s, &fault, &err), 0);
	fault.ended_wall_us = 5;
	assert_int_equal(store_fault(s, &fault, &err), 0);
	assert_int_equal(store_command(s, &command, &err), 0);
	command.status = -EPERM;
	command.undo = NULL;
	assert_int_equal(store_command(s, &command, &err), 0);
	note.text = NULL; /* a note without a text is an error and no crash */
	assert_int_equal(store_note(s, &note, &err), -EINVAL);
	assert_int_equal(store_set(s, "skip", "2", &err), 0);
	assert_int_equal(store_set(s, "skip", "3", &err), 0);
	/* A caller may use a key that the store uses for itself; both values are kept. */
	assert_int_equal(store_set(s, "writer-epoch", "77", &err), 0);
	store_close(s);

	assert_int_equal(store_resume(&s, f->path, &err), 0);
	assert_int_equal(store_each_plan(s, 0, see_plan, &n, &err), 0);
	assert_int_equal(n, 1);
	n = 0;
	assert_int_equal(store_each_hash(s, 1, see_hash, &n, &err), 0);
	assert_int_equal(n, 3);
	n = 0;
	assert_int_equal(store_each_task(s, 1, see_task, &n, &err), 0);
	assert_int_equal(n, 4);
	n = 0;
	assert_int_equal(store_each_validation(s, see_validation, &n, &err), 0);
	assert_int_equal(n, 2);
	n = 0;
	assert_int_equal(store_each_note(s, see_note, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_int_equal(store_each_note(s, stop_at_once, &n, &err), 42);
	assert_int_equal(n, 3);
	n = 0;
	assert_int_equal(store_each_fault(s, see_fault, &n, &err), 0);
	assert_int_equal(n, 1);
	assert_int_equal(number_of(f->path, "SELECT count(*) FROM command"), 1);
	assert_int_equal(number_of(f->path, "SELECT count(*) FROM command WHERE verb = 'skip'"
					    " AND undo IS NULL AND status = -1"), 1);
	assert_int_equal(store_get(s, "skip", &value, &err), 0);
	assert_string_equal(value, "3");
	free(value);
	assert_int_equal(store_set(s, "skip", NULL, &err), 0);
	assert_int_equal(store_get(s, "skip", &value, &err), -ENOENT);
	store_close(s);
}

struct seen_moments {
	int n;
	uint64_t ids[8], writers[8];
};

static int see_moment(void *context, const struct store_moment *m)
{
	struct seen_moments *seen = context;

	seen->ids[seen->n] = m->id;
	seen->writers[seen->n++] = m->writer;
	assert_int_equal(m->iteration, 7);
	assert_int_equal(m->at_us, -5);
	assert_int_equal(m->wall_us, INT64_C(1) << 60);
	assert_string_equal(m->kind, "node");
	assert_int_equal(m->node, 19);
	assert_int_equal(m->stage, -1);
	assert_int_equal(m->value, -9);
	assert_string_equal(m->word, "dead");
	assert_string_equal(m->text, "heartbeat lost");
	assert_true(m->forward_s == 0.25 && m->backward_s == 0.5 && m->loss_s == 0.125);
	assert_string_equal(m->device, "cpu");
	assert_string_equal(m->host, "here");
	return 0;
}

FOLDER_TEST(events_are_read_in_order)
{
	static const struct store_moment a_moment = {
		.id = 99, .writer = 99, .iteration = 7, .at_us = -5, .wall_us = INT64_C(1) << 60,
		.kind = "node", .node = 19, .stage = -1, .value = -9, .word = "dead",
		.text = "heartbeat lost", .forward_s = 0.25, .backward_s = 0.5, .loss_s = 0.125,
		.device = "cpu", .host = "here",
	};
	struct folder *f = *state;
	struct store *s = create(f->path);
	struct seen_moments seen = { 0 };
	struct error err;

	store_close(s);
	assert_int_equal(store_open(&s, f->path, &err), 0);
	assert_int_equal(store_each_moment(s, 0, see_moment, &seen, &err), 0);
	assert_int_equal(seen.n, 0);
	assert_int_equal(store_moment(s, &a_moment, &err), -EROFS);
	store_close(s);

	for (int writer = 2; writer < 4; writer++) {
		assert_int_equal(store_resume(&s, f->path, &err), 0);
		assert_int_equal(store_moment(s, &a_moment, &err), 0);
		assert_int_equal(store_moment(s, &a_moment, &err), 0);
		store_close(s);
	}
	assert_int_equal(store_open(&s, f->path, &err), 0);
	assert_int_equal(store_each_moment(s, 0, see_moment, &seen, &err), 0);
	assert_int_equal(seen.n, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(seen.ids[i], i + 1);
		assert_int_equal(seen.writers[i], 2 + i / 2);
	}
	seen.n = 0;
	assert_int_equal(store_each_moment(s, 3, see_moment, &seen, &err), 0);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.ids[0], 4);
	store_close(s);
}

/* Makes a commit for `iteration`. Its routes, orders, sums and devices are those of the sample
 * commit `as`. */
static const struct store_commit *sample_as(struct sample *p, uint64_t iteration, uint64_t as)
{
	sample(p, as);
	p->commit.iteration = iteration;
	return &p->commit;
}

/* If routes, orders, sums or devices equal those of the previous commit, a commit does not write
 * them again. Every commit is read back as it was written, also after a new writer opened the run
 * and after a restore. */
FOLDER_TEST(equal_parts_are_written_once)
{
	static const uint64_t as[] = { 0, 1, 1, 1, 4, 4, 1, 1, 1 };
	struct folder *f = *state;
	struct sample *p = calloc(1, sizeof(*p));
	struct store_restore restore = { .iteration = 4, .last = 8, .stage = 0, .wall_us = 1 };
	struct store *s = create(f->path);
	struct store_commit c;
	struct error err;

	for (uint64_t i = 1; i <= 8; i++) {
		if (i == 8) {
			store_close(s);
			assert_int_equal(store_resume(&s, f->path, &err), 0);
		}
		assert_int_equal(store_commit(s, sample_as(p, i, as[i]), &err), 0);
	}
	/* Commits 1, 4, 6 and 8 wrote rows. The parts of commit 8 equal those of commit 7, but a
	 * new writer does not know what its predecessor wrote last. */
	assert_int_equal(number_of(f->path, "SELECT count(*) FROM route"), 4 * N_ROUTES);
	assert_int_equal(number_of(f->path, "SELECT count(DISTINCT iteration) FROM counted"), 4);
	for (uint64_t i = 1; i <= 8; i++) {
		assert_int_equal(store_read_commit(s, i, &c, &err), 0);
		assert_same(sample_as(p, i, as[i]), &c);
		store_commit_clear(&c);
	}
	assert_int_equal(store_restore(s, &restore, 1, &err), 0);
	assert_int_equal(store_commit(s, sample_as(p, 5, 1), &err), 0);
	assert_int_equal(store_read_commit(s, 5, &c, &err), 0);
	assert_same(sample_as(p, 5, 1), &c);
	store_commit_clear(&c);
	store_close(s);
	free(p);
}

/* A commit that failed has no rows, so the next commit must write its own rows. */
FOLDER_TEST(a_failed_commit_is_not_referred_to)
{
	struct folder *f = *state;
	struct sample *p = calloc(1, sizeof(*p));
	struct store *s = create(f->path);
	struct store_commit c;
	struct error err;

	assert_int_equal(store_commit(s, sample_as(p, 1, 1), &err), 0);
	sample_as(p, 2, 2);
	/* the store refuses a commit with two orders for one node */
	p->orders[1].node = p->orders[0].node;
	assert_int_equal(store_commit(s, &p->commit, &err), -EINVAL);
	assert_int_equal(store_commit(s, sample_as(p, 2, 2), &err), 0);
	assert_int_equal(store_read_commit(s, 2, &c, &err), 0);
	assert_same(sample_as(p, 2, 2), &c);
	store_commit_clear(&c);
	store_close(s);
	free(p);
}

static int count_task(void *context, const struct store_task *t)
{
	(void)t;
	++*(int *)context;
	return 0;
}

static int tasks_of(struct store *s, uint64_t iteration)
{
	int n = 0;
	struct error err;

	assert_int_equal(store_each_task(s, iteration, count_task, &n, &err), 0);
	return n;
}

/* store_thin deletes the tasks of old iterations, except the tasks of every hundredth iteration.
 * A new writer continues where the first writer stopped. After a restore, the iterations that run
 * again are thinned again. */
FOLDER_TEST(old_tasks_are_thinned)
{
	struct folder *f = *state;
	struct store *s = create(f->path);
	struct error err;

	for (uint64_t i = 1; i <= 205; i++) {
		struct store_task t = { i, 0, 0, 2, 'F', true, -1, 10, 20, 30 };
		struct store_moment m = { .iteration = i, .kind = i % 8 == 1   ? "device"
						  : i % 8 == 5 ? "gpu"
						  : i % 4 == 3 ? "phase"
							       : "node",
					  .word = "", .text = "", .device = "", .host = "" };

		assert_int_equal(store_tasks(s, &t, 1, &err), 0);
		assert_int_equal(store_moment(s, &m, &err), 0);
		if (i == 100) {
			store_close(s);
			assert_int_equal(store_resume(&s, f->path, &err), 0);
		}
		if (i > 3)
			assert_int_equal(store_thin(s, i - 3, &err), 0);
	}
	for (uint64_t i = 1; i <= 205; i++)
		assert_int_equal(tasks_of(s, i), i > 202 || i % 100 == 0);
	assert_int_equal(number_of(f->path, "SELECT count(*) FROM moment WHERE kind = 'node'"),
			 102);
	assert_int_equal(number_of(f->path, "SELECT count(*) FROM moment WHERE kind = 'phase'"),
			 1);
	assert_int_equal(number_of(f->path, "SELECT count(*) FROM moment WHERE kind = 'gpu'"), 1);
	assert_int_equal(number_of(f->path, "SELECT count(*) FROM moment WHERE kind = 'device'"),
			 1);
	/* a restore makes the run repeat these iterations */
	for (uint64_t i = 150; i <= 160; i++) {
		struct store_task t = { i, 0, 0, 2, 'F', true, -1, 10, 20, 30 };

		assert_int_equal(store_tasks(s, &t, 1, &err), 0);
		assert_int_equal(store_thin(s, i - 3, &err), 0);
	}
	for (uint64_t i = 151; i <= 160; i++)
		assert_int_equal(tasks_of(s, i), i > 157);
	store_close(s);
}
