/* lifecycle_test.c - the transitions of a member's state, with one row for each event, and the
 * requests that the transitions make. */

#include <stdio.h>

#include "base/tests/test.h"
#include "controller/members/lifecycle.h"
#include "controller/tests/under_way.h"
#include "controller/trust/exclude.h"

/* A row for each event. Its columns are the states before the event, and its letters the states
 * after the event. The letter of a state is at the state's index in `letters`; '=': no change; '.':
 * a pair that must not occur. The table was written independently of the table in lifecycle.c. */
static const struct {
	enum member_event event;
	const char *next;
} expected[] = {
	/* columns: the states before the event, AJSRgdULQFDX */
	{ EVENT_HELLO, "JJJJJJ...JJJ" },   { EVENT_HEARD, ".=======L=.." },
	{ EVENT_RETURN, "..........J." },  { EVENT_REINSTATE, ".LLL......L." },
	{ EVENT_WAIT, ".JJJJJ...=.." },    { EVENT_LEAVE, "......JJJ..." },
	{ EVENT_ASSIGN, ".SSSSS...=.." },  { EVENT_HAS_STAGE, ".=RRdd...=.." },
	{ EVENT_HOLDS, ".R=R.....==." },   { EVENT_RESTORE, ".ggg...g...." },
	{ EVENT_ABANDON, "====SR======" }, { EVENT_JOIN_SUMS, "...U..=....." },
	{ EVENT_ADMIT, "...L.LL....." },   { EVENT_REWIND, "=JJJJJJJJ===" },
	{ EVENT_QUIET, ".======Q==.." },   { EVENT_MARK, "AFFFFF===FDX" },
	{ EVENT_RETIRE, "......FFF..." },  { EVENT_BAR, ".FFFFF...FF." },
	{ EVENT_RECOVER, "=========J==" }, { EVENT_LOST, ".DDDDDDDDD.." },
	{ EVENT_DEPART, ".XXXXX...X.." },  { EVENT_MISS, "D........DDD" },
};

static const char letters[] = "AJSRgdULQFDX";

static struct member *in_state(struct controller *c, enum member_state state)
{
	struct member *m = &c->members.list[4];

	m->state = state;
	snprintf(m->why, sizeof(m->why), "before");
	c->run.record.refused_events = 0;
	c->run.requests = (struct requests){ .n_lost = 0 };
	return m;
}

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

FIXTURE_TEST(each_event_leads_to_one_state)
{
	struct controller *c = *state;

	assert_int_equal(sizeof(expected) / sizeof(expected[0]), MEMBER_EVENTS);
	assert_int_equal(sizeof(letters) - 1, MEMBER_STATES);
	for (uint32_t e = 0; e < MEMBER_EVENTS; e++)
		for (int s = 0; s < MEMBER_STATES; s++) {
			char to = expected[e].next[s];
			struct member *m = in_state(c, (enum member_state)s);
			bool done = member_apply(&c->run, m, expected[e].event, "after");

			if (done != (to != '.') ||
			    letters[m->state] != (to == '.' || to == '=' ? letters[s] : to))
				fail_msg("state %c, event %u: %c, not %c", letters[s], e,
					 letters[m->state], to);
			assert_int_equal(c->run.record.refused_events, !done);
			assert_string_equal(m->why, to == '.' || to == '=' ? "before" : "after");
		}
}

/* The loss of a replica is queued, so that other nodes take over its work. For any other lost
 * member, the loop is asked to look at the sums: the commit may have waited for the sum of the
 * member's copy. */
FIXTURE_TEST(a_lost_node_is_reported)
{
	struct controller *c = *state;

	for (int s = MEMBER_JOINING; s < MEMBER_DEAD; s++) {
		bool replica = s == MEMBER_SUMMING || s == MEMBER_LIVE || s == MEMBER_SUSPECT;

		member_apply(&c->run, in_state(c, (enum member_state)s), EVENT_LOST, "is gone");
		assert_int_equal(c->run.requests.n_lost, replica);
		assert_int_equal(c->run.requests.look_at_sums, !replica);
	}
	for (uint32_t e = 0; e < MEMBER_EVENTS; e++)
		for (int s = 0; s < MEMBER_STATES && e != EVENT_LOST && e != EVENT_DEPART; s++) {
			member_apply(&c->run, in_state(c, (enum member_state)s),
				     (enum member_event)e, "");
			assert_false(requests_any(&c->run.requests));
		}
}

/* Consoles see the same value for a member that fetches its stage and for a member that has its
 * stage. A change from one of these states to the other must not change since_us, because the
 * links of the member are judged from that time on. */
FIXTURE_TEST(only_a_shown_value_is_a_change)
{
	struct controller *c = *state;
	struct member *m = in_state(c, MEMBER_SYNCING);

	m->since_us = 5;
	c->run.now_us = 9;
	assert_true(member_apply(&c->run, m, EVENT_HAS_STAGE, NULL));
	assert_true(member_apply(&c->run, m, EVENT_JOIN_SUMS, NULL));
	assert_int_equal(m->since_us, 5);
	assert_int_equal(member_shown(m), NODE_SYNCING);
	assert_string_equal(m->why, "before");
	assert_true(member_apply(&c->run, m, EVENT_ADMIT, ""));
	assert_int_equal(m->since_us, 9);
	assert_int_equal(member_shown(m), NODE_LIVE);
	assert_string_equal(m->why, "");
}

/* A drain marks a node until its process ends. A mark of the operator stays after that. */
FIXTURE_TEST(a_drain_ends_with_the_process)
{
	static const struct {
		enum member_state from;
		enum member_event event;
	} ends[] = { { MEMBER_LIVE, EVENT_LOST }, { MEMBER_FAILED, EVENT_DEPART } };
	struct controller *c = *state;

	for (int marked = 0; marked < 2; marked++)
		for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
			struct member *m = in_state(c, ends[i].from);

			m->is_marked = marked;
			member_drain(&c->members, m, DRAIN_WANTED);
			assert_int_equal(member_shown(m), NODE_DRAINING);
			assert_int_equal(m->is_marked, marked);
			if (!marked)
				member_drain(&c->members, m, DRAIN_EXCLUDED);
			assert_true(m->is_marked);
			assert_true(member_apply(&c->run, m, ends[i].event, "left"));
			assert_int_equal(m->move.drain, DRAIN_NOT);
			assert_int_equal(m->is_marked, marked);
			assert_false(member_alive(m));
		}
}

/* A draining node is excluded because of bad data. The node stays excluded after its process has
 * ended. */
FIXTURE_TEST(an_excluded_node_that_drains_stays_excluded)
{
	struct controller *c = *state;
	struct member *m = in_state(c, MEMBER_LIVE);

	member_drain(&c->members, m, DRAIN_EXCLUDED);
	exclude_member(&c->members, m, "sent impossible numbers");
	assert_true(m->is_marked);
	assert_int_equal(m->move.drain, DRAIN_NOT);
	assert_int_equal(m->state, MEMBER_FAILED);
	/* The node's heartbeats announce the drain again */
	member_drain(&c->members, m, DRAIN_WANTED);
	assert_true(member_apply(&c->run, m, EVENT_DEPART, "drained"));
	assert_true(m->is_marked);
}
