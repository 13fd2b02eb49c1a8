/* link_table_test.c - how measured links are converted to delays and JSON, and how unknown links
 * are estimated. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tests/test.h"
#include "controller/network/link_table.h"

enum { N = 6 };

static void set(struct link_table *t, uint32_t a, uint32_t b, double latency_s, double bandwidth)
{
	*link_table_at(t, a, b) = *link_table_at(t, b, a) = (struct link_seen){
		.known = true, .latency_s = (float)latency_s, .bandwidth = bandwidth
	};
}

static struct link_table *made(void)
{
	struct link_table *t = link_table_new(N);

	assert_non_null(t);
	t->activation_bytes = 1e5;
	t->sum_bytes = 3e6;
	t->replicas = 3;
	return t;
}

TEST(a_transfer_takes_its_latency_and_its_bytes)
{
	struct link_table *t = made();

	set(t, 0, 1, 0.1, 1e6);
	assert_true(fabs(link_table_transfer_s(t, 0, 1, 5e5) - 0.6) < 1e-6);
	assert_true(link_table_transfer_s(t, 0, 2, 1) < 0); /* the link is unknown */
	link_table_at(t, 0, 1)->unreachable = true;
	assert_true(link_table_transfer_s(t, 0, 1, 1) < 0);
	/* the opposite direction is another link */
	assert_true(link_table_transfer_s(t, 1, 0, 1) > 0);
	link_table_free(t);
}

TEST(a_node_is_isolated_if_all_links_that_were_tried_fail)
{
	struct link_table *t = link_table_new(N);

	assert_false(link_table_isolates(t, 2)); /* no link of node 2 was tried */
	*link_table_at(t, 0, 2) = (struct link_seen){ .known = true, .unreachable = true };
	assert_false(link_table_isolates(t, 2) || link_table_isolates(t, 0));
	*link_table_at(t, 1, 2) = (struct link_seen){ .known = true, .unreachable = true };
	*link_table_at(t, 2, 0) = (struct link_seen){ .known = true };
	*link_table_at(t, 3, 2) = (struct link_seen){ .known = true, .estimated = true };
	assert_true(link_table_isolates(t, 2));
	assert_false(link_table_isolates(t, 0) || link_table_isolates(t, 1));
	link_table_at(t, 1, 2)->unreachable = false;
	assert_false(link_table_isolates(t, 2));
	link_table_at(t, 2, 0)->unreachable = true;
	*link_table_at(t, 2, 1) = (struct link_seen){ .known = true, .unreachable = true };
	assert_true(link_table_isolates(t, 2)); /* no connection from node 2 succeeds */
	link_table_free(t);
}

/* In the execution model, a sum over r replicas takes 2 (r - 1) / r times sync_pair_s. Here r is
 * 3. The result must equal the time in which a slice of the gradient is exchanged twice. */
TEST(a_sum_is_two_exchanges)
{
	struct link_table *t = made();
	double pair_s;

	set(t, 2, 3, 0.05, 1e7);
	pair_s = link_table_sync_pair_s(t, 2, 3);
	assert_true(fabs(2 * 2.0 / 3 * pair_s - 2 * (0.05 + 1e6 / (0.75 * 1e7))) < 1e-6);
	link_table_free(t);
}

/* A tensor occupies its link for the part of the delay beyond the latency. The cluster stores this
 * part as bytes_s, converted to the size of the tensor in fp32. */
TEST(the_bytes_of_a_link_take_the_rest_of_its_delay)
{
	struct link_table *t = made();
	struct cluster *c = cluster_alloc(N, 2, true);

	c->bytes_s = alloc_array(N * N, sizeof(*c->bytes_s));
	c->formats.wire = FORMAT_BF16;
	set(t, 0, 1, 0.05, 1e7);
	link_table_apply(t, c, 0, 1, 0.25);
	assert_true(c->delay_s[1] == 0.25 && fabs(c->bytes_s[1] - 0.4) < 1e-6);
	assert_true(fabs(cluster_occupied_s(c, 0, 1) - 0.2) < 1e-6);
	/* the delay is shorter than the probed latency, so bytes_s is 0 */
	link_table_apply(t, c, 0, 1, 0.02);
	assert_true(c->bytes_s[1] == 0 && cluster_occupied_s(c, 0, 1) == 0);
	cluster_free(c);
	link_table_free(t);
}

/* Nodes 0, 1 and 2 are in one place, and nodes 3, 4 and 5 in another. Only the link from node 0
 * to node 3 was measured between the places. The other links between the two places are estimated
 * from this link. */
TEST(unmeasured_links_are_like_others_between_their_places)
{
	struct link_table *t = made();

	set(t, 0, 1, 0.001, 1e9);
	set(t, 1, 2, 0.001, 1e9);
	set(t, 3, 4, 0.001, 1e9);
	set(t, 4, 5, 0.001, 1e9);
	set(t, 0, 3, 0.1, 1e6);
	link_table_at(t, 2, 5)->known = link_table_at(t, 2, 5)->unreachable = true;
	link_table_estimate(t, 0.003);
	assert_true(fabs((double)link_table_at(t, 2, 4)->latency_s - 0.1) < 1e-6);
	assert_true(link_table_at(t, 2, 4)->estimated && !link_table_at(t, 0, 3)->estimated);
	assert_true(fabs((double)link_table_at(t, 0, 2)->latency_s - 0.001) < 1e-6);
	assert_true(link_table_at(t, 2, 5)->unreachable); /* known links do not change */
	link_table_free(t);
}

TEST(a_written_table_is_read_back)
{
	struct link_table *t = made(), *back;
	struct cluster *c = cluster_alloc(N, 2, true), *read;
	struct error err = { "" };
	char *text;

	c->stages[0] = c->stages[1] = 3;
	c->microbatches_per_data_node = 2;
	for (uint32_t i = 0; i < N; i++)
		for (uint32_t j = 0; j < N; j++)
			if (i != j)
				set(t, i, j, 0.01 * (i + j), 1e6 * (1 + i));
	link_table_at(t, 1, 4)->unreachable = true;
	*link_table_at(t, 2, 5) = (struct link_seen){ .known = false };
	link_table_apply_all(t, c);
	text = link_table_json(t, c);
	assert_non_null(text);
	if (cluster_parse(text, strlen(text), &read, &err) != 0)
		fail_msg("%s", err.text);
	back = link_table_parse(text);
	assert_non_null(back);
	for (uint32_t i = 0; i < N; i++)
		for (uint32_t j = 0; j < N; j++) {
			if (i == j)
				continue;
			assert_true(fabs(read->delay_s[i * N + j] - c->delay_s[i * N + j]) < 1e-6);
			assert_true(fabs(read->sync_pair_s[i * N + j] - c->sync_pair_s[i * N + j]) <
				    1e-6);
			assert_true(fabs(link_table_transfer_s(back, i, j, 7e5) -
					 link_table_transfer_s(t, i, j, 7e5)) < 1e-5);
		}
	assert_true(read->delay_s[1 * N + 4] < 0 && read->delay_s[2 * N + 5] < 0);
	assert_true(link_table_at(back, 1, 4)->known && link_table_at(back, 1, 4)->unreachable);
	assert_false(link_table_at(back, 2, 5)->known || link_table_at(back, 2, 5)->unreachable);
	free(text);
	link_table_free(back);
	link_table_free(t);
	cluster_free(c);
	cluster_free(read);
}
