/* Tests that the thread pool runs every piece once, in an order that the dependencies allow, and
 * returns the first error. */

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/tests/test.h"
#include "verify/task_pool.h"

enum { PIECES = 200, WAITING = 0, RUNNING, DONE };

/* Piece i depends on piece i / 2. The first piece depends on nothing. */
struct heap {
	int state[PIECES], taken[TASK_POOL_MAX], runs[PIECES];
	/* Number of finished pieces, and number of workers that asked for a piece. */
	unsigned done, workers;
	int fails_at; /* the piece whose run fails; -1: none */
	/* Until `unblock` was called, `find` does not offer this piece; -1: no such piece. */
	int blocked;
	/* True: the first piece ends only after another worker has asked for a piece and has not
	 * got a piece. */
	bool slow;
	int unblock_result;
	int n_unblock, n_running;
	atomic_int n_nothing;
};

static enum task_pool_answer find(void *context, unsigned worker)
{
	struct heap *h = context;

	assert_true(worker < TASK_POOL_MAX);
	h->workers = worker + 1 > h->workers ? worker + 1 : h->workers;
	if (h->done == PIECES)
		return TASK_POOL_ALL_DONE;
	for (int i = 0; i < PIECES; i++)
		if (h->state[i] == WAITING && i != h->blocked &&
		    (i == 0 || h->state[i / 2] == DONE)) {
			h->state[i] = RUNNING;
			h->taken[worker] = i;
			h->n_running++;
			return TASK_POOL_FOUND;
		}
	h->n_nothing++;
	return TASK_POOL_NOTHING_NOW;
}

static int run(void *context, unsigned worker, struct error *err)
{
	struct heap *h = context;
	int i = h->taken[worker];

	h->runs[i]++;
	while (h->slow && i == 0 && h->n_nothing == 0)
		sched_yield();
	return i == h->fails_at ? error_set(err, -EIO, "piece %d", i) : 0;
}

static void finish(void *context, unsigned worker)
{
	struct heap *h = context;

	h->state[h->taken[worker]] = DONE;
	h->done++;
	h->n_running--;
}

static int unblock(void *context, struct error *err)
{
	struct heap *h = context;

	assert_int_equal(h->n_running, 0);
	h->n_unblock++;
	h->blocked = -1;
	return h->unblock_result ? error_set(err, h->unblock_result, "nothing goes on") : 0;
}

static const struct task_pool_work work = { find, run, finish, unblock };

static int run_heap(struct heap *h, unsigned n, struct error *err)
{
	return task_pool_run(&work, h, n, err);
}

TEST(every_piece_is_run_once)
{
	for (unsigned n = 1; n <= TASK_POOL_MAX + 1; n += n < 4 ? 1 : 61) {
		struct heap h = { .fails_at = -1, .blocked = -1 };
		struct error err = { "" };

		assert_int_equal(run_heap(&h, n, &err), 0);
		assert_string_equal(err.text, "");
		assert_int_equal(h.done, PIECES);
		for (int i = 0; i < PIECES; i++)
			assert_int_equal(h.runs[i], 1);
		assert_int_equal(h.n_unblock, 0);
		assert_true(h.workers >= 1 && h.workers <= n);
	}
}

/* The caller gets the error of the failed piece. Pieces that depend on the failed piece are not
 * run. */
TEST(the_first_error_ends_it)
{
	for (unsigned n = 1; n <= 4; n++)
		for (int at = 0; at < PIECES; at += 37) {
			struct heap h = { .fails_at = at, .blocked = -1 };
			struct error err = { "" };
			char why[16];

			snprintf(why, sizeof(why), "piece %d", at);
			assert_int_equal(run_heap(&h, n, &err), -EIO);
			assert_string_equal(err.text, why);
			assert_int_equal(h.state[at], RUNNING);
			assert_int_equal(h.runs[at], 1);
			for (int i = at + 1; i < PIECES; i++)
				assert_true(i / 2 != at || h.runs[i] == 0);
		}
}

/* A single worker computes the pieces in order, and starts no piece after the error. */
TEST(nothing_is_begun_after_an_error)
{
	struct heap h = { .fails_at = 5, .blocked = -1 };
	struct error err;

	assert_int_equal(run_heap(&h, 1, &err), -EIO);
	assert_int_equal(h.done, 5);
	for (int i = 6; i < PIECES; i++)
		assert_int_equal(h.runs[i], 0);
}

TEST(a_blocked_caller_may_unblock_or_give_up)
{
	for (unsigned n = 1; n <= 4; n++) {
		struct heap unblocked = { .fails_at = -1, .blocked = 1 };
		struct heap gives_up = { .fails_at = -1, .blocked = 1, .unblock_result = -EDEADLK };
		struct error err = { "" };

		assert_int_equal(run_heap(&unblocked, n, &err), 0);
		assert_true(unblocked.n_unblock == 1);
		assert_int_equal(unblocked.done, PIECES);
		assert_int_equal(run_heap(&gives_up, n, &err), -EDEADLK);
		assert_string_equal(err.text, "nothing goes on");
		assert_int_equal(gives_up.runs[1], 0);
	}
}

TEST(waiting_for_another_worker_is_no_block)
{
	struct heap h = { .fails_at = -1, .blocked = -1, .slow = true };
	struct error err;

	assert_int_equal(run_heap(&h, 3, &err), 0);
	assert_int_equal(h.done, PIECES);
	assert_int_equal(h.n_unblock, 0);
}

/* ---- an error while another worker is busy ---- */

struct two {
	atomic_bool begun, failed, ended;
};

static enum task_pool_answer find_always(void *context, unsigned worker)
{
	(void)context;
	(void)worker;
	return TASK_POOL_FOUND;
}

/* Runs a worker's piece. The piece of worker 0 fails while worker 1 still computes its own
 * piece. */
static int run_two(void *context, unsigned worker, struct error *err)
{
	struct two *t = context;

	if (worker == 0) {
		while (!t->begun)
			sched_yield();
		t->failed = true;
		return error_set(err, -EIO, "failed");
	}
	t->begun = true;
	while (!t->failed)
		sched_yield();
	usleep(50000);
	t->ended = true;
	return 0;
}

static void finish_nothing(void *context, unsigned worker)
{
	(void)context;
	(void)worker;
}

/* Even after an error, task_pool_run must not return while a worker uses the caller's data. */
TEST(a_busy_worker_is_waited_for)
{
	static const struct task_pool_work two = { find_always, run_two, finish_nothing, unblock };
	struct two t = { false, false, false };
	struct error err = { "" };

	assert_int_equal(task_pool_run(&two, &t, 2, &err), -EIO);
	assert_true(t.ended);
	assert_string_equal(err.text, "failed");
}
