/* recorded.h - for tests of replays: a handmade run, every row of which the tests know.
 *
 * Times are milliseconds of the first controller's clock. n00 holds the first of two stages. n01,
 * n02 and the late joiner n03 hold the second. Each iteration has two microbatches.
 *
 *     1000 gathering   1500 all but n03 live   1900 note 1   2000 plan 1, it1 computes
 *     2800 it1 reduces   3000 commit 1   3100 validated   3200 it2 computes   3250 figures of the
 *     GPUs of n01 and n02   3450 n02 dies, note 2
 *     4400 commit 2   4450 n01 and one of its links are slower   4500 plan 2, it3 computes
 *     4600..4800 fault 1   4700 n03 lives   5500 commit 3   5600 the run ends, note 3
 */
#ifndef CONTROLLER_TESTS_RECORDED_H
#define CONTROLLER_TESTS_RECORDED_H

#include "store/store.h"

enum { RECORDED_NODES = 4, RECORDED_MICROBATCHES = 2, RECORDED_TASKS = 10 };

struct recorded_options {
	bool without_moments; /* the run has no rows of moments, as if its record were incomplete */
	/* Writing stops after this commit. The test can write later rows with recorded_iteration */
	uint64_t until;
	/* A second controller, whose clock differs, wrote it3 */
	bool other_machine;
	/* A second controller cut the model into three stages before it3. n00 and n01 hold the
	 * first, n02 the second and n03 the third. */
	bool recut;
};

/* Times of it1's tasks relative to the iteration's start, in milliseconds and in stored order. The
 * tasks of all iterations have these times. */
extern const struct store_task recorded_tasks[RECORDED_TASKS];
/* Returns the time at which iteration k (from 1) began. */
int64_t recorded_start_ms(uint64_t iteration);

/* Writes the run. folder: a template "/tmp/...XXXXXX", which becomes the new folder. writer:
 * receives the store, open for writing; NULL: the store is closed. */
void recorded_make(char *folder, const struct recorded_options *o, struct store **writer);
/* Writes iteration k and all rows after it, until the start of the next iteration. */
void recorded_iteration(struct store *s, uint64_t k, const struct recorded_options *o);
/* Replaces the store's writer by another controller. recorded_make does this before it3. If
 * o->recut is true, the new controller changes the stages. */
void recorded_restart(struct store **s, const char *folder, const struct recorded_options *o);
/* Times of a node's device, as JSON. */
#define RECORDED_TIMES \
	"{\"busy_s\":1.25,\"host_s\":0.5,\"network_s\":0.000001,\"others_s\":2}"
/* These functions record, as JSON, the times of a node's device and the figures of its GPU. */
void recorded_device(struct store *s, int64_t ms, int node, const char *times);
void recorded_gpu(struct store *s, int64_t ms, int node, const char *figures);
void recorded_remove(const char *folder);

#endif
