/* Tests clusters: the reader accepts every key and names the key of a bad value; links and regions
 * give the right delays. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/tests/test.h"
#include "schedule/format/regions.h"
#include "schedule/tests/fixture.h"

/* A small valid file in two parts, between which a test can insert text. */
static const char *const small =
	"{\"format\":\"skippipe.cluster/1\",\"name\":\"two\",\"stages\":[1,1],\"nodes\":["
	"{\"id\":0,\"location\":\"a\",\"forward_s\":1,\"backward_s\":2,\"loss_s\":0.5,"
	"\"memory\":2,\"stage\":0},"
	"{\"id\":1,\"location\":\"b\",\"forward_s\":1,\"backward_s\":2,\"loss_s\":0.5,"
	"\"memory\":2,"
	"\"address\":\"h:1\",\"device\":\"cuda\"}],"
	"\"delay_s\":[[0,0.25],[null,0]],\"microbatches_per_data_node\":3}";

static int parse(const char *text, struct cluster **c, struct error *err)
{
	err->text[0] = '\0';
	return cluster_parse(text, strlen(text), c, err);
}

/* The batch stays constant, so the number of data nodes has to divide it. */
TEST(other_stages_of_nodes_keep_the_batch)
{
	struct cluster *c = cluster_alloc(6, 2, false);
	int two[] = { 0, 0, 1, 1, 1, -1 }, four[] = { 0, 0, 0, 0, 1, 1 };
	int none[] = { 0, 0, 0, 0, 0, 0 }, three[] = { 0, 0, 0, 1, 1, 1 };

	c->stages[0] = 2;
	c->stages[1] = 3;
	c->microbatches_per_data_node = 4;
	assert_true(cluster_may_have_stages(c, two));
	assert_true(cluster_may_have_stages(c, four));
	assert_false(cluster_may_have_stages(c, none));
	/* 8 microbatches cannot be divided among 3 data nodes */
	assert_false(cluster_may_have_stages(c, three));
	cluster_set_stages(c, four);
	assert_int_equal(c->stages[0], 4);
	assert_int_equal(c->stages[1], 2);
	assert_int_equal(c->microbatches_per_data_node, 2);
	assert_int_equal(c->nodes[5].stage, 1);
	cluster_set_stages(c, two);
	assert_int_equal(c->microbatches_per_data_node, 4);
	assert_int_equal(c->nodes[5].stage, -1);
	assert_int_equal(c->stages[0], 2);
	/* Stage 1 has nodes 2 to 4. Node 5 has no stage, and makes stage 1 one larger. */
	assert_int_equal(c->stages[1], 4);
	cluster_free(c);
}

TEST(reads_all_keys)
{
	struct cluster *c;
	struct error err;

	assert_int_equal(parse(small, &c, &err), 0);
	assert_int_equal(c->n_nodes, 2);
	assert_int_equal(c->nodes[0].stage, 0);
	assert_true(c->nodes[1].stage < 0);
	assert_string_equal(c->nodes[1].address, "h:1");
	assert_string_equal(c->nodes[1].device, "cuda");
	assert_true(c->delay_s[1] == 0.25);
	assert_true(c->delay_s[2] < 0);
	assert_true(c->dispatch_overhead_s == 0);
	cluster_free(c);
}

/* Replaces the first occurrence of `from` in the small file by `to`, and expects an error that
 * contains `word`. */
static void refuse(const char *from, const char *to, const char *word)
{
	char text[2048];
	const char *at = strstr(small, from);
	struct cluster *c = NULL;
	struct error err;

	assert_non_null(at);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - small), small, to, at + strlen(from));
	assert_int_equal(parse(text, &c, &err), -EINVAL);
	if (!strstr(err.text, word))
		fail_msg("\"%s\" does not name %s", err.text, word);
}

TEST(refuses_by_name)
{
	refuse("\"name\"", "\"nom\"", "nom");
	refuse("cluster/1", "cluster/2", "format");
	refuse("\"id\":1", "\"id\":7", "nodes[1].id");
	refuse("\"forward_s\":1", "\"forward_s\":\"x\"", "nodes[0].forward_s");
	refuse("\"name\"", "\"stage_work\":[1],\"name\"", "stage_work");
	refuse("\"name\"", "\"stage_work\":[1,0],\"name\"", "stage_work[1]: expected a number");
	refuse("\"name\"", "\"stage_work\":[1,-2],\"name\"", "stage_work[1]: expected a number");
	refuse("\"name\"", "\"stage_work\":[\"a\",2],\"name\"", "stage_work[0]: expected a number");
	refuse("\"memory\":2", "\"memory\":-1", "nodes[0].memory");
	refuse("\"memory\":2", "\"memory\":1.5", "nodes[0].memory");
	refuse("\"stage\":0", "\"stage\":2", "nodes[0].stage");
	refuse("[1,1]", "[1,2]", "stages");
	refuse("[1,1]", "[]", "stages");
	refuse("[0,0.25]", "[0]", "delay_s[0]");
	refuse("[0,0.25]", "[0,true]", "delay_s[0][1]");
	refuse("\"microbatches_per_data_node\":3", "\"microbatches_per_data_node\":0",
	       "microbatches_per_data_node");
	refuse("\"loss_s\":0.5", "\"loss_s\":0.5,\"los\":1", "nodes[0].los");
	refuse("\"delay_s\":[[0,0.25],[null,0]],", "", "delay_s");
	refuse("\"name\":\"two\"", "\"name\":\"two\",\"activation_bytes\":1", "activation_bytes");
	refuse("\"name\":\"two\"", "\"name\":\"two\",\"wire\":\"q4\"", "wire: expected fp32");
	refuse("\"name\":\"two\"", "\"name\":\"two\",\"name\":\"two\"", "name");
}

TEST(links_make_delays)
{
	const char *text =
		"{\"format\":\"skippipe.cluster/1\",\"name\":\"l\",\"stages\":[1,1],\"nodes\":["
		"{\"id\":0,\"location\":\"a\",\"forward_s\":1,\"backward_s\":2,"
		"\"loss_s\":0.5,\"memory\":2},"
		"{\"id\":1,\"location\":\"b\",\"forward_s\":1,\"backward_s\":2,"
		"\"loss_s\":0.5,\"memory\":2}],"
		"\"links\":{\"latency_s\":[[0,0.5],[0.25,0]],"
		"\"bandwidth_bytes_per_s\":[[0,100],[null,0]]},"
		"\"activation_bytes\":1000,\"transfer_overhead_s\":0.125,"
		"\"weights_bytes_per_stage\":50,"
		"\"microbatches_per_data_node\":3}";
	const struct cluster_share share = { .activations = 0.5, .sums = 0.25,
					     .refuse_delays = true };
	char path[] = "/tmp/skippipe-cluster-XXXXXX";
	struct cluster *c;
	struct error err;

	assert_int_equal(parse(text, &c, &err), 0);
	assert_true(c->delay_s[1] == 0.5 + 10 + 0.125);
	assert_true(c->delay_s[2] < 0);
	assert_true(c->sync_pair_s[1] == 1.0);
	assert_true(c->bytes_s[1] == 10);
	cluster_free(c);
	/* Latencies and overheads stay the same; only the time of the bytes shrinks. */
	close(mkstemp(path));
	assert_int_equal(file_write(path, text, strlen(text), 0600, &err), 0);
	assert_int_equal(cluster_read_share(path, &share, &c, &err), 0);
	assert_true(c->delay_s[1] == 0.5 + 5 + 0.125);
	assert_true(c->delay_s[2] < 0);
	assert_true(c->sync_pair_s[1] == 0.5 + 0.125);
	assert_true(c->bytes_s[1] == 10); /* bytes_s always applies to fp32 */
	cluster_free(c);
	unlink(path);
}

/* The file of shipped20 gives delay_s, which stays the same in a format with fewer bytes. The whole
 * time of a sum counts as transfer time of bytes, so sums shrink by the format's share. */
TEST(given_times_shrink_as_a_whole_or_not_at_all)
{
	struct cluster_share share = { .activations = 0.5, .sums = 0.25 };
	struct cluster *full = fixture_cluster("shipped20.json"), *c;
	const char *path = "schedule/tests/data/shipped20.json";
	struct error err = { "" };

	assert_int_equal(cluster_read_share(path, &share, &c, &err), 0);
	for (int i = 0; i < 20 * 20; i++) {
		if (i / 20 == i % 20)
			continue;
		assert_true(c->delay_s[i] == full->delay_s[i]);
		assert_true(c->sync_pair_s[i] == full->sync_pair_s[i] * 0.25);
	}
	cluster_free(c);
	share.refuse_delays = true;
	assert_int_equal(cluster_read_share(path, &share, &c, &err), -EINVAL);
	assert_non_null(strstr(err.text, "delay_s: only fp32"));
	share.activations = 1;
	assert_int_equal(cluster_read_share(path, &share, &c, &err), 0);
	cluster_free(c);
	cluster_free(full);
}

/* A delay is 10 s, of which the bytes take 8 s. The format bf16 halves only these 8 s, so 6 s
 * remain. The result is the same for a cluster that was written and read again. */
TEST(a_delay_changes_with_the_format)
{
	const struct tensor_formats half = { FORMAT_BF16, FORMAT_Q8 };
	struct cluster *c = cluster_alloc(2, 1, true), *read;
	struct error err;
	char *text;

	c->stages[0] = 2;
	c->bytes_s = alloc_array(4, sizeof(*c->bytes_s));
	c->delay_s[1] = c->sync_pair_s[1] = 10;
	c->bytes_s[1] = 8;
	c->bytes_s[2] = 5; /* there is no such link, so the value is ignored */
	text = cluster_format(c);
	assert_int_equal(parse(text, &read, &err), 0);
	cluster_reformat(read, &half);
	assert_true(read->delay_s[1] == 6);
	assert_true(read->delay_s[2] < 0);
	assert_true(read->sync_pair_s[1] == 10 * tensor_format_sum_share(FORMAT_Q8));
	assert_int_equal(read->formats.wire, FORMAT_BF16);
	free(text);
	/* The link is occupied for the 4 s of the bf16 bytes, not for the 8 s of the fp32 bytes. */
	text = cluster_format(read);
	cluster_free(read);
	assert_int_equal(parse(text, &read, &err), 0);
	assert_true(cluster_occupied_s(read, 0, 1) == 4);
	free(text);
	cluster_free(read);
	cluster_free(c);
}

TEST(reads_back_its_own_output)
{
	struct rng r;

	rng_init(&r, 7);
	for (int i = 0; i < 50; i++) {
		struct fixture_shape shape = { .most_stages = 5, .most_replicas = 3,
					       .most_microbatches = 4, .most_memory = 3,
					       .absent = 0.2, .unpinned = true };
		struct cluster *c = fixture_random_cluster(&r, &shape), *again;
		struct error err;
		char *text = cluster_format(c);

		assert_non_null(text);
		assert_int_equal(parse(text, &again, &err), 0);
		for (int k = 0; k < c->n_nodes * c->n_nodes; k++) {
			bool diagonal = k % (c->n_nodes + 1) == 0;

			assert_true(diagonal || c->delay_s[k] == again->delay_s[k]);
		}
		assert_memory_equal(again->work, c->work, sizeof(c->work));
		assert_true((strstr(text, "stage_work") != NULL) == (c->work[0] != 1));
		for (int k = 0; k < c->n_nodes; k++) {
			assert_true(c->nodes[k].backward_s == again->nodes[k].backward_s);
			assert_int_equal(c->nodes[k].stage < 0 ? -1 : c->nodes[k].stage,
					 again->nodes[k].stage);
		}
		free(text);
		cluster_free(again);
		again = cluster_copy(c);
		assert_memory_equal(again->work, c->work, sizeof(c->work));
		assert_memory_equal(again->delay_s, c->delay_s,
				    (size_t)(c->n_nodes * c->n_nodes) * sizeof(double));
		cluster_free(again);
		cluster_free(c);
	}
}

/* The latencies and bandwidths in regions.json give the delays that were published for these 20
 * locations. */
TEST(regions_reproduce_the_published_delays)
{
	struct cluster *published = fixture_cluster("shipped20.json"), *made;
	struct regions *regions;
	struct error err = { "" };

	assert_int_equal(regions_read("deploy/regions.json", &regions, &err), 0);
	for (int i = 0; i < 20; i++) {
		for (int j = 0; j < 20; j++) {
			double latency, speed, delay, sync;

			if (i == j)
				continue;
			assert_int_equal(regions_link(regions, published->nodes[i].location,
						      published->nodes[j].location, &latency,
						      &speed, &err), 0);
			/* As published: activations have 33554648 bytes, and a stage has the
			 * weights of 4 layers of 4 * 16779264 bytes. */
			delay = latency + 33554648.0 / speed + 0.35;
			sync = latency + 268468224.0 / speed;
			assert_true(fabs(delay - published->delay_s[i * 20 + j]) < 1e-9);
			assert_true(fabs(sync - published->sync_pair_s[i * 20 + j]) < 1e-9);
		}
	}
	struct regions_request q;

	regions_request_init(&q, 4, 2);
	assert_true(fabs(q.forward_s - 0.44) < 1e-12 && fabs(q.backward_s - 0.66) < 1e-12);
	q.n_nodes = 20;
	q.n_stages = 6;
	q.path_length = 4;
	assert_int_equal(regions_cluster(regions, &q, &made, &err), 0);
	assert_int_equal(made->stages[0], 5);
	assert_int_equal(made->stages[5], 3);
	cluster_free(made);
	q.setting = "moon";
	assert_int_equal(regions_cluster(regions, &q, &made, &err), -ENOENT);
	assert_non_null(strstr(err.text, "geo-distributed"));
	regions_free(regions);
	cluster_free(published);
}

/* With many nodes in few locations, each pair of nodes has the latency and bandwidth between its
 * two locations, and a node has no delay to itself. */
TEST(every_pair_has_its_link)
{
	struct regions *regions;
	struct regions_request q;
	struct cluster *c;

	assert_int_equal(regions_read("deploy/regions.json", &regions, NULL), 0);
	regions_request_init(&q, 4, 8);
	q.n_nodes = 40;
	q.n_stages = 4;
	q.shuffle = true;
	assert_int_equal(regions_cluster(regions, &q, &c, NULL), 0);
	for (int i = 0; i < 40 * 40; i++) {
		const char *a = c->nodes[i / 40].location, *b = c->nodes[i % 40].location;
		double latency_s, bandwidth;

		assert_int_equal(regions_link(regions, a, b, &latency_s, &bandwidth, NULL), 0);
		if (i / 40 == i % 40) {
			assert_true(c->delay_s[i] == 0 && c->sync_pair_s[i] == 0);
			continue;
		}
		assert_true(c->delay_s[i] == latency_s + q.activation_bytes / bandwidth +
						     q.transfer_overhead_s);
		assert_true(c->sync_pair_s[i] ==
			    latency_s + q.weights_bytes_per_stage / bandwidth);
	}
	cluster_free(c);
	regions_free(regions);
}

TEST(picked_nodes_keep_their_numbers_and_links)
{
	struct cluster *c = fixture_cluster("shipped20.json");
	const int nodes[] = { 7, 2, 19 };
	struct cluster *picked = cluster_pick(c, nodes, 3);

	assert_int_equal(picked->n_nodes, 3);
	for (int i = 0; i < 3; i++) {
		assert_string_equal(picked->nodes[i].location, c->nodes[nodes[i]].location);
		assert_true(picked->nodes[i].forward_s == c->nodes[nodes[i]].forward_s);
		for (int k = 0; k < 3; k++)
			assert_true(picked->delay_s[i * 3 + k] ==
				    c->delay_s[nodes[i] * 20 + nodes[k]]);
	}
	assert_int_equal(picked->stages[0], c->stages[0]);
	cluster_free(picked);
	cluster_free(c);
}
