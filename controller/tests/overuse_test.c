/* overuse_test.c - a node with an admitted key sends far too many messages. The controller must
 * limit its own work, its journal and its memory. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "controller/controller.h"
#include "controller/operator/consoles.h"
#include "controller/run/journal.h"
#include "controller/setup.h"
#include "controller/tests/player.h"

enum { HOSTILE = 4 };

/* ---- single modules ---- */

TEST(a_quota_refills_with_time)
{
	struct rate_limit b = { 0 };
	int taken = 0;

	for (int i = 0; i < 100; i++)
		taken += rate_limit_take(&b, 1, 10, 2, 5000000);
	assert_int_equal(taken, 10);
	assert_false(rate_limit_take(&b, 1, 10, 2, 5400000));
	assert_true(rate_limit_take(&b, 1, 10, 2, 5500000));
	assert_false(rate_limit_take(&b, 2, 10, 2, 6000000));
	assert_true(rate_limit_take(&b, 10, 10, 2, 60000000));
	assert_false(rate_limit_take(&b, 11, 10, 2, 600000000));
}

TEST(a_number_is_added_once)
{
	struct number_set o = { 0 };

	for (int again = 0; again < 2; again++) {
		for (uint64_t i = 1; i <= 100000; i++)
			assert_true(number_set_add(&o, i << 20 | 1));
		for (uint64_t i = 1; i <= 100000; i++)
			assert_false(number_set_add(&o, i << 20 | 1));
		number_set_clear(&o);
	}
	assert_true(number_set_add(&o, 1));
	assert_false(number_set_add(&o, 1));
	number_set_fini(&o);
}

/* The journal limits the number of lines about one node, and counts the omitted lines. The limit
 * holds for all parts of the controller that write such lines. Lines about other nodes stay
 * complete. */
TEST(a_node_cannot_fill_the_journal)
{
	struct controller *c = controller_new();
	struct member *members = calloc(3, sizeof(*members));

	assert_true(c && members);
	c->members.list = members;
	c->members.n = 3;
	c->run.supervisor = -1;
	c->run.now_us = 1000000;
	for (int i = 0; i < 5000; i++)
		note(&c->run, NOTE_WARNING, 1, 0, "n01 again");
	assert_in_range(c->run.journal.n_notes, 100, 500);
	note(&c->run, NOTE_WARNING, 2, 0, "n02 once");
	assert_string_equal(c->run.journal.notes[c->run.journal.n_notes - 1].text, "n02 once");
	note(&c->run, NOTE_ALERT, 1, 'F', "n01 is out");
	assert_string_equal(c->run.journal.notes[c->run.journal.n_notes - 1].text, "n01 is out");
	c->run.now_us += 60000000;
	note(&c->run, NOTE_WARNING, 1, 0, "n01 later");
	assert_string_equal(c->run.journal.notes[c->run.journal.n_notes - 1].text, "n01 later");
	assert_non_null(strstr(c->run.journal.notes[c->run.journal.n_notes - 2].text,
			       "more lines were dropped"));
	consoles_fini(&c->run);
	free(members);
	free(c);
}

/* The journal, the log and consoles show texts that agents sent. A control character could add a
 * false line or command a terminal. Such characters, and bytes that are no UTF-8, become question
 * marks. */
TEST(a_line_of_the_journal_is_plain_text)
{
	static const struct {
		const char *given, *written;
	} rows[] = {
		{ "n01 warning: Jos\xc3\xa9 \xe2\x86\x92 \xf0\x9f\x9a\x82",
		  "n01 warning: Jos\xc3\xa9 \xe2\x86\x92 \xf0\x9f\x9a\x82" },
		{ "a\n12:00:00 error controller: b\r\x1b]0;c\x07\x7f",
		  "a?12:00:00 error controller: b??]0;c??" },
		{ "\xc2\x9b"
		  "2J",
		  "??2J" },                            /* a control character of two bytes */
		{ "\xc0\x8a \xe0\x82\x9b", "?? ???" }, /* overlong encodings of characters */
		{ "\xed\xa0\x80 \xf4\x90\x80\x80 \xff", "??? ???? ?" },
		{ "cut \xe2\x86", "cut ??" },
	};
	struct controller *c = controller_new();

	assert_non_null(c);
	c->run.supervisor = -1;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		note(&c->run, NOTE_AGENT, -1, 0, "%s", rows[i].given);
		assert_string_equal(c->run.journal.notes[i].text, rows[i].written);
	}
	consoles_fini(&c->run);
	free(c);
}

/* ---- a whole controller ---- */

static uint32_t times(const char *journal, const char *words)
{
	uint32_t n = 0;

	for (const char *at = journal; (at = strstr(at, words)); at += strlen(words))
		n++;
	return n;
}

static struct world *at_work(void)
{
	const char *options[] = { "--eval-every", "0", "--emulate", "regions",
				  "--time-scale", "1", NULL };
	struct world *w = world_new(options);

	WORLD_UNTIL(w, w->committed >= 2 && world_all_live(w));
	return w;
}

/* Waits until the controller has read all messages of the player. */
static void is_heard(struct world *w)
{
	uint64_t next = w->committed + 2;

	WORLD_UNTIL(w, w->committed >= next);
}

TEST(endless_troubles_are_limited)
{
	struct world *w = at_work();
	struct msg m = { .type = MSG_TROUBLE,
			 .u.trouble = { .refused_node = -1, .text = "I cannot stop" } };

	for (int i = 0; i < 60; i++)
		visitor_send(&w->players[HOSTILE].v, &m, POST_RELIABLE);
	is_heard(w);
	assert_in_range(times(w->console.journal, "I cannot stop"), 1, 22);
	assert_true(world_all_live(w));
	world_free(w);
}

TEST(endless_log_lines_are_limited)
{
	struct world *w = at_work();
	struct msg m = { .type = MSG_LOG,
			 .u.log = { .level = LOG_WARN, .text = "I cannot stop\x1b[2J\n" } };

	for (int i = 0; i < 60; i++)
		visitor_send(&w->players[HOSTILE].v, &m, POST_RELIABLE);
	is_heard(w);
	assert_in_range(times(w->console.journal, " warning: I cannot stop?[2J?\n"), 1, 22);
	assert_true(world_all_live(w));
	world_free(w);
}

TEST(contradicting_link_reports_are_limited)
{
	struct world *w = at_work();
	struct player *p = &w->players[HOSTILE];
	struct msg_link links[40];
	struct msg m = { .type = MSG_LINKS, .u.links = { .n_links = 40, .links = links } };

	/* The record contains a repeated message only once. */
	for (int i = 0; i < 40; i++)
		links[i] = (struct msg_link){ .from = HOSTILE,
					      .to = 0,
					      .measured_delay_s = 40 * p->emulates.delay_s[0] };
	visitor_send(&p->v, &m, POST_RELIABLE);
	is_heard(w);
	assert_null(strstr(w->console.journal, "link n04"));
	for (int i = 0; i < 300; i++)
		player_reports_delays(p, i % 2 ? 1 : 50);
	is_heard(w);
	assert_in_range(times(w->console.journal, "'s links take"), 1, 20);
	assert_in_range(times(w->console.journal, "link n04"), 0, 60);
	world_free(w);
}

/* Returns a route that visits the player's node. */
static const struct route *route_of(const struct player *p)
{
	for (uint32_t i = 0; i < p->n_routes; i++)
		for (uint32_t h = 0; h < p->routes[i].n_hops; h++)
			if (p->routes[i].nodes[h] == p->node)
				return &p->routes[i];
	fail_msg("none comes by");
	return NULL;
}

static int count_mine(void *context, const struct store_task *t)
{
	*(uint32_t *)context += t->node == HOSTILE;
	return 0;
}

/* The controller ignores repeated events, and events of tasks that it did not assign to the
 * sender. The controller neither stores nor records such events. */
TEST(endless_events_are_limited)
{
	const char *options[] = { "--eval-every", "0", NULL };
	struct world *w = world_new(options);
	struct player *p = &w->players[HOSTILE];
	struct msg_task_event events[16];
	struct msg m = { .type = MSG_REPORT };
	const struct route *r;
	struct store *s;
	char run[96];
	uint32_t mine = 0;

	w->waits = 3;
	WORLD_UNTIL(w, w->committed == 2 && p->iteration == 3);
	r = route_of(p);
	for (uint32_t i = 0; i < 16; i++)
		events[i] = (struct msg_task_event){ .type = WORK_STARTS,
						     .kind = i % 2 ? TASK_FORWARD : TASK_BACKWARD,
						     .node = HOSTILE,
						     .microbatch = r->microbatch,
						     .blocker = UINT32_MAX,
						     .attempt = r->attempt + (i % 4 > 1 ? i : 0),
						     .at_us = clock_monotonic_us(),
						     .arrived_us = clock_monotonic_us() };
	m.u.report = (struct msg_report){ .iteration = 3, .n_events = 16, .events = events };
	for (int i = 0; i < 100; i++)
		visitor_send(&p->v, &m, POST_RELIABLE);
	w->waits = 0;
	world_work(w);
	is_heard(w);
	snprintf(run, sizeof(run), "%s/run", w->door->folder);
	assert_int_equal(store_open(&s, run, NULL), 0);
	assert_int_equal(store_each_task(s, 3, count_mine, &mine, NULL), 0);
	assert_in_range(mine, 1, 4 * BATCHES);
	store_close(s);
	world_free(w);
}

TEST(messages_in_the_name_of_others_are_limited)
{
	struct world *w = at_work();
	struct msg m = { .type = MSG_PING };

	for (int i = 0; i < 250; i++)
		visitor_send(&w->players[HOSTILE].v, &m, POST_RELIABLE);
	WORLD_UNTIL(w, strstr(w->console.journal, "exceeded its quota"));
	WORLD_UNTIL(w, w->states[HOSTILE] == NODE_DEAD);
	is_heard(w);
	world_free(w);
}

static int32_t compare(struct visitor *v, struct world *w)
{
	static uint64_t id = 1000;
	struct msg m = { .type = MSG_COMMAND };

	m.u.command = (struct msg_command){ .id = ++id,
					    .verb = COMMAND_COMPARE,
					    .node = -1,
					    .peer = -1,
					    .value = 1,
					    .text = "best" };
	visitor_send(v, &m, POST_RELIABLE);
	for (int64_t give_up = clock_monotonic_us() + TEST_PATIENCE_US;
	     v->answered != id && clock_monotonic_us() < give_up;) {
		visitor_turn(v);
		world_turn(w);
	}
	assert_true(v->answered == id);
	return v->status;
}

/* The controller limits comparisons for one key. Consoles with another key still get theirs. */
TEST(endless_comparisons_are_limited)
{
	struct world *w = at_work();
	struct visitor watcher, other;
	int asked = 0;

	visitor_new(&watcher, w->door, KEYS_WATCHER, "watcher");
	visitor_come_in(&watcher, &w->console);
	visitor_attach(&watcher);
	while (compare(&watcher, w) == 0)
		assert_true(++asked < 100);
	assert_int_equal(watcher.status, -EAGAIN);
	assert_true(asked >= 4);
	visitor_new(&other, w->door, KEYS_WATCHER, "other");
	visitor_come_in(&other, &w->console);
	visitor_attach(&other);
	assert_int_equal(compare(&other, w), 0);
	visitor_free(&watcher);
	visitor_free(&other);
	world_free(w);
}
