/* formats_test.c - other formats change the times of links, and an iteration keeps the formats with
 * which it began. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tests/test.h"
#include "controller/network/formats.h"
#include "controller/network/link_table.h"
#include "controller/operator/acts.h"
#include "controller/operator/command.h"
#include "controller/operator/undo.h"
#include "controller/planning/request.h"
#include "controller/run/outcome.h"
#include "controller/tests/bare.h"
#include "controller/tests/under_way.h"

enum { TRIO = 3, PARAMETERS = 1 << 16 };

static const struct tensor_formats six = { FORMAT_Q6, FORMAT_Q8 };

/* Returns a cluster in which a transfer on a link takes 10 s. Its bytes take 8 s of this time. An
 * exchange of a sum between two nodes takes 4 s. */
static struct cluster *described(void)
{
	struct cluster *c = cluster_alloc(TRIO, 2, true);

	assert_non_null(c);
	c->bytes_s = calloc(TRIO * TRIO, sizeof(*c->bytes_s));
	assert_non_null(c->bytes_s);
	for (int i = 0; i < TRIO * TRIO; i++) {
		c->delay_s[i] = 10;
		c->bytes_s[i] = 8;
		c->sync_pair_s[i] = 4;
	}
	return c;
}

static struct controller *begin(void)
{
	struct controller *c = bare_controller(described(), 2);

	c->run.cluster_as_given = cluster_copy(c->run.cluster);
	return c;
}

static void end(struct controller *c)
{
	cluster_free(c->run.cluster_as_given);
	link_table_free(c->members.links);
	bare_free(c);
}

static void is_near(double a, double b)
{
	assert_true(a > b - 1e-9 && a < b + 1e-9);
}

/* Transfers showed that a link is three times as slow as described. The link stays three times as
 * slow in another format. A missing link stays missing. */
TEST(described_links_change_by_their_bytes)
{
	const double bytes = 8 * tensor_format_activation_share(FORMAT_Q6);
	struct controller *c = begin();
	struct cluster *other;

	c->run.cluster->delay_s[1] = 30;
	c->run.cluster->delay_s[2] = c->run.cluster_as_given->delay_s[2] = -1;
	assert_null(formats_cluster(&c->members, &c->run.cluster->formats));
	other = formats_cluster(&c->members, &six);
	is_near(other->delay_s[1], 3 * (2 + bytes));
	is_near(other->delay_s[2], -1);
	is_near(other->delay_s[3], 2 + bytes);
	is_near(other->sync_pair_s[3], 4 * tensor_format_sum_share(FORMAT_Q8));
	is_near(c->run.cluster->delay_s[3], 10); /* the run's own cluster is unchanged */
	formats_apply(&c->members, &six);
	is_near(c->run.cluster->delay_s[1], other->delay_s[1]);
	is_near(c->run.cluster_as_given->delay_s[1], 2 + bytes);
	assert_true(formats_equal(&c->run.cluster->formats, &six));
	formats_apply(&c->members, &(struct tensor_formats){ FORMAT_FP32, FORMAT_FP32 });
	is_near(c->run.cluster->delay_s[1], 30);
	is_near(c->run.cluster->sync_pair_s[1], 4);
	cluster_free(other);
	end(c);
}

/* The bandwidth of a measured link gives the time for the bytes. The rest of its transfer time
 * stays the same in another format. */
TEST(measured_links_change_by_their_bytes)
{
	struct controller *c = begin();
	struct training *t = &c->run.training;
	struct link_table *links = c->members.links = link_table_new(TRIO);
	double whole, part;

	t->hyper.batch = 1;
	t->hyper.sequence = 64;
	t->model.dim = 64;
	t->model.n_stages = 2;
	t->stage_parameters[1] = PARAMETERS;
	for (uint32_t i = 0; i < TRIO * TRIO; i++)
		links->links[i] = (struct link_seen){
			.known = true, .latency_s = 0.5, .bandwidth = 1000, .transfer_s = 20
		};
	formats_set_bytes(links, t, &c->run.cluster->formats);
	whole = links->activation_bytes;
	assert_true(links->sum_bytes == 4.0 * PARAMETERS);
	link_table_apply_all(links, c->run.cluster);
	c->run.cluster->delay_s[1] += 3;
	formats_apply(&c->members, &six);
	part = links->activation_bytes;
	assert_true(part == (double)tensor_format_activation_bytes(FORMAT_Q6, 64 * 64, 64));
	is_near(c->run.cluster->delay_s[1], 0.5 + part / 1000 + 3);
	is_near(link_table_at(links, 0, 1)->transfer_s, 20 - (whole - part) / 1000);
	is_near(c->run.cluster->sync_pair_s[1], link_table_sync_pair_s(links, 0, 1));
	end(c);
}

/* The next request has the format that the operator wants. The iteration under way keeps its
 * formats. */
TEST(a_command_changes_what_is_wanted)
{
	struct msg_command m = { .verb = COMMAND_SUM_WIRE, .value = FORMAT_BF16 };
	struct controller *c = begin();
	struct tensor_formats wanted = c->run.wanted.formats;
	struct planner_request q;
	bool excluded[TRIO];
	struct outcome o;

	assert_false(acts_take_format(&m, &wanted, &o));
	assert_string_equal(o.text, "sums travel in fp32, q8, q6 or q4");
	m.value = -1;
	assert_false(acts_take_format(&m, &wanted, &o));
	m.value = FORMAT_COUNT;
	assert_false(acts_take_format(&m, &wanted, &o));
	m.value = FORMAT_Q8;
	assert_true(acts_take_format(&m, &wanted, &o));
	m.verb = COMMAND_WIRE;
	m.value = FORMAT_Q4;
	assert_false(acts_take_format(&m, &wanted, &o));
	m.value = FORMAT_Q6;
	assert_true(acts_take_format(&m, &wanted, &o));
	assert_true(formats_equal(&wanted, &six));
	c->run.wanted.formats = wanted;
	replan_request(&c->members, &q, excluded);
	assert_true(formats_equal(&q.formats, &six));
	assert_false(formats_equal(&c->run.cluster->formats, &six));
	end(c);
}

/* Sends a command as the holder of the lease, and checks the wanted formats afterwards. */
static void commands(struct controller *c, enum command_verb verb, int64_t value,
		     enum tensor_format wire, enum tensor_format sum_wire)
{
	struct console operator = { .name = "alice", .may_command = true };
	struct msg_command m = { .verb = (uint8_t)verb, .node = -1, .peer = -1, .value = value };

	command_receive(&c->operators, &operator, & m);
	assert_int_equal(c->run.wanted.formats.wire, wire);
	assert_int_equal(c->run.wanted.formats.sum_wire, sum_wire);
}

/* The operator can undo changes of formats in any order, but can undo each change only once.
 * Undoing a change of the activations' format leaves the format of sums as it is. Undoing a change
 * of the sums' format leaves the format of activations as it is. Undoing a change requests a
 * plan. */
TEST_WITH(a_change_of_format_is_undone, under_way_begin, under_way_end)
{
	struct controller *c = *state;
	uint64_t asked;

	c->run.cluster_as_given = cluster_copy(c->run.cluster);
	strcpy(c->operators.lease, "alice");
	commands(c, COMMAND_WIRE, FORMAT_Q8, FORMAT_Q8, FORMAT_FP32);
	commands(c, COMMAND_SUM_WIRE, FORMAT_Q6, FORMAT_Q8, FORMAT_Q6);
	commands(c, COMMAND_WIRE, FORMAT_Q6, FORMAT_Q6, FORMAT_Q6);
	asked = c->planning.wanted_id;
	commands(c, COMMAND_UNDO, 0, FORMAT_Q8, FORMAT_Q6);
	assert_true(c->planning.wanted_id > asked);
	assert_string_equal(c->run.journal.notes[c->run.journal.n_notes - 1].text,
			    "wire q6 -> q8 (alice), from it2");
	commands(c, COMMAND_UNDO, 1, FORMAT_FP32, FORMAT_Q6);
	commands(c, COMMAND_UNDO, 0, FORMAT_FP32, FORMAT_FP32);
	asked = c->planning.wanted_id;
	commands(c, COMMAND_UNDO, 0, FORMAT_FP32, FORMAT_FP32);
	commands(c, COMMAND_UNDO, 1, FORMAT_FP32, FORMAT_FP32);
	assert_int_equal(c->planning.wanted_id, asked);
}

/* A comparison is planned with the times of the compared formats. The run does not change. */
TEST_WITH(other_formats_are_compared, under_way_begin, under_way_end)
{
	struct controller *c = *state;
	struct console watcher = { .name = "bob" };
	struct msg_command m = { .verb = COMMAND_COMPARE, .node = -1, .peer = -1 };
	struct planned *a = NULL;

	c->run.cluster_as_given = cluster_copy(c->run.cluster);
	strcpy(m.text, "wire q6");
	command_receive(&c->operators, &watcher, &m);
	for (int i = 0; i < 3000 && !a; i++) {
		a = planner_take(c->planning.planner);
		if (!a)
			usleep(10000);
	}
	assert_non_null(a);
	assert_true(a->kind == PLANNER_COMPARE && a->plan);
	assert_int_equal(a->formats.wire, FORMAT_Q6);
	assert_int_equal(a->formats.sum_wire, FORMAT_FP32);
	assert_int_equal(c->run.wanted.formats.wire, FORMAT_FP32);
	planned_free(a);
}
