/* gpu_reports_test.c - how the controller handles the figures of GPUs in heartbeats. Tests which
 * figures it sends to consoles, which it drops, and when it warns. The test sets the time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "controller/controller.h"
#include "controller/joining/agents.h"
#include "controller/members/members.h"
#include "controller/operator/console_messages.h"
#include "controller/tests/under_way.h"

enum { NODE = 3 };

/* Sends heartbeats with these figures for a number of seconds. */
static void report(struct controller *c, struct gpu_figures gpu, int seconds)
{
	struct member *m = &c->members.list[NODE];

	for (int i = 0; i < 10 * seconds; i++) {
		struct msg_heartbeat h = { .beat = m->beat.beat + 1, .gpu = gpu };

		c->run.now_us += SECOND / 10;
		h.now_us = c->run.now_us;
		members_heartbeat(&c->iteration, m, &h);
	}
}

static void report_throttling(struct controller *c, uint8_t throttling, int seconds)
{
	report(c, (struct gpu_figures){ GPU_ALL, 90, 88, throttling, 1, 2, 3, 4 }, seconds);
}

/* Returns the number of warnings, and the newest warning in *text. */
static int warnings(const struct controller *c, const char **text)
{
	int n = 0;

	for (uint32_t i = 0; i < c->run.journal.n_notes; i++)
		if (strstr(c->run.journal.notes[i].text, "GPU is throttled")) {
			assert_int_equal(c->run.journal.notes[i].kind, NOTE_WARNING);
			assert_int_equal(c->run.journal.notes[i].node, NODE);
			*text = c->run.journal.notes[i].text;
			n++;
		}
	return n;
}

static struct gpu_figures shown(const struct controller *c)
{
	struct msg m;

	node_message(&m, &c->members.list[NODE], &c->run.cluster->nodes[NODE], 1, 0, 0);
	return m.u.see_node.gpu;
}

static struct controller *on_gpus(void **state)
{
	struct controller *c = *state;

	strcpy(c->members.list[NODE].hello.device, "cuda:0:bf16 sm_90 H100");
	return c;
}

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

FIXTURE_TEST(figures_reach_consoles)
{
	struct controller *c = on_gpus(state);
	const struct gpu_figures g = { GPU_ALL, 97, 71, GPU_POWER_CAP, 643210, 700000, 62464,
				       81920 };
	struct gpu_figures s;

	c->members.list[NODE].shown.is_stale = false;
	report(c, g, 1);
	assert_true(c->members.list[NODE].shown.is_stale);
	s = shown(c);
	assert_memory_equal(&s, &g, sizeof(g));
	c->members.list[NODE].shown.is_stale = false;
	report(c, g, 1); /* the controller does not repeat the warning */
	assert_false(c->members.list[NODE].shown.is_stale);
}

FIXTURE_TEST(a_node_without_a_gpu_has_no_figures)
{
	struct controller *c = on_gpus(state);
	const char *text;

	strcpy(c->members.list[NODE].hello.device, "pretend");
	report_throttling(c, GPU_HEAT, 1);
	assert_int_equal(shown(c).known, 0);
	assert_int_equal(shown(c).temperature_c, 0);
	assert_int_equal(warnings(c, &text), 0);
}

FIXTURE_TEST(more_memory_than_there_is_is_dropped)
{
	struct controller *c = on_gpus(state);

	report(c, (struct gpu_figures){ .known = GPU_ALL, .memory_used_mib = 2, .memory_mib = 1 },
	       1);
	assert_int_equal(shown(c).known, GPU_ALL & ~GPU_MEMORY);
	assert_int_equal(shown(c).memory_used_mib, 0);
}

FIXTURE_TEST(a_warning_is_written_once_for_each_onset)
{
	struct controller *c = on_gpus(state);
	const char *text;

	report_throttling(c, 0, 5);
	report_throttling(c, GPU_POWER_CAP, 5); /* a power cap is normal, so there is no warning */
	assert_int_equal(warnings(c, &text), 0);
	report_throttling(c, GPU_HEAT, 200);
	assert_int_equal(warnings(c, &text), 1);
	assert_string_equal(text, "n03: its GPU is throttled: heat, at 88 C");
	for (int i = 0; i < 10; i++) { /* short breaks in the throttling cause no further warning */
		report_throttling(c, 0, 20);
		report_throttling(c, GPU_HEAT | GPU_POWER_CAP, 1);
	}
	assert_int_equal(warnings(c, &text), 1);
	/* Another reason for throttling causes another warning */
	report_throttling(c, GPU_HEAT | GPU_POWER_BRAKE, 10);
	assert_int_equal(warnings(c, &text), 2);
	assert_string_equal(text, "n03: its GPU is throttled: power brake, at 88 C");
	report_throttling(c, 0, 61);
	report_throttling(c, GPU_HEAT | GPU_HARDWARE, 10);
	assert_int_equal(warnings(c, &text), 3);
	assert_string_equal(text, "n03: its GPU is throttled: heat, hardware, at 88 C");
}

/* If the agent reports no temperature, the warning contains none. */
FIXTURE_TEST(a_warning_names_only_what_is_known)
{
	struct controller *c = on_gpus(state);
	const char *text;

	report(c, (struct gpu_figures){ .known = GPU_THROTTLING, .throttling = GPU_HARDWARE }, 1);
	assert_int_equal(warnings(c, &text), 1);
	assert_string_equal(text, "n03: its GPU is throttled: hardware");
}

struct recorded {
	int n;
	int node;
	char text[256];
};

static int see_moment(void *context, const struct store_moment *m)
{
	struct recorded *r = context;

	if (strcmp(m->kind, "gpu") != 0)
		return 0;
	r->n++;
	r->node = m->node;
	snprintf(r->text, sizeof(r->text), "%s", m->text);
	return 0;
}

FIXTURE_TEST(figures_are_recorded_at_most_every_ten_seconds)
{
	struct controller *c = on_gpus(state);
	struct recorded r = { 0 };

	c->members.list[NODE].beat.gpu.known = GPU_UTILISATION;
	c->run.record.gpus_us = c->run.now_us;
	under_way_all_is_done(c);
	under_way_all_tell_their_sums(c);
	assert_in_range(c->run.now_us - c->run.record.gpus_us, 0, 10 * SECOND - 1);
	assert_int_equal(store_each_moment(c->run.record.store, 0, see_moment, &r, NULL), 0);
	assert_int_equal(r.n, 0);
}

/* At a commit, the controller writes the figures to the record and to the events. Nodes without
 * figures are omitted. */
FIXTURE_TEST(figures_are_recorded_with_a_commit)
{
	struct controller *c = on_gpus(state);
	struct recorded r = { 0 };
	char *events = NULL;
	size_t size = 0;

	c->run.now_us += 10 * SECOND;
	c->run.record.jsonl = open_memstream(&events, &size);
	assert_non_null(c->run.record.jsonl);
	c->members.list[NODE].beat.gpu =
		(struct gpu_figures){ GPU_ALL & ~GPU_MEMORY, 97, 71, GPU_HEAT | GPU_POWER_CAP,
				      643210, 700000, 0, 0 };
	under_way_all_is_done(c);
	under_way_all_tell_their_sums(c);
	fclose(c->run.record.jsonl);
	c->run.record.jsonl = NULL;
	assert_int_equal(store_each_moment(c->run.record.store, 0, see_moment, &r, NULL), 0);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.node, NODE);
	assert_string_equal(r.text, "{\"utilisation\":97,\"power_mw\":643210,"
				    "\"power_limit_mw\":700000,\"temperature_c\":71,"
				    "\"throttling\":\"heat, power limit\"}");
	assert_non_null(strstr(events, "{\"event\":\"gpu\",\"node\":3,\"iteration\":1,"
				       "\"utilisation\":97,"));
	free(events);
}
