/* Tests fleets: what a file gives, what a measured cluster gives, and errors that name the wrong
 * entry. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "schedule/fleet/candidate.h"
#include "schedule/fleet/holds.h"
#include "schedule/format/request.h"
#include "schedule/tests/fleet_fixture.h"

#define HEAD "{\"format\": \"skippipe.fleet/1\", \"name\": \"test\", \"machines\": ["
#define H100 "{\"name\": \"a\", \"place\": \"Iowa\", \"device\": \"H100\"}"

static const char good[] =
	HEAD "{\"name\": \"big\", \"count\": 2, \"cards\": 2, \"place\": \"Iowa\","
	     " \"device\": \"H200\", \"price_per_hour\": 8, \"spot\": true},"
	     "{\"name\": \"home\", \"place\": \"attic\", \"tokens_per_s\": 1000,"
	     " \"memory_gb\": 16, \"up_mbit_s\": 80, \"down_mbit_s\": 800}],"
	     "\"links\": [{\"a\": \"Iowa\", \"b\": \"attic\", \"latency_ms\": 20,"
	     " \"bandwidth_mbit_s\": 400}]}";

static struct fleet *parse(const char *text)
{
	struct model_shape shape = fleet_shape(4);
	struct error err = { "" };
	struct fleet *f = NULL;

	if (fleet_of_text(text, &shape, &f, &err) != 0)
		fail_msg("%s", err.text);
	return f;
}

TEST(a_fleet_has_a_node_for_each_card)
{
	struct fleet *f = parse(good);
	char name[FLEET_NAME];

	assert_int_equal(f->n_nodes, 5);
	assert_int_equal(f->n_machines, 3);
	assert_int_equal(f->nodes[2].machine, 1);
	fleet_node_name(f, 3, name);
	assert_string_equal(name, "big-2.2");
	fleet_node_name(f, 4, name);
	assert_string_equal(name, "home");
	assert_int_equal(f->entries[0].speed, FLEET_SHARE_MEASURED);
	assert_true(f->entries[0].is_spot);
	assert_true(isnan(f->entries[1].price_per_hour));
	fleet_free(f);
}

/* A long name is cut after a whole character, so that it stays valid text in JSON. */
TEST(a_long_name_is_cut_between_characters)
{
	static const char head[] = HEAD "{\"name\": \"";
	char text[512], name[FLEET_NAME];

	for (int letters = 0; letters < 3; letters++) {
		struct fleet *f;

		snprintf(text, sizeof(text), "%s%.*s%s%s", head, letters, "xx",
			 "\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac"
			 "\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac",
			 "\", \"place\": \"Iowa\", \"device\": \"H100\", \"count\": 2}]}");
		f = parse(text);
		fleet_node_name(f, 1, name);
		/* Before its number, a name has 48 bytes at most: 16 euro signs of three bytes
		 * each. After one or two letters, only 15 euro signs fit. */
		assert_int_equal(strlen(name), (size_t)(letters ? 45 + letters : 48) + 2);
		assert_string_equal(name + strlen(name) - 2, "-2");
		fleet_free(f);
	}
}

TEST(speeds_are_shares_of_the_card_or_measured)
{
	struct fleet *f = parse(good);
	/* 1,000 tokens need 3 * (4 layers * 2e11 + 4e10) operations */
	double measured = 1000 * 3 * (4 * 2e11 + 4e10) / 1000;

	assert_true(fabs(f->entries[0].flop_per_s / (0.442 * 989e12) - 1) < 1e-9);
	assert_true(fabs(f->entries[1].flop_per_s / measured - 1) < 1e-9);
	assert_true(isinf(f->entries[1].bytes_per_s));
	fleet_free(f);
}

TEST(links_are_no_faster_than_their_ends)
{
	struct fleet *f = parse(good);
	size_t there = 0 * 5 + 4, back = 4 * 5 + 0;

	assert_true(fabs(f->latency_s[there] - 0.02) < 1e-12);
	/* 400 Mbit/s, as the file gives for the link */
	assert_true(fabs(f->bandwidth[there] - 50e6) < 1);
	/* 80 Mbit/s, the upload of the attic */
	assert_true(fabs(f->bandwidth[back] - 10e6) < 1);
	/* A link inside a machine is faster */
	assert_true(f->latency_s[0 * 5 + 1] < f->latency_s[0 * 5 + 2]);
	fleet_free(f);
}

static const struct {
	const char *text;
	const char *says[3]; /* texts that the message must contain */
} bad[] = {
	{ HEAD "{\"name\": \"a\", \"place\": \"Iowa\", \"device\": \"H101\"}]}",
	  { "machines[0] (\"a\").device", "no card \"H101\"", "RTX 4090" } },
	{ HEAD "{\"name\": \"a\", \"place\": \"Iowa\"}]}",
	  { "machines[0] (\"a\")", "tokens_per_s" } },
	{ HEAD "{\"name\": \"a\", \"place\": \"Iowa\", \"tokens_per_s\": 5}]}",
	  { "machines[0] (\"a\").memory_gb", "missing" } },
	{ HEAD H100 ", " H100 "]}", { "machines[1] (\"a\").name", "machines[0] has it too" } },
	{ HEAD "{\"name\": \"a\", \"place\": \"Iowa\", \"device\": \"H100\", \"cost\": 1}]}",
	  { "machines[0] (\"a\").cost", "unknown key" } },
	{ HEAD "{\"name\": \"a\", \"place\": \"Iowa\", \"device\": \"H100\", \"count\": 1001}]}",
	  { "machines[0] (\"a\").count", "1 to 1000" } },
	{ HEAD H100 ", {\"name\": \"b\", \"place\": \"attic\", \"device\": \"H100\"}]}",
	  { "\"Iowa\" (machines[0])", "\"attic\" (machines[1])", "add one" } },
	{ HEAD H100 "], \"links\": [{\"a\": \"Iowa\", \"b\": \"Iowa\", \"latency_ms\": 1,"
		    " \"bandwidth_mbit_s\": 9}, {\"a\": \"Iowa\", \"b\": \"Iowa\","
		    " \"latency_ms\": 2, \"bandwidth_mbit_s\": 9}]}",
	  { "links[1]", "links[0] is between \"Iowa\" and \"Iowa\" too" } },
	{ HEAD H100 "], \"links\": [{\"a\": \"Iowa\", \"b\": \"Ohio\", \"latency_ms\": 1,"
		    " \"bandwidth_mbit_s\": 9}]}",
	  { "links[0].b", "no machine is in \"Ohio\"" } },
	{ HEAD H100 "], \"links\": \"no_such_file.json\"}", { "links", "no_such_file.json" } },
	{ HEAD "]}", { "machines", "expected 1 to 1000 cards" } },
};

TEST(errors_name_the_entry)
{
	struct model_shape shape = fleet_shape(4);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct fleet *f = NULL;
		struct error err = { "" };

		assert_int_equal(fleet_of_text(bad[i].text, &shape, &f, &err) != 0, true);
		assert_null(f);
		for (int k = 0; k < 3 && bad[i].says[k]; k++)
			if (!strstr(err.text, bad[i].says[k]))
				fail_msg("\"%s\" is not in: %s", bad[i].says[k], err.text);
	}
}

TEST(a_missing_price_is_named)
{
	struct fleet *f = parse(good);
	struct error err = { "" };

	assert_int_equal(fleet_check_prices(f, &err), -EINVAL);
	assert_non_null(strstr(err.text, "machines[1] (\"home\").price_per_hour"));
	fleet_free(f);
}

/* A layer takes 1.8 GB, and the embedding and head in stage 0 take 0.36 GB. */
TEST(a_model_that_does_not_fit_says_by_how_much)
{
	struct model_shape shape = fleet_shape(40);
	struct fleet *f =
		parse(HEAD "{\"name\": \"a\", \"place\": \"Iowa\", \"tokens_per_s\": 5,"
			   " \"memory_gb\": 16, \"count\": 2}, {\"name\": \"b\", \"place\":"
			   " \"Iowa\", \"tokens_per_s\": 5, \"memory_gb\": 1}]}");
	struct candidate_frame frame = { .fleet = f, .shape = &shape, .batch = 4, .of_stages = 1 };
	struct error err = { "" };

	assert_int_equal(holds_model(&frame, 1, 64, &err), PLAN_INFEASIBLE);
	assert_non_null(strstr(err.text, "holds 16 of the 40 layers"));
	assert_non_null(strstr(err.text, "stage 0 on a-1"));
	assert_non_null(strstr(err.text, "43.3 GB are missing (1.8 GB a layer)"));
	assert_non_null(strstr(err.text, "1 cards, b first, hold no layer"));
	assert_non_null(strstr(err.text, "It would fit with 3 more like a-1"));
	shape.n_layers = 16;
	assert_int_equal(holds_model(&frame, 1, 64, &err), 0);
	shape.end_weights = 2e9;
	assert_int_equal(holds_model(&frame, 1, 64, &err), PLAN_INFEASIBLE);
	assert_non_null(strstr(err.text, "no card holds stage 0"));
	fleet_free(f);
}

/* Makes a candidate of the fleet `good` with an unequal cut: nodes 0 and 1 have stage 0, without
 * layers, nodes 2 and 3 have stage 1 with three layers, and node 4 has stage 2 with one layer. */
static void unequal(struct candidate *c, const struct candidate_frame *f)
{
	static const int stages[] = { 0, 0, 1, 1, 2 };

	candidate_init(c, f);
	c->n_stages = 3;
	c->layers[0] = 0;
	c->layers[1] = 3;
	c->layers[2] = 1;
	memcpy(c->stage_of, stages, sizeof(stages));
}

TEST(the_cluster_that_is_written_is_the_one_that_was_planned)
{
	struct model_shape shape = fleet_shape(4);
	struct fleet *f = parse(good);
	struct candidate_frame frame = { .fleet = f, .shape = &shape, .batch = 4, .of_stages = 1 };
	struct candidate c;
	struct cluster *planned, *read;
	struct error err = { "" };
	char *text;

	unequal(&c, &frame);
	assert_true(candidate_is_possible(&c, &frame));
	planned = candidate_cluster(&c, &frame);
	text = candidate_cluster_text(&c, &frame);
	assert_non_null(text);
	if (cluster_parse(text, strlen(text), &read, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(read->microbatches_per_data_node, 2);
	for (int s = 0; s < 3; s++)
		assert_true(read->work[s] == planned->work[s]);
	for (size_t i = 0; i < 25; i++) {
		assert_true(fabs(read->delay_s[i] - planned->delay_s[i]) < 1e-12 || i % 6 == 0);
		assert_true(fabs(read->bytes_s[i] - planned->bytes_s[i]) < 1e-12 || i % 6 == 0);
		assert_true(fabs(read->sync_pair_s[i] - planned->sync_pair_s[i]) < 1e-9 ||
			    i % 6 == 0);
	}
	/* On the same machines, three layers take three times as long as one. */
	assert_true(fabs(cluster_task_s(read, 2, 1, TASK_FORWARD) /
				 stage_cost_times(&shape, &f->entries[0], 1, 1, 0).forward_s -
			 3) < 1e-9);
	free(text);
	cluster_free(planned);
	cluster_free(read);
	candidate_fini(&c);
	fleet_free(f);
}

TEST(a_measured_cluster_is_a_fleet)
{
	struct model_shape shape = fleet_shape(6);
	struct fleet *f = parse(good), *again;
	struct candidate_frame frame = { .fleet = f, .shape = &shape, .batch = 4, .of_stages = 1 };
	struct candidate c;
	struct cluster *cluster;
	struct error err = { "" };

	unequal(&c, &frame);
	for (int s = 0; s < 3; s++)
		c.layers[s] = 2;
	cluster = candidate_cluster(&c, &frame);
	if (fleet_of_cluster(cluster, &shape, &again, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(again->n_nodes, 5);
	for (int i = 0; i < 5; i++) {
		const struct fleet_machines *was = fleet_machines_of(f, i),
					    *is = fleet_machines_of(again, i);

		assert_true(fabs(is->flop_per_s / was->flop_per_s - 1) < 1e-6);
		assert_true(is->memory_bytes <= was->memory_bytes);
		assert_true(candidate_fit(&c, i, &frame).slots ==
			    stage_cost_fit(&shape, is, 2, c.stage_of[i] == 0, 1, 1).slots);
		for (int j = 0; j < 5; j++) {
			size_t at = (size_t)(i * 5 + j);

			if (i == j)
				continue;
			assert_true(fabs(again->latency_s[at] - f->latency_s[at]) < 1e-9);
			assert_true(fabs(again->bandwidth[at] / f->bandwidth[at] - 1) < 1e-6);
		}
	}
	free(cluster->bytes_s);
	cluster->bytes_s = NULL;
	assert_int_equal(fleet_of_cluster(cluster, &shape, &again, &err), -EINVAL);
	cluster_free(cluster);
	candidate_fini(&c);
	fleet_free(again);
	fleet_free(f);
}

TEST(blocks_are_recomputed_where_memory_is_short)
{
	struct model_shape shape = fleet_shape(4);
	struct fleet_machines card = { .memory_bytes = 8.5e9 };
	struct stage_fit one = stage_cost_fit(&shape, &card, 4, false, 1, 1);
	struct stage_fit many = stage_cost_fit(&shape, &card, 4, false, 1, 3);

	/* Without microbatches the stage takes 7.8 GB. The remaining 0.7 GB hold one microbatch of
	 * 0.4 GB, or 43 microbatches of 16 MB if blocks are recomputed. */
	assert_int_equal(one.slots, 1);
	assert_int_equal(one.level, SHAPE_NORMS);
	assert_int_equal(many.slots, 43);
	assert_int_equal(many.level, SHAPE_BLOCK);
}
