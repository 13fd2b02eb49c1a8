/* Tests that a command changes the named links or nodes and nothing else, and that the printed
 * cluster can be read again. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/tests/test.h"
#include "schedule/format/regions.h"
#include "tests/wan/orders.h"

static const struct orders_start start = { .loss = 0.01, .jitter = 0.2, .up_bytes_per_s = 3e6 };

struct bed {
	struct map *map;
	struct traffic *traffic;
};

static struct bed open_bed(const struct map_request *q)
{
	struct traffic_options o = { .seed = 1, .queue_s = 0.2, .held_max = 1000 };
	struct error err = { "" };
	struct bed b;

	if (map_new(q, &b.map, &err) != 0)
		fail_msg("%s", err.text);
	o.n_nodes = map_nodes(b.map);
	b.traffic = traffic_new(&o);
	assert_non_null(b.traffic);
	orders_reset(b.map, b.traffic, &start);
	return b;
}

static void close_bed(struct bed *b)
{
	traffic_free(b->traffic);
	map_free(b->map);
}

static struct bed open_regions(int n)
{
	struct map_request q = { .regions = "deploy/regions.json", .n_nodes = n };

	return open_bed(&q);
}

/* Executes a command and returns its answer, which the caller frees. */
static char *execute(struct bed *b, const char *line)
{
	struct orders_counts counts = { 0 };
	struct error err = { "" };
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (orders_do(b->map, b->traffic, &start, &counts, line, f, &err) != 0)
		fail_msg("%s: %s", line, err.text);
	fclose(f);
	return text;
}

static void expect_refusal(struct bed *b, const char *line, const char *words)
{
	struct orders_counts counts = { 0 };
	struct error err = { "" };
	struct traffic_link before = *traffic_link(b->traffic, 0, 1);

	assert_int_equal(orders_do(b->map, b->traffic, &start, &counts, line, stdout, &err),
			 -EINVAL);
	if (!strstr(err.text, words))
		fail_msg("%s: \"%s\" does not contain \"%s\"", line, err.text, words);
	assert_memory_equal(&before, traffic_link(b->traffic, 0, 1), sizeof(before));
}

static void write_text(char path[64], const char *text)
{
	snprintf(path, 64, "/tmp/wan-orders-%d.json", getpid());
	assert_int_equal(file_write(path, text, strlen(text), 0600, NULL), 0);
}

TEST(regions_are_as_published)
{
	struct map_request q = { .regions = "deploy/regions.json", .n_nodes = 20,
				 .controller_at = "Japan", .least_bytes_per_s = 5242880 };
	struct bed b = open_bed(&q);
	struct regions *r;
	struct cluster *c;
	char path[64], *text;

	assert_int_equal(regions_read("deploy/regions.json", &r, NULL), 0);
	assert_int_equal(map_nodes(b.map), 21);
	assert_string_equal(map_place(b.map, 13), "Belgium");
	assert_string_equal(map_place(b.map, 20), "Japan");
	for (uint32_t i = 0; i < 21; i++) {
		for (uint32_t j = 0; j < 21; j++) {
			const struct traffic_link *l = traffic_link(b.traffic, i, j);
			double latency, speed;

			if (i == j)
				continue;
			regions_link(r, map_place(b.map, i), map_place(b.map, j), &latency, &speed,
				     NULL);
			assert_true(l->latency_s == latency);
			assert_true(l->bandwidth_bytes_per_s ==
				    (speed < 5242880 ? 5242880 : speed));
			assert_true(l->loss == 0.01 && l->jitter == 0.2 && !l->cut);
		}
	}
	assert_true(traffic_node(b.traffic, 3)->up_bytes_per_s == 3e6);
	regions_free(r);
	/* The controller must be able to read the printed cluster. */
	text = execute(&b, "cluster");
	write_text(path, text);
	free(text);
	assert_int_equal(cluster_read(path, &c, NULL), 0);
	cluster_free(c);
	unlink(path);
	close_bed(&b);
}

/* The least bandwidth is a bandwidth of the real network. Slow links are therefore raised to it
 * before all bandwidths are divided. */
TEST(a_rehearsal_has_a_part_of_the_bandwidths)
{
	struct map_request q = { .regions = "deploy/regions.json", .n_nodes = 20,
				 .least_bytes_per_s = 5242880 };
	struct bed whole = open_bed(&q), part;

	q.divisor = 8;
	part = open_bed(&q);
	for (uint32_t i = 0; i < 21; i++)
		for (uint32_t j = 0; j < 21; j++) {
			struct traffic_link a = map_link(whole.map, i, j),
					    b = map_link(part.map, i, j);

			assert_true(i == j || b.latency_s == a.latency_s);
			assert_true(i == j ||
				    b.bandwidth_bytes_per_s == a.bandwidth_bytes_per_s / 8);
		}
	close_bed(&whole);
	close_bed(&part);
}

TEST(a_link_is_directed)
{
	struct bed b = open_regions(14);
	struct traffic_link initial = map_link(b.map, 0, 1), *l = traffic_link(b.traffic, 0, 1),
			    *back = traffic_link(b.traffic, 1, 0);

	free(execute(&b, "link 0 1 latency_ms 40 bandwidth_mbs 2 loss 0.5 jitter 0.1"));
	assert_true(l->latency_s == 0.04 && l->bandwidth_bytes_per_s == 2e6);
	assert_true(l->loss == 0.5 && l->jitter == 0.1);
	assert_true(back->latency_s == initial.latency_s && back->loss == 0.01);
	free(execute(&b, "link 0 1 cut"));
	assert_true(l->cut && !back->cut);
	free(execute(&b, "link 0 1 restore"));
	assert_true(!l->cut && l->loss == 0.5);
	free(execute(&b, "link 0 1 latency_times 3 bandwidth_times 0.5"));
	assert_true(l->latency_s == 3 * initial.latency_s);
	assert_true(l->bandwidth_bytes_per_s == 0.5 * initial.bandwidth_bytes_per_s);
	free(execute(&b, "reset"));
	assert_true(l->latency_s == initial.latency_s && l->loss == 0.01 && l->jitter == 0.2);
	close_bed(&b);
}

/* Nodes 0 and 12 and the controller are in Australia, nodes 1 and 13 in Belgium. */
TEST(a_place_names_all_nodes_there)
{
	struct bed b = open_regions(14);
	int cut = 0;

	free(execute(&b, "link Australia Belgium cut"));
	for (uint32_t i = 0; i < 15; i++)
		for (uint32_t j = 0; j < 15; j++)
			cut += traffic_link(b.traffic, i, j)->cut;
	assert_int_equal(cut, 6);
	assert_true(traffic_link(b.traffic, 14, 13)->cut && traffic_link(b.traffic, 12, 1)->cut);
	free(execute(&b, "region Belgium away up_mbs 7"));
	for (uint32_t i = 0; i < 15; i++)
		assert_int_equal(traffic_node(b.traffic, i)->away, i == 1 || i == 13);
	assert_true(traffic_node(b.traffic, 13)->up_bytes_per_s == 7e6);
	free(execute(&b, "node 13 back"));
	assert_true(traffic_node(b.traffic, 1)->away && !traffic_node(b.traffic, 13)->away);
	free(execute(&b, "node controller away"));
	assert_true(traffic_node(b.traffic, 14)->away && !traffic_node(b.traffic, 0)->away);
	free(execute(&b, "all loss 0 jitter 0.3 restore"));
	for (uint32_t i = 0; i < 15; i++)
		for (uint32_t j = 0; j < 15; j++)
			assert_true(i == j || (traffic_link(b.traffic, i, j)->jitter == 0.3 &&
					       !traffic_link(b.traffic, i, j)->cut));
	close_bed(&b);
}

TEST(mistakes_are_named_and_change_nothing)
{
	struct bed b = open_regions(14);

	expect_refusal(&b, "", "expected link, all");
	expect_refusal(&b, "lnk 0 1 cut", "\"lnk\": expected link, all");
	expect_refusal(&b, "link 0", "expected FROM, TO");
	expect_refusal(&b, "link 0 15 cut",
		       "\"15\": expected a node from 0 to 13, controller, all");
	expect_refusal(&b, "link 0 Atlantis cut", "\"Atlantis\": expected");
	expect_refusal(&b, "link 0 1", "expected one of latency_ms");
	expect_refusal(&b, "link 0 1 latency_ms", "latency_ms: expected a number");
	expect_refusal(&b, "link 0 1 latency_ms 5 loss 1.5", "loss: expected a number from 0 to 1");
	expect_refusal(&b, "link 0 1 latency_ms 5 away", "\"away\": expected one of latency_ms");
	expect_refusal(&b, "link 0 0 latency_ms 5", "no such link");
	expect_refusal(&b, "node 0 cut", "\"cut\": expected one of away");
	expect_refusal(&b, "region 0 away", "\"0\": expected a place");
	expect_refusal(&b, "stats 0", "expected FROM and TO");
	expect_refusal(&b, "reset 0", "\"0\": unexpected");
	close_bed(&b);
}

TEST(stats_show_links_with_traffic)
{
	struct bed b = open_regions(4);
	struct traffic_packet *p = traffic_packet_new(b.traffic);
	char *text;

	p->from = 2;
	p->to = 3;
	p->size = 140;
	traffic_link(b.traffic, 2, 3)->loss = 1;
	traffic_send(b.traffic, p, 0);
	text = execute(&b, "stats");
	assert_non_null(strstr(text, "\n2 3 1 140 0 0 1 0 0\n"));
	assert_null(strstr(text, "\n3 2 "));
	free(text);
	text = execute(&b, "stats 3 2");
	assert_non_null(strstr(text, "\n3 2 0 0 0 0 0 0 0\n"));
	free(text);
	text = execute(&b, "nodes");
	assert_string_equal(text, "0 10.77.0.2 Australia\n1 10.77.1.2 Belgium\n2 10.77.2.2 Canada\n"
				  "3 10.77.3.2 Germany\n4 10.77.4.2 Australia\n");
	free(text);
	close_bed(&b);
}

/* Three nodes, of which 1 and 2 are in place B. There is no link from node 2 to node 0. */
#define TIMES ",\"forward_s\":1,\"backward_s\":2,\"loss_s\":0.5,\"memory\":4}"
static const char three[] =
	"{\"format\":\"skippipe.cluster/1\",\"name\":\"three\",\"stages\":[1,2],\"nodes\":["
	"{\"id\":0,\"location\":\"A\"" TIMES ",{\"id\":1,\"location\":\"B\"" TIMES
	",{\"id\":2,\"location\":\"B\"" TIMES "],"
	"\"links\":{\"latency_s\":[[0,0.01,0.02],[0.03,0,0.002],[null,0.003,0]],"
	"\"bandwidth_bytes_per_s\":[[0,1e6,2e6],[3e6,0,4e6],[5e6,6e6,0]]},"
	"\"activation_bytes\":98304,\"transfer_overhead_s\":0.001,"
	"\"microbatches_per_data_node\":6}";

static void expect_link(struct bed *b, uint32_t i, uint32_t j, double latency_s, double bytes_per_s)
{
	assert_true(traffic_link(b->traffic, i, j)->latency_s == latency_s);
	assert_true(traffic_link(b->traffic, i, j)->bandwidth_bytes_per_s == bytes_per_s);
}

/* The controller in place B must get the links of node 1. The link between the controller and node
 * 1 must equal the link between nodes 1 and 2. The printed cluster must contain the changes. */
TEST(a_cluster_is_read_and_written)
{
	char path[64], *text;
	struct map_request q = { .cluster = path, .controller_at = "B" };
	struct cluster *c;
	struct bed b, again;

	write_text(path, three);
	b = open_bed(&q);
	expect_link(&b, 0, 1, 0.01, 1e6);
	expect_link(&b, 3, 0, 0.03, 3e6);
	expect_link(&b, 0, 3, 0.01, 1e6);
	expect_link(&b, 3, 2, 0.002, 4e6);
	expect_link(&b, 3, 1, 0.003, 6e6);
	expect_link(&b, 1, 3, 0.002, 4e6);
	assert_true(traffic_link(b.traffic, 2, 0)->latency_s < 0);
	expect_refusal(&b, "link 2 0 restore latency_ms 5", "no such link");
	free(execute(&b, "link 0 2 latency_ms 25 bandwidth_mbs 9"));
	free(execute(&b, "link 1 2 cut"));
	text = execute(&b, "cluster");
	write_text(path, text);
	free(text);
	again = open_bed(&q);
	expect_link(&again, 0, 2, 0.025, 9e6);
	expect_link(&again, 1, 0, 0.03, 3e6);
	assert_true(traffic_link(again.traffic, 1, 2)->latency_s < 0);
	assert_int_equal(cluster_read(path, &c, NULL), 0);
	assert_true(fabs(c->delay_s[2] - (0.025 + 98304 / 9e6 + 0.001)) < 1e-6);
	cluster_free(c);
	unlink(path);
	close_bed(&b);
	close_bed(&again);
}

TEST(a_bad_description_is_named)
{
	char path[64], text[sizeof(three)], *at;
	struct map_request q = { .cluster = path, .controller_at = "C" };
	struct error err = { "" };
	struct map *m;

	write_text(path, three);
	assert_int_equal(map_new(&q, &m, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no node is at \"C\""));
	memcpy(text, three, sizeof(three));
	at = strstr(text, "latency_s");
	memcpy(at, "latence_s", 9);
	write_text(path, text);
	assert_int_equal(map_new(&q, &m, &err), -EINVAL);
	assert_non_null(strstr(err.text, "links.latence_s: unknown key"));
	assert_non_null(strstr(err.text, path));
	unlink(path);
	q.cluster = NULL;
	q.regions = "deploy/regions.json";
	q.n_nodes = 3;
	assert_int_equal(map_new(&q, &m, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no link between Australia and C"));
}
