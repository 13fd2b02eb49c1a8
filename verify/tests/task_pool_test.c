/* Work done side by side: every piece once, in an order its dependencies allow, and how an error gets out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "verify/task_pool.h"

enum { PIECES = 200, WAITING = 0, RUNNING, DONE };

/* Piece i needs piece i / 2; the first is there from the start. */
struct heap {
	int standing[PIECES], taken[TASK_POOL_MAX], runs[PIECES];
	unsigned done, workers; /* those that asked */
	int fails_at, blocks;   /* a piece whose run fails; one that is found once stuck has let it go. -1: none */
	bool slow;              /* the first piece takes until somebody has found nothing */
	int stuck_with;         /* what stuck gives */
	int n_stuck, n_at_work;
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
		if (h->standing[i] == WAITING && i != h->blocks && (i == 0 || h->standing[i / 2] == DONE)) {
			h->standing[i] = RUNNING;
			h->taken[worker] = i;
			h->n_at_work++;
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

	h->standing[h->taken[worker]] = DONE;
	h->done++;
	h->n_at_work--;
}

static int stuck(void *context, struct error *err)
{
	struct heap *h = context;

	assert_int_equal(h->n_at_work, 0);
	h->n_stuck++;
	h->blocks = -1;
	return h->stuck_with ? error_set(err, h->stuck_with, "nothing goes on") : 0;
}

static const struct task_pool_work work = { find, run, finish, stuck };

static int run_heap(struct heap *h, unsigned n, struct error *err)
{
	return task_pool_run(&work, h, n, err);
}

static void every_piece_is_run_once(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= TASK_POOL_MAX + 1; n += n < 4 ? 1 : 61) {
		struct heap h = { .fails_at = -1, .blocks = -1 };
		struct error err = { "" };

		assert_int_equal(run_heap(&h, n, &err), 0);
		assert_string_equal(err.text, "");
		assert_int_equal(h.done, PIECES);
		for (int i = 0; i < PIECES; i++)
			assert_int_equal(h.runs[i], 1);
		assert_int_equal(h.n_stuck, 0);
		assert_true(h.workers >= 1 && h.workers <= n);
	}
}

/* The caller hears which and why, and nothing new begins: what needs the piece cannot. */
static void the_first_error_ends_it(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 4; n++)
		for (int at = 0; at < PIECES; at += 37) {
			struct heap h = { .fails_at = at, .blocks = -1 };
			struct error err = { "" };
			char why[16];

			snprintf(why, sizeof(why), "piece %d", at);
			assert_int_equal(run_heap(&h, n, &err), -EIO);
			assert_string_equal(err.text, why);
			assert_int_equal(h.standing[at], RUNNING);
			assert_int_equal(h.runs[at], 1);
			for (int i = at + 1; i < PIECES; i++)
				assert_true(i / 2 != at || h.runs[i] == 0);
		}
}

/* One worker goes through them in order: what comes after the error is not begun. */
static void nothing_is_begun_after_an_error(void **state)
{
	struct heap h = { .fails_at = 5, .blocks = -1 };
	struct error err;

	(void)state;
	assert_int_equal(run_heap(&h, 1, &err), -EIO);
	assert_int_equal(h.done, 5);
	for (int i = 6; i < PIECES; i++)
		assert_int_equal(h.runs[i], 0);
}

static void who_is_stuck_is_asked_and_may_give_up(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 4; n++) {
		struct heap goes_on = { .fails_at = -1, .blocks = 1 };
		struct heap gives_up = { .fails_at = -1, .blocks = 1, .stuck_with = -EDEADLK };
		struct error err = { "" };

		assert_int_equal(run_heap(&goes_on, n, &err), 0);
		assert_true(goes_on.n_stuck == 1);
		assert_int_equal(goes_on.done, PIECES);
		assert_int_equal(run_heap(&gives_up, n, &err), -EDEADLK);
		assert_string_equal(err.text, "nothing goes on");
		assert_int_equal(gives_up.runs[1], 0);
	}
}

static void who_waits_for_another_is_not_stuck(void **state)
{
	struct heap h = { .fails_at = -1, .blocks = -1, .slow = true };
	struct error err;

	(void)state;
	assert_int_equal(run_heap(&h, 3, &err), 0);
	assert_int_equal(h.done, PIECES);
	assert_int_equal(h.n_stuck, 0);
}

/* ---- an error while another is at work ---- */

struct two {
	atomic_bool begun, failed, ended;
};

static enum task_pool_answer find_always(void *context, unsigned worker)
{
	(void)context;
	(void)worker;
	return TASK_POOL_FOUND;
}

/* The caller's piece fails once the other has begun one, which ends well after that. */
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

/* What it works on is the caller's again. */
static void who_is_at_work_is_waited_for(void **state)
{
	static const struct task_pool_work two = { find_always, run_two, finish_nothing, stuck };
	struct two t = { false, false, false };
	struct error err = { "" };

	(void)state;
	assert_int_equal(task_pool_run(&two, &t, 2, &err), -EIO);
	assert_true(t.ended);
	assert_string_equal(err.text, "failed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_piece_is_run_once),
		cmocka_unit_test(the_first_error_ends_it),
		cmocka_unit_test(nothing_is_begun_after_an_error),
		cmocka_unit_test(who_is_stuck_is_asked_and_may_give_up),
		cmocka_unit_test(who_waits_for_another_is_not_stuck),
		cmocka_unit_test(who_is_at_work_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
