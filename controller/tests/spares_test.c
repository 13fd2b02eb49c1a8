/* spares_test.c - late nodes that are not needed wait as spares, and replace lost nodes. Nodes that
 * failed often are used last, also in the next run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/tests/test.h"
#include "controller/loop.h"
#include "controller/members/failures.h"
#include "controller/planning/spares.h"
#include "controller/tests/under_way.h"
#include "schedule/search/search.h"

enum { NODE = 4, MANY = 3, DAY_S = 86400 };

/* A list of admitted keys in its own folder. The run uses it instead of the fixture's list. */
struct list {
	char folder[32], path[64], failures[80];
	struct keys_list *was;
};

static void list_begin(struct list *l, struct controller *c)
{
	struct error err;

	snprintf(l->folder, sizeof(l->folder), "/tmp/spares-XXXXXX");
	assert_non_null(mkdtemp(l->folder));
	snprintf(l->path, sizeof(l->path), "%s/admitted", l->folder);
	snprintf(l->failures, sizeof(l->failures), "%s.failures", l->path);
	l->was = c->run.keys.admitted;
	assert_int_equal(keys_list_open(&c->run.keys.admitted, l->path, &err), 0);
}

static void list_end(struct list *l, struct controller *c)
{
	keys_list_free(c->run.keys.admitted);
	c->run.keys.admitted = l->was;
	unlink(l->failures);
	rmdir(l->folder);
}

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

/* The counts of failures belong to keys. The file keeps them when the controller ends. */
FIXTURE_TEST(failures_are_remembered_by_key)
{
	struct controller *c = *state;
	struct member *m = &c->members.list[NODE], *o = &c->members.list[NODE + 1];
	struct list l;

	list_begin(&l, c);
	memset(&m->key, 1, sizeof(m->key));
	memset(&o->key, 2, sizeof(o->key));
	for (int i = 0; i < MANY; i++) {
		assert_false(failures_are_many(m));
		failures_count(&c->members, m);
	}
	failures_count(&c->members, o);
	assert_true(failures_are_many(m));
	m->move.failures = o->move.failures = 77;
	failures_recall(&c->members, m);
	failures_recall(&c->members, o);
	assert_int_equal(m->move.failures, MANY);
	assert_int_equal(o->move.failures, 1);
	memset(&o->key, 3, sizeof(o->key)); /* another process takes the node */
	failures_recall(&c->members, o);
	assert_int_equal(o->move.failures, 0);
	m->move.failed_s -= DAY_S; /* the last failure was a day ago */
	assert_false(failures_are_many(m));
	failures_count(&c->members, m);
	assert_int_equal(m->move.failures, 1);
	m->move.failures = MANY;
	unlink(l.failures);
	failures_recall(&c->members, m);
	assert_int_equal(m->move.failures, 0);
	list_end(&l, c);
}

/* Lines that are damaged or a day old do not count. A file of another format is not changed. */
FIXTURE_TEST(only_recent_and_whole_lines_count)
{
	static const char key[] =
		"0101010101010101010101010101010101010101010101010101010101010101";
	static const struct {
		const char *format;
		int64_t age_s;
		uint32_t counts;
	} files[] = {
		{ "skippipe-failures 1\n%s 5 %lld\n", 10, 5 },
		{ "skippipe-failures 1\n%s 5 %lld\n", 90000, 0 },
		{ "skippipe-failures 1\n%s 5 %lld\n", -90000, 0 },
		{ "skippipe-failures 1\n%s 5 %lld more\n", 10, 0 },
		{ "skippipe-failures 1\n\n%s 5 %lld", 10, 5 },
		{ "skippipe-failures 1\n%s -5 %lld\n", 10, 0 },
		{ "skippipe-failures 1\n%s0 5 %lld\n", 10, 0 },
	};
	struct controller *c = *state;
	struct member *m = &c->members.list[NODE];
	struct error err;
	char text[256];
	struct list l;

	list_begin(&l, c);
	memset(&m->key, 1, sizeof(m->key));
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		long long at_s = clock_wall_us() / 1000000 - files[i].age_s;
		int n = snprintf(text, sizeof(text), files[i].format, key, at_s);

		assert_int_equal(file_write(l.failures, text, (size_t)n, FILE_PRIVATE, &err), 0);
		failures_recall(&c->members, m);
		if (m->move.failures != files[i].counts)
			fail_msg("file %zu: %u failures", i, m->move.failures);
	}
	m->move.failures = 2;
	assert_int_equal(file_write(l.failures, "else\n", 5, FILE_PRIVATE, &err), 0);
	failures_recall(&c->members, m);
	assert_int_equal(m->move.failures, 2);
	list_end(&l, c);
}

/* A node that failed often waits while its stage has a better replica. If the stage has no better
 * replica, plans use the node. */
FIXTURE_TEST(nodes_that_failed_often_are_used_last)
{
	struct controller *c = *state;
	struct member *m = &c->members.list[NODE];
	int stage = member_stage(&c->run, m);
	bool excluded[MSG_NODES] = { false };
	char why[64];

	assert_true(member_is_replica(m) && stage_replicas(&c->members, stage, m) > 0);
	assert_false(spares_any(&c->members, SPARES_ALL));
	m->move.failures = MANY;
	m->move.failed_s = clock_wall_us() / 1000000;
	assert_true(spares_wait(&c->members, m));
	failures_reason(m, why, sizeof(why));
	assert_string_equal(why, "used last: failed 3 times");
	spares_exclude(&c->members, SPARES_NONE, excluded);
	for (uint32_t i = 0; i < c->members.n; i++)
		assert_int_equal(excluded[i], i == NODE);

	/* The stage needs the node, because the other replicas failed often, too, or have left. */
	for (uint32_t i = 0; i < c->members.n; i++)
		if (i != NODE && member_stage(&c->run, &c->members.list[i]) == stage) {
			c->members.list[i].move.failures = MANY;
			c->members.list[i].move.failed_s = m->move.failed_s;
		}
	assert_false(spares_wait(&c->members, m));
	for (uint32_t i = 0; i < c->members.n; i++)
		if (i != NODE)
			c->members.list[i].move.failures = 0;
	assert_true(spares_use_all(&c->members));
	assert_false(spares_wait(&c->members, m));
	assert_false(spares_use_all(&c->members));
	failures_reason(m, why, sizeof(why));
	assert_string_equal(why, "");
}

/* Makes m a spare that the plan in force does not use. */
static void begin_waiting(struct controller *c, struct member *m)
{
	struct planned *without = calloc(1, sizeof(*without));
	bool excluded[MSG_NODES] = { false };
	struct plan_request q;

	m->move.use = USE_SPARE;
	excluded[m->id] = true;
	plan_request_init(&q);
	q.path_length = (int)c->run.wanted.path_length;
	q.evaluations = 20;
	q.excluded = excluded;
	assert_int_equal(plan_search(c->run.cluster, &q, &without->plan, NULL), 0);
	assert_int_equal(simulate(c->run.cluster, without->plan, &without->trace, NULL), 0);
	planned_free(c->run.plan);
	c->run.plan = without;
}

/* A late node waits if at least MIN other nodes work (--agents MIN..MAX), and its stage has another
 * node. */
FIXTURE_TEST(late_nodes_wait_if_enough_nodes_work)
{
	struct controller *c = *state;
	struct member *m = &c->members.list[NODE];
	char why[64];

	for (uint32_t least = 1; least <= NODES; least++) {
		c->run.options.cluster.least_agents = least;
		m->state = MEMBER_READY;
		m->move.use = USE_UNDECIDED;
		spares_admit(&c->members, m);
		assert_true(member_apply(&c->run, m, EVENT_ADMIT, ""));
		/* The other five nodes work. least == 1: the operator gave no MIN. */
		assert_int_equal(m->move.use == USE_SPARE, least > 1 && least < NODES);
		assert_int_equal(spares_wait(&c->members, m), m->move.use == USE_SPARE);
		failures_reason(m, why, sizeof(why));
		assert_string_equal(why, m->move.use == USE_SPARE
						 ? "spare: takes a lost node's place"
						 : "");
	}
	c->run.options.cluster.least_agents = 2;
	m->state = MEMBER_READY; /* the node was a replica before, and has changed its stage */
	spares_admit(&c->members, m);
	assert_int_equal(m->move.use, USE_ALWAYS);
	m->move.use = USE_UNDECIDED;
	for (uint32_t i = 0; i < c->members.n; i++)
		if (i != NODE && member_stage(&c->run, &c->members.list[i]) ==
					 member_stage(&c->run, m))
			c->members.list[i].state = MEMBER_DEAD;
	spares_admit(&c->members, m);
	/* the node's stage has no other node, so plans need it */
	assert_int_equal(m->move.use, USE_UNDECIDED);
}

/* When a node that computes dies, the spare of its stage replaces it, and other spares still
 * wait. */
FIXTURE_TEST(a_spare_takes_the_place_of_a_lost_node)
{
	struct controller *c = *state;
	struct member *m = &c->members.list[NODE];
	struct member *elsewhere = &c->members.list[0], *gone = &c->members.list[NODE - 1];
	bool excluded[MSG_NODES] = { false };

	begin_waiting(c, m);
	assert_int_equal(member_stage(&c->run, gone), member_stage(&c->run, m));
	spares_exclude(&c->members, SPARES_NONE, excluded);
	assert_true(excluded[NODE] && !excluded[NODE - 1]);
	assert_ptr_equal(spares_for(&c->members, gone), m);
	assert_null(spares_for(&c->members, elsewhere));
	spares_replace(&c->members, elsewhere);
	/* the lost node is a spare itself, so no spare replaces it */
	spares_replace(&c->members, m);
	assert_true(spares_wait(&c->members, m));

	assert_true(member_apply(&c->run, gone, EVENT_LOST, "a test"));
	loop_act(&c->iteration);
	assert_false(spares_wait(&c->members, m));
	assert_int_equal(m->move.use, USE_ALWAYS);
	assert_int_equal(gone->move.use, USE_UNDECIDED);
}

/* A node that the operator marks, or that drains, may die before the next plan. Only one spare
 * replaces it. */
FIXTURE_TEST(one_loss_takes_one_spare)
{
	struct controller *c = *state;
	struct member *gone = &c->members.list[NODE - 1];
	struct member *first = &c->members.list[NODE], *second = &c->members.list[NODE + 1];

	first->move.use = second->move.use = USE_SPARE;
	assert_true(spares_wait(&c->members, first) && spares_wait(&c->members, second));
	spares_replace(&c->members, gone);
	assert_int_equal(first->move.use, USE_ALWAYS);
	assert_true(member_apply(&c->run, gone, EVENT_LOST, "a test"));
	loop_act(&c->iteration);
	assert_true(spares_wait(&c->members, second));
	c->run.epoch++; /* the node has returned, is in the next plan, and is lost a second time */
	spares_replace(&c->members, gone);
	assert_int_equal(second->move.use, USE_ALWAYS);
}

/* If a stage has two spares, a spare that did not fail often is taken first. */
FIXTURE_TEST(a_sound_spare_comes_before_one_that_failed_often)
{
	struct controller *c = *state;
	struct member *failed = &c->members.list[NODE], *sound = &c->members.list[NODE + 1];
	bool excluded[MSG_NODES] = { false };

	failed->move.failures = MANY;
	failed->move.failed_s = clock_wall_us() / 1000000;
	sound->move.use = USE_SPARE;
	assert_true(spares_wait(&c->members, failed) && spares_wait(&c->members, sound));
	spares_exclude(&c->members, SPARES_LATE, excluded);
	assert_true(excluded[failed->id] && !excluded[sound->id]);
	spares_replace(&c->members, &c->members.list[NODE - 1]);
	assert_false(spares_wait(&c->members, sound));
	assert_true(spares_wait(&c->members, failed));
}
