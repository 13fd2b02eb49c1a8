/* What the store promises: a commit is whole or absent, one writer, old state after a failure,
 * and a plain word for every kind of bad file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/store.h"

static const char *const corpus[] = { "/data/a.txt", "/data/b with space.txt" };

static const struct store_run a_run = {
	.name = "test", .version = "0", .model = "{\"m\":1}", .cluster = "{}", .optimizer = "{}",
	.id = UINT64_C(0xfedcba9876543210), .seed = UINT64_MAX, .corpus_hash = UINT64_C(1) << 63,
	.started_wall_us = 1234567, .batch = 4, .sequence = 64, .n_shards = 5, .per_shard = 6,
	.threads = 1, .n_corpus = 2, .corpus = corpus,
};

struct folder {
	char path[64];
};

static int make_folder(void **state)
{
	struct folder *f = calloc(1, sizeof(*f));

	strcpy(f->path, "/tmp/skippipe-store-XXXXXX");
	assert_non_null(mkdtemp(f->path));
	*state = f;
	return 0;
}

static int remove_folder(void **state)
{
	static const char *const files[] = { "run.db", "run.db-wal", "run.db-shm", "run.lock",
					     "filler" };
	struct folder *f = *state;
	char path[128];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", f->path, files[i]);
		unlink(path);
	}
	rmdir(f->path);
	free(f);
	return 0;
}

/* A commit whose every part can be told from its iteration. */
enum { N_ROUTES = 30, N_HOPS = 4, N_NODES = 20 };

struct sample {
	uint16_t nodes[N_ROUTES][N_HOPS];
	uint8_t stages[N_ROUTES][N_HOPS];
	struct store_route routes[N_ROUTES];
	struct store_counted counted[N_NODES][8];
	struct store_order orders[N_NODES];
	uint16_t replicas[2][3];
	struct store_reduction reductions[2];
	struct store_commit commit;
};

static const struct store_commit *sample(struct sample *p, uint64_t iteration)
{
	uint32_t k = (uint32_t)iteration;

	for (uint32_t i = 0; i < N_ROUTES; i++) {
		for (uint32_t h = 0; h < N_HOPS; h++) {
			p->nodes[i][h] = (uint16_t)(k + i + h);
			p->stages[i][h] = (uint8_t)(h + i % 3);
		}
		p->routes[i] = (struct store_route){ i, i % 5, i / 5, k % 2, N_HOPS, p->nodes[i],
						     p->stages[i] };
	}
	for (uint32_t n = 0; n < N_NODES; n++) {
		for (uint32_t i = 0; i < 8; i++)
			p->counted[n][i] = (struct store_counted){ k * i, i % 2 ? 'L' : 'B' };
		p->orders[n] = (struct store_order){ (uint16_t)n, (uint8_t)(n % 6), n % 9,
						     p->counted[n] };
	}
	for (uint32_t r = 0; r < 2; r++) {
		for (uint32_t i = 0; i < 3; i++)
			p->replicas[r][i] = (uint16_t)(100 * r + i);
		p->reductions[r] = (struct store_reduction){ (uint8_t)r, r ? 0 : 3, p->replicas[r] };
	}
	p->commit = (struct store_commit){
		.iteration = iteration, .epoch = 3, .attempt = 1, .scale = 1.0f / 30, .lr = 1e-3f,
		.beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .weight_decay = 0.1f,
		.loss = 5.5f / (float)k, .gradient_norm = 1.25, .clip = 1, .iteration_s = 33.3,
		.predicted_s = 33.0, .sync_s = 1.5, .real_s = 2.5, .collisions = 7, .wait_s = 0.25,
		.alive = 20, .path_length = 4, .rerun = 2, .wall_us = 99,
		.n_routes = N_ROUTES, .n_orders = N_NODES, .n_reductions = 2,
		.routes = p->routes, .orders = p->orders, .reductions = p->reductions,
	};
	return &p->commit;
}

static void assert_same(const struct store_commit *a, const struct store_commit *b)
{
	assert_int_equal(a->iteration, b->iteration);
	assert_int_equal(a->epoch, b->epoch);
	assert_memory_equal(&a->scale, &b->scale, sizeof(a->scale));
	assert_memory_equal(&a->loss, &b->loss, sizeof(a->loss));
	assert_memory_equal(&a->eps, &b->eps, sizeof(a->eps));
	assert_int_equal(a->rerun, b->rerun);
	assert_int_equal(a->n_routes, b->n_routes);
	assert_int_equal(a->n_orders, b->n_orders);
	assert_int_equal(a->n_reductions, b->n_reductions);
	for (size_t i = 0; i < a->n_routes; i++) {
		const struct store_route *x = &a->routes[i], *y = &b->routes[i];

		assert_int_equal(x->microbatch, y->microbatch);
		assert_int_equal(x->shard, y->shard);
		assert_int_equal(x->wave, y->wave);
		assert_int_equal(x->attempt, y->attempt);
		assert_int_equal(x->n_hops, y->n_hops);
		assert_memory_equal(x->nodes, y->nodes, x->n_hops * sizeof(*x->nodes));
		assert_memory_equal(x->stages, y->stages, x->n_hops);
	}
	for (size_t i = 0; i < a->n_orders; i++) {
		assert_int_equal(a->orders[i].node, b->orders[i].node);
		assert_int_equal(a->orders[i].stage, b->orders[i].stage);
		assert_int_equal(a->orders[i].n_counted, b->orders[i].n_counted);
		for (uint32_t j = 0; j < a->orders[i].n_counted; j++) {
			assert_int_equal(a->orders[i].counted[j].kind,
					 b->orders[i].counted[j].kind);
			assert_int_equal(a->orders[i].counted[j].microbatch,
					 b->orders[i].counted[j].microbatch);
		}
	}
	for (size_t i = 0; i < a->n_reductions; i++) {
		assert_int_equal(a->reductions[i].n_nodes, b->reductions[i].n_nodes);
		assert_memory_equal(a->reductions[i].nodes, b->reductions[i].nodes,
				    a->reductions[i].n_nodes * sizeof(uint16_t));
	}
}

static struct store *create(const char *folder)
{
	struct store *s = NULL;
	struct error err = { "" };

	if (store_create(&s, folder, &a_run, &err) != 0)
		fail_msg("%s", err.text);
	return s;
}

static void commit_one(struct store *s, uint64_t iteration)
{
	struct sample *p = calloc(1, sizeof(*p));
	struct error err = { "" };

	if (store_commit(s, sample(p, iteration), &err) != 0)
		fail_msg("%s", err.text);
	free(p);
}

static void what_a_run_is_comes_back(void **state)
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
	assert_string_equal(r->corpus[1], corpus[1]);
	assert_int_equal(store_writer_epoch(s), 1);
	store_close(s);
}

static void the_corpus_is_learnt_once(void **state)
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

static void a_commit_comes_back_whole(void **state)
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

static void an_iteration_is_committed_once_and_in_turn(void **state)
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

static void a_contradictory_commit_leaves_nothing(void **state)
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

static void one_writer_many_readers(void **state)
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

/* As on a file system where flock does not reach: the lock's file is another, the epoch is not. */
static void a_writer_that_was_overtaken_is_refused(void **state)
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
static int see_command(void *context, const struct store_command *c)
{
	assert_string_equal(c->verb, "skip");
	assert_null(c->undo);
	assert_int_equal(c->status, -EPERM);
	return count_rows(context);
}
static int stop_at_once(void *context, const struct store_note *n)
{
	(void)n;
	(*(int *)context)++;
	return 42;
}

static void the_rest_comes_back(void **state)
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
	struct store_hash hashes[3];
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
	hashes[0].hash = 0; /* its second word is not taken */
	assert_int_equal(store_hashes(s, hashes, 1, &err), 0);
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
	note.text = NULL; /* the world's mistake, not a crash */
	assert_int_equal(store_note(s, &note, &err), -EINVAL);
	assert_int_equal(store_set(s, "skip", "2", &err), 0);
	assert_int_equal(store_set(s, "skip", "3", &err), 0);
	assert_int_equal(store_set(s, "writer-epoch", "77", &err), 0); /* not the store's own */
	store_close(s);

	assert_int_equal(store_resume(&s, f->path, &err), 0);
	assert_int_equal(store_each_plan(s, see_plan, &n, &err), 0);
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
	n = 0;
	assert_int_equal(store_each_command(s, see_command, &n, &err), 0);
	assert_int_equal(n, 1);
	assert_int_equal(store_get(s, "skip", &value, &err), 0);
	assert_string_equal(value, "3");
	free(value);
	assert_int_equal(store_set(s, "skip", NULL, &err), 0);
	assert_int_equal(store_get(s, "skip", &value, &err), -ENOENT);
	store_close(s);
}

static void assert_integrity(const char *folder)
{
	char path[128];
	sqlite3 *db;
	sqlite3_stmt *q;

	snprintf(path, sizeof(path), "%s/run.db", folder);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &q, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(q), SQLITE_ROW);
	assert_string_equal((const char *)sqlite3_column_text(q, 0), "ok");
	sqlite3_finalize(q);
	sqlite3_close(db);
}

/* Commits without end, telling each to the pipe once it is done. */
static void commit_for_ever(const char *folder, int tell)
{
	struct sample *p = calloc(1, sizeof(*p));
	struct store *s;
	struct error err;
	uint64_t last;

	if (store_resume(&s, folder, &err) != 0 || store_last_commit(s, &last, &err) != 0)
		_exit(1);
	for (;;) {
		last++;
		if (store_commit(s, sample(p, last), &err) != 0)
			_exit(2);
		if (write(tell, &last, sizeof(last)) != sizeof(last))
			_exit(3);
	}
}

/* Kills a writer at a moment that depends on `round`. Returns the last commit it told of. */
static uint64_t kill_a_writer(const char *folder, unsigned round)
{
	uint64_t told = 0, last = 0;
	int pipes[2], status;
	pid_t child;

	assert_int_equal(pipe(pipes), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(pipes[0]);
		commit_for_ever(folder, pipes[1]);
	}
	close(pipes[1]);
	/* After one full commit, somewhere inside the next ones. */
	assert_int_equal(read(pipes[0], &told, sizeof(told)), sizeof(told));
	usleep(round * 37 % 5000);
	assert_int_equal(kill(child, SIGKILL), 0);
	while (read(pipes[0], &last, sizeof(last)) == sizeof(last))
		told = last;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	close(pipes[0]);
	return told;
}

/* Killed between and inside commits, again and again: nothing told is lost, nothing is half. */
static void kill_9_leaves_whole_commits(void **state)
{
	struct folder *f = *state;
	struct sample *p = calloc(1, sizeof(*p));
	struct store *s = create(f->path);
	struct store_commit c;
	struct error err;
	uint64_t told, last = 0;

	store_close(s);
	for (unsigned round = 1; round <= 40; round++) {
		uint64_t before = last;

		told = kill_a_writer(f->path, round * 29);
		assert_int_equal(store_resume(&s, f->path, &err), 0);
		assert_int_equal(store_last_commit(s, &last, &err), 0);
		/* At most the one whose word was not out yet. */
		assert_true(last == told || last == told + 1);
		for (uint64_t i = before + 1; i <= last; i++) {
			assert_int_equal(store_read_commit(s, i, &c, &err), 0);
			assert_same(sample(p, i), &c);
			store_commit_clear(&c);
		}
		store_close(s);
	}
	assert_integrity(f->path);
	free(p);
}

/* Fills the place, fails, makes room, goes on. */
static void a_full_disk(struct store *s, const char *folder, bool (*make_room)(const char *))
{
	struct sample *p = calloc(1, sizeof(*p));
	struct store_commit c;
	struct error err = { "" };
	uint64_t i = 1, last;
	int rc;

	while ((rc = store_commit(s, sample(p, i), &err)) == 0) {
		i++;
		assert_true(i < 5000);
	}
	if (rc != -ENOSPC)
		fail_msg("%s", err.text);
	assert_non_null(strstr(err.text, "run.db"));
	assert_int_equal(store_last_commit(s, &last, &err), 0);
	assert_int_equal(last, i - 1);
	assert_int_equal(store_read_commit(s, last, &c, &err), 0);
	assert_same(sample(p, last), &c);
	store_commit_clear(&c);
	assert_true(make_room(folder));
	commit_one(s, i);
	store_close(s);
	assert_int_equal(store_open(&s, folder, &err), 0);
	assert_int_equal(store_last_commit(s, &last, &err), 0);
	assert_int_equal(last, i);
	store_close(s);
	free(p);
}

static bool grow_tmpfs(const char *folder)
{
	return mount("skippipe-test", folder, "tmpfs", MS_REMOUNT, "size=8m") == 0;
}

static void a_full_disk_is_said_and_survived(void **state)
{
	struct folder *f = *state;
	struct store *s;

	if (mount("skippipe-test", f->path, "tmpfs", 0, "size=512k") != 0) {
		print_message("no right to mount: see the file-size limit's test\n");
		skip();
	}
	s = create(f->path);
	a_full_disk(s, f->path, grow_tmpfs);
	assert_integrity(f->path);
	assert_int_equal(umount(f->path), 0);
}

static bool lift_limit(const char *folder)
{
	struct rlimit r;

	(void)folder;
	getrlimit(RLIMIT_FSIZE, &r);
	r.rlim_cur = r.rlim_max;
	return setrlimit(RLIMIT_FSIZE, &r) == 0;
}

static void a_file_size_limit_is_said_and_survived(void **state)
{
	struct folder *f = *state;
	struct store *s = create(f->path);
	struct rlimit r;

	getrlimit(RLIMIT_FSIZE, &r);
	r.rlim_cur = 300 * 1024;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
	a_full_disk(s, f->path, lift_limit);
	assert_integrity(f->path);
}

static void a_read_only_file_system(void **state)
{
	struct folder *f = *state;
	struct store *s;
	struct error err;
	uint64_t last;

	if (mount("skippipe-test", f->path, "tmpfs", 0, "size=4m") != 0)
		skip();
	s = create(f->path);
	commit_one(s, 1);
	store_close(s);
	assert_int_equal(mount("skippipe-test", f->path, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL), 0);
	assert_int_equal(store_resume(&s, f->path, &err), -EROFS);
	assert_int_equal(store_open(&s, f->path, &err), 0);
	assert_int_equal(store_last_commit(s, &last, &err), 0);
	assert_int_equal(last, 1);
	store_close(s);
	assert_int_equal(umount(f->path), 0);
}

static void overwrite(const char *folder, long at, const char *bytes, size_t n)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/run.db", folder);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, n, at), n);
	close(fd);
}

static void sql(const char *folder, const char *text)
{
	char path[128];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/run.db", folder);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void bad_files_are_told_apart(void **state)
{
	struct folder *f = *state;
	struct store *s = NULL;
	struct store_commit c;
	struct error err;
	char junk[4096];

	assert_int_equal(store_open(&s, f->path, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no run in this folder"));
	assert_int_equal(store_resume(&s, "/nonexistent", &err), -ENOENT);
	overwrite(f->path, 0, "This is a text file, not a run.", 31);
	assert_int_equal(store_open(&s, f->path, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is not a run"));
	remove_folder(state);
	make_folder(state);
	f = *state;

	s = create(f->path);
	commit_one(s, 1);
	store_close(s);
	sql(f->path, "UPDATE counted SET items = 'L3 X4' WHERE node = 5");
	assert_int_equal(store_open(&s, f->path, &err), 0);
	assert_int_equal(store_read_commit(s, 1, &c, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "iteration 1"));
	store_close(s);

	sql(f->path, "PRAGMA user_version = 99");
	assert_int_equal(store_open(&s, f->path, &err), -EPROTONOSUPPORT);
	assert_non_null(strstr(err.text, "version 99"));
	sql(f->path, "PRAGMA user_version = 1; PRAGMA application_id = 5");
	assert_int_equal(store_open(&s, f->path, &err), -EINVAL);
	sql(f->path, "PRAGMA application_id = 1397444690"); /* back */
	assert_int_equal(store_open(&s, f->path, &err), 0);
	store_close(s);

	memset(junk, 0xa5, sizeof(junk));
	for (long page = 1; page < 20; page++)
		overwrite(f->path, page * 4096, junk, sizeof(junk));
	assert_int_equal(store_open(&s, f->path, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "is damaged"));
}

/* A writer must not trust lists either: what is not as printed is refused. */
static void malformed_lists(void **state)
{
	static const char *const bad[] = { " ", "1 ", " 1", "1  2", "01", "65536", "-1", "1,2",
					   "999999999999999999999", "0x1" };
	struct folder *f = *state;
	struct store *s = create(f->path);
	struct store_commit c;
	struct error err;
	char text[128];

	commit_one(s, 1);
	store_close(s);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "UPDATE reduction SET nodes = '%s' WHERE stage = 0",
			 bad[i]);
		sql(f->path, text);
		assert_int_equal(store_open(&s, f->path, &err), 0);
		assert_int_equal(store_read_commit(s, 1, &c, &err), -EBADMSG);
		store_close(s);
	}
}

/* ---- moments ---- */

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

/* A run from before there were moments has none to read, and gets them with its next writer. */
static void moments_in_turn(void **state)
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
	sql(f->path, "DROP TABLE moment");
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_a_run_is_comes_back),
		TEST(the_corpus_is_learnt_once),
		TEST(a_commit_comes_back_whole),
		TEST(an_iteration_is_committed_once_and_in_turn),
		TEST(a_contradictory_commit_leaves_nothing),
		TEST(one_writer_many_readers),
		TEST(a_writer_that_was_overtaken_is_refused),
		TEST(the_rest_comes_back),
		TEST(kill_9_leaves_whole_commits),
		TEST(a_full_disk_is_said_and_survived),
		TEST(a_file_size_limit_is_said_and_survived),
		TEST(a_read_only_file_system),
		TEST(bad_files_are_told_apart),
		TEST(malformed_lists),
		TEST(moments_in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
