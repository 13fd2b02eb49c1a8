/* What a successor reads of the iteration under way, also after a power loss: fdatasync and fsync are the test's own,
 * and show what that leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "controller/iteration/takeover_record.h"
#include "controller/loop.h"
#include "controller/members/node_state.h"
#include "controller/setup.h"
#include "controller/tests/under_way.h"

/* ---- what is on the disk ---- */

static struct {
	const char *folder; /* NULL: nobody looks */
	char copy[64];
	uint32_t synced;
} disk;

/* What the files are then is what a power loss leaves of them. */
static void look_at_disk(void)
{
	char command[256];

	if (!disk.folder)
		return;
	disk.synced++;
	snprintf(command, sizeof(command), "cp '%s'/run.db '%s'/run.db-wal '%s'", disk.folder, disk.folder,
		 disk.copy);
	assert_int_equal(system(command), 0);
}

int fdatasync(int fd)
{
	look_at_disk();
	return (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
	look_at_disk();
	return (int)syscall(SYS_fsync, fd);
}

static void watch_disk(const struct controller *c)
{
	disk.folder = c->options.run_dir;
	strcpy(disk.copy, "/tmp/skippipe-power-loss-XXXXXX");
	assert_non_null(mkdtemp(disk.copy));
	disk.synced = 0;
}

static void forget_disk(void)
{
	char command[128];

	disk.folder = NULL;
	snprintf(command, sizeof(command), "rm -rf '%s'", disk.copy);
	assert_int_equal(system(command), 0);
}

/* All but the store and the cluster: a successor has the same. */
static void forget(struct controller *c)
{
	c->store = NULL;
	c->cluster = NULL;
	controller_fini(c);
	free(c);
}

/* ---- what a successor reads ---- */

static struct controller *successor(struct controller *c)
{
	struct controller *next = under_way_knowing(c->cluster);

	next->store = c->store;
	next->first_attempt = next->own_attempt = 1000;
	takeover_read(next);
	return next;
}

static void knows_the_changed_routes(const struct controller *c, const struct controller *next)
{
	assert_non_null(next->takeover.plan);
	assert_int_equal(next->takeover.first, FIRST);
	assert_int_equal(next->first_attempt, 1000);
	for (uint32_t i = 0; i < N; i++) {
		const struct microbatch *a = &c->routes.microbatches[i], *b = &next->routes.microbatches[i];

		assert_int_equal(a->route.attempt, b->route.attempt);
		assert_int_equal(a->nodes[0], b->nodes[0]);
		assert_int_equal(a->nodes[1], b->nodes[1]);
		assert_true(b->nodes[1] != 4);
		assert_int_equal(b->moved, b->route.attempt > FIRST);
		assert_int_equal(a->route.since, b->route.since);
		assert_int_equal(a->owed_forward, b->owed_forward);
		assert_int_equal(a->owed_backward, b->owed_backward);
		assert_int_equal(b->owed_forward != 0, b->moved);
	}
	for (int i = 0; i < NODES; i++)
		assert_int_equal(next->members[i].lost_here, i == 4);
}

static void a_successor_knows_the_changed_routes(void **state)
{
	struct controller *c = *state, *next;

	under_way_three_is_slow(c);
	members_gone(c, &c->members[4], "is gone");
	loop_act(c);
	next = successor(c);
	knows_the_changed_routes(c, next);
	forget(next);
}

/* Agents were told of them, so a power loss must leave them. */
static void also_after_a_power_loss(void **state)
{
	struct controller *c = *state, *next;
	struct store *own = c->store;

	under_way_three_is_slow(c);
	watch_disk(c);
	members_gone(c, &c->members[4], "is gone");
	loop_act(c);
	assert_true(disk.synced > 0);
	disk.folder = NULL;
	assert_int_equal(store_resume(&c->store, disk.copy, NULL), 0);
	next = successor(c);
	knows_the_changed_routes(c, next);
	forget(next);
	store_close(c->store);
	c->store = own;
	forget_disk();
}

/* The disk is waited for when something has become of the plan, and else not. */
static void what_goes_as_planned_waits_for_no_disk(void **state)
{
	struct controller *c = *state;

	takeover_record(c);
	watch_disk(c);
	takeover_record(c);
	assert_int_equal(disk.synced, 0);
	members_gone(c, &c->members[4], "is gone");
	loop_act(c);
	assert_int_equal(disk.synced, 1);
	c->iteration++;
	c->members[4].lost_here = false;
	assert_int_equal(routes_from_plan(&c->routes, c->current->plan, c->shard_of, DATA, EACH, FIRST, NULL), 0);
	takeover_record(c);
	assert_int_equal(disk.synced, 1);
	c->first_attempt++; /* it begins anew */
	assert_int_equal(routes_from_plan(&c->routes, c->current->plan, c->shard_of, DATA, EACH, FIRST + 1, NULL), 0);
	takeover_record(c);
	assert_int_equal(disk.synced, 2);
	forget_disk();
}

/* Nobody is told of what a successor would not know. */
static void who_cannot_record_tells_nobody(void **state)
{
	struct controller *c = *state;
	struct store *other;
	char lock[128];

	snprintf(lock, sizeof(lock), "%s/run.lock", c->options.run_dir);
	assert_int_equal(unlink(lock), 0);
	assert_int_equal(store_resume(&other, c->options.run_dir, NULL), 0); /* has taken the run over */
	members_gone(c, &c->members[4], "is gone");
	loop_act(c);
	assert_int_equal(c->phase, PHASE_FINISHED);
	assert_true(c->ending.unrecorded);
	assert_false(c->progress.rerouted);
	store_close(other);
}

static void record(struct controller *c, const char *routes, int iteration)
{
	char text[512];

	snprintf(text, sizeof(text), "{\"iteration\":%d,\"first_attempt\":%d,\"gone\":[],\"routes\":[%s]}",
		 iteration, FIRST, routes);
	assert_int_equal(store_set(c->store, "under_way", text, NULL), 0);
}

static bool carries(struct controller *c)
{
	struct controller *next = successor(c);
	bool any = next->takeover.plan != NULL;

	forget(next);
	return any;
}

/* The rest of a route: hops as bits. */
#define SINCE(attempt, hops)                                                                       \
	",\"since\":" #attempt ",\"owed_forward\":" #hops ",\"owed_backward\":" #hops ",\"owed_loss\":false}"

static void what_does_not_fit_is_not_carried_on(void **state)
{
	static const char *const bad[] = {
		"{\"microbatch\":12,\"attempt\":6,\"nodes\":[0,3],\"stages\":[0,1]" SINCE(5, 2),
		"{\"microbatch\":0,\"attempt\":5,\"nodes\":[0,3],\"stages\":[0,1]" SINCE(5, 2),
		"{\"microbatch\":0,\"attempt\":6,\"nodes\":[0,6],\"stages\":[0,1]" SINCE(5, 2),
		"{\"microbatch\":0,\"attempt\":6,\"nodes\":[0,2],\"stages\":[0,1]" SINCE(5, 2),
		"{\"microbatch\":0,\"attempt\":6,\"nodes\":[0],\"stages\":[0]" SINCE(5, 2),
		"{\"microbatch\":0,\"attempt\":6,\"nodes\":[0,\"3\"],\"stages\":[0,1]" SINCE(5, 2),
		"{\"microbatch\":0,\"attempt\":6,\"stages\":[0,1]" SINCE(5, 2),
		"{\"microbatch\":0,\"attempt\":6,\"nodes\":[0,3],\"stages\":[0,1]" SINCE(4, 2),
		"{\"microbatch\":0,\"attempt\":6,\"nodes\":[0,3],\"stages\":[0,1]" SINCE(7, 2),
		"{\"microbatch\":0,\"attempt\":6,\"nodes\":[0,3],\"stages\":[0,1]" SINCE(5, 4),
		"{\"microbatch\":0,\"attempt\":6,\"nodes\":[0,3],\"stages\":[0,1]}",
		"7",
	};
	struct controller *c = *state;

	record(c, "{\"microbatch\":0,\"attempt\":6,\"nodes\":[0,3],\"stages\":[0,1]" SINCE(5, 2), 1);
	assert_true(carries(c));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		record(c, bad[i], 1);
		assert_false(carries(c));
		record(c, bad[i], 2); /* of another iteration: it is not looked at */
		assert_true(carries(c));
	}
	assert_int_equal(store_set(c->store, "under_way", "{\"iteration\":1", NULL), 0);
	assert_false(carries(c));
}

static int end(void **state)
{
	disk.folder = NULL;
	return under_way_end(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, under_way_begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_successor_knows_the_changed_routes),
		TEST(also_after_a_power_loss),
		TEST(what_goes_as_planned_waits_for_no_disk),
		TEST(who_cannot_record_tells_nobody),
		TEST(what_does_not_fit_is_not_carried_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
