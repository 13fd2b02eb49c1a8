/* Tests the checks of a run's members, links and journal with made-up runs. */
#include <errno.h>
#include <string.h>

#include "base/tests/test.h"
#include "doctor/run/complaints.h"
#include "doctor/run/members.h"
#include "doctor/run/pairs.h"
#include "doctor/run/recorded.h"
#include "doctor/tests/system_tree.h"
#include "store/store.h"
#include "wire/names.h"

/* ---- made-up runs ---- */

/* Makes a run of n nodes. Each node reaches every other node, in 10 ms and with 100 MB/s. */
static void make_run(struct picture *p, uint32_t n)
{
	*p = (struct picture){ .is_running = true };
	picture_size(p, n);
	for (uint32_t i = 0; i < n; i++) {
		snprintf(p->nodes[i].name, sizeof(p->nodes[i].name), "m%u", i);
		snprintf(p->nodes[i].address, sizeof(p->nodes[i].address),
			 "tcp://203.0.113.%u:7701", i);
		strcpy(p->nodes[i].device, "cpu:v4 oneDNN 2.6.3");
		p->nodes[i].state = NODE_LIVE;
		p->nodes[i].has_state = true;
		for (uint32_t j = 0; j < n; j++)
			if (i != j)
				p->links[i * n + j] =
					(struct picture_link){ LINK_WORKS, 0.01, 100e6 };
	}
}

static void break_link(struct picture *p, uint32_t from, uint32_t to)
{
	p->links[from * p->n + to] = (struct picture_link){ LINK_BROKEN, -1, 0 };
}

static void complain(struct picture *p, int32_t node, const char *text)
{
	struct picture_note *n = LIST_ADD(&p->notes);

	*n = (struct picture_note){ .node = node, .iteration = 7 };
	snprintf(n->text, sizeof(n->text), "%s", text);
}

static void examine(struct findings *f, struct picture *p)
{
	members_check(f, p);
	pairs_check(f, p);
	complaints_check(f, p);
	picture_free(p);
}

TEST(a_good_run_has_no_remedies)
{
	struct findings f = { .all.n = 0 };
	struct picture p;

	make_run(&p, 4);
	examine(&f, &p);
	assert_int_equal(findings_worst(&f), FINDING_OK);
	must_find(&f, "nodes", FINDING_OK, "4 take part", "");
	must_find(&f, "links", FINDING_OK, "longest round trip 20 ms", "");
	must_find(&f, "links", FINDING_OK, "--mbit 801 --rtt-ms 21", "");
	must_find(&f, "devices", FINDING_OK, "all of one kind", "");
	findings_free(&f);
}

TEST(a_node_that_nobody_reaches_has_a_closed_port)
{
	struct findings f = { .all.n = 0 };
	struct picture p;

	make_run(&p, 4);
	strcpy(p.nodes[2].place, "eu");
	for (uint32_t i = 0; i < 4; i++)
		if (i != 2)
			break_link(&p, i, 2);
	complain(&p, 0,
		 "n00 (m0) cannot reach n02 (m2, eu), and no plan uses that direction: "
		 "tcp://203.0.113.2:7701: Connection refused. Open that port at n02");
	examine(&f, &p);
	must_find(&f, "reachability", FINDING_ERROR,
		  "n02 (m2, eu) cannot be reached by any other node: tcp://203.0.113.2:7701: "
		  "Connection refused",
		  "on the side of n02 (m2, eu): open that port");
	assert_int_equal(findings_count(&f, FINDING_ERROR), 1);
	findings_free(&f);
	make_run(&p, 4);
	for (uint32_t i = 0; i < 4; i++)
		if (i != 2)
			break_link(&p, i, 2);
	examine(&f, &p);
	must_find(&f, "reachability", FINDING_ERROR,
		  "n02 (m2) at tcp://203.0.113.2:7701 cannot be reached by any other node", "");
	findings_free(&f);
}

TEST(one_direction_names_both_ends)
{
	struct findings f = { .all.n = 0 };
	struct picture p;

	make_run(&p, 4);
	break_link(&p, 1, 3);
	examine(&f, &p);
	must_find(&f, "reachability", FINDING_WARNING,
		  "n03 (m3) at tcp://203.0.113.3:7701 cannot "
		  "be reached by n01 (m1); no plan",
		  "others reach n03 (m3)");
	assert_int_equal(findings_count(&f, FINDING_ERROR), 0);
	findings_free(&f);
}

TEST(a_node_that_reaches_nobody_is_itself_the_cause)
{
	struct findings f = { .all.n = 0 };
	struct picture p;

	make_run(&p, 4);
	for (uint32_t i = 1; i < 4; i++)
		break_link(&p, 0, i);
	examine(&f, &p);
	must_find(&f, "reachability", FINDING_ERROR, "n00 (m0) can reach none",
		  "outgoing connections");
	assert_int_equal(findings_count(&f, FINDING_ERROR), 1);
	findings_free(&f);
}

TEST(slow_links_and_unmeasured_ones_differ)
{
	struct findings f = { .all.n = 0 };
	struct picture p;

	make_run(&p, 3);
	p.links[1 * 3 + 2].bytes_s = 2e5;
	p.links[2 * 3 + 1].state = LINK_UNKNOWN;
	examine(&f, &p);
	must_find(&f, "links", FINDING_WARNING, "n01 (m1) > n02 (m2) carries 0.20 MB/s", "q6");
	must_find(&f, "links", FINDING_OK, "some are not measured", "");
	findings_free(&f);
	make_run(&p, 2);
	picture_size(&p, 2);
	examine(&f, &p);
	must_find(&f, "links", FINDING_OK, "not measured yet", "");
	findings_free(&f);
}

TEST(lost_nodes_and_unlike_devices_are_found)
{
	struct findings f = { .all.n = 0 };
	struct picture p;

	make_run(&p, 3);
	p.nodes[1].state = NODE_DEAD;
	strcpy(p.nodes[1].why, "silent for 2 s");
	strcpy(p.nodes[1].host, "m1.example");
	strcpy(p.nodes[0].device, "cuda:0:bf16 sm_90 H200");
	strcpy(p.nodes[2].device, "cuda:1:bf16 sm_90 H200");
	strcpy(p.version, "0.0.0");
	examine(&f, &p);
	must_find(&f, "nodes", FINDING_WARNING, "n01 (m1) is dead: silent for 2 s",
		  "on m1.example");
	must_find(&f, "devices", FINDING_WARNING, "1 of 3 nodes compute on a CPU", "--device cuda");
	must_find(&f, "devices", FINDING_WARNING, "n01 (m1)", "");
	must_find(&f, "run", FINDING_WARNING, "skippipe 0.0.0 began", "same version");
	findings_free(&f);
	make_run(&p, 3);
	p.is_running = false;
	p.nodes[1].state = NODE_DEAD;
	examine(&f, &p);
	/* The run has ended, so it is no problem that a node has left. */
	must_be(&f, "nodes", FINDING_OK);
	findings_free(&f);
}

TEST(each_complaint_is_reported_once_for_a_node)
{
	struct findings f = { .all.n = 0 };
	struct picture p;

	make_run(&p, 3);
	complain(&p, 1, "n01: its GPU is throttled: heat");
	complain(&p, 2, "n02: its GPU is throttled: heat");
	complain(&p, 1, "n01: its GPU is throttled: power");
	complain(&p, 1, "n01 had a good day");
	examine(&f, &p);
	must_find(&f, "journal", FINDING_WARNING,
		  "it7: n01: its GPU is throttled: power (and "
		  "earlier)",
		  "nvidia-smi");
	must_find(&f, "journal", FINDING_WARNING, "n02: its GPU is throttled: heat", "");
	assert_int_equal(findings_count(&f, FINDING_WARNING), 2);
	findings_free(&f);
}

/* ---- a record ---- */

#define LINKS \
	"\"links\":{\"latency_s\":[[0,0.02],[-1,0]]," \
	"\"bandwidth_bytes_per_s\":[[0,2e7],[0,0]]},\"activation_bytes\":1000," \
	"\"weights_bytes_per_stage\":1000"

static const char cluster[] =
	"{\"format\":\"skippipe.cluster/1\",\"name\":\"t\",\"stages\":[1,1],"
	"\"microbatches_per_data_node\":2,\"nodes\":["
	"{\"id\":0,\"name\":\"left\",\"location\":\"eu\",\"address\":\"tcp://203.0.113.1:7701\","
	"\"forward_s\":1,\"backward_s\":1,\"loss_s\":1,\"memory\":4,\"stage\":0},"
	"{\"id\":1,\"location\":\"us\",\"forward_s\":1,\"backward_s\":1,\"loss_s\":1,"
	"\"memory\":4,\"stage\":1}]," LINKS "}";

static void record_run(const char *folder, const char *text)
{
	const struct store_run run = { .name = "run",
				       .version = SKIPPIPE_VERSION,
				       .model = "{}",
				       .cluster = text,
				       .optimizer = "{}",
				       .id = 1,
				       .hash = "hash",
				       .corpus_hash = 0xabc,
				       .batch = 1,
				       .sequence = 8,
				       .n_shards = 1,
				       .per_shard = 1,
				       .threads = 1 };
	const struct store_moment moment = { .kind = "node",
					     .node = 1,
					     .stage = -1,
					     .word = "dead",
					     .text = "killed",
					     .device = "cuda:0 x",
					     .host = "h",
					     .name = "right",
					     .place = "us" };
	struct store_note note = { .kind = "warning", .node = 0, .text = "its disk" };
	struct error err = { "" };
	struct store *s;

	assert_int_equal(store_create(&s, folder, &run, &err), 0);
	assert_int_equal(store_moment(s, &moment, &err), 0);
	assert_int_equal(store_note(s, &note, &err), 0);
	note.kind = "event";
	assert_int_equal(store_note(s, &note, &err), 0);
	store_close(s);
}

TEST(a_record_gives_members_links_and_complaints)
{
	struct error err = { "" };
	struct system_tree t;
	struct picture p;

	tree_make(&t);
	record_run(t.root, cluster);
	assert_int_equal(recorded_read(&p, t.root, &err), 0);
	assert_int_equal(p.n, 2);
	assert_false(p.is_running);
	assert_int_equal(p.corpus_hash, 0xabc);
	assert_string_equal(p.nodes[0].name, "left");
	assert_string_equal(p.nodes[0].address, "tcp://203.0.113.1:7701");
	assert_false(p.nodes[0].has_state);
	assert_string_equal(p.nodes[1].name, "right");
	assert_int_equal(p.nodes[1].state, NODE_DEAD);
	assert_string_equal(p.nodes[1].why, "killed");
	assert_int_equal(p.links[1].state, LINK_WORKS);
	assert_true(p.links[1].latency_s == 0.02 && p.links[1].bytes_s == 2e7);
	assert_int_equal(p.links[2].state, LINK_BROKEN);
	assert_int_equal(p.notes.n, 1);
	picture_free(&p);
	tree_remove(&t);
}

TEST(a_folder_without_a_run_and_a_damaged_cluster_are_errors)
{
	struct error err = { "" };
	struct system_tree t;
	struct picture p = { .n = 9 };

	tree_make(&t);
	assert_int_equal(recorded_read(&p, t.root, &err), -ENOENT);
	record_run(t.root, "{\"links\":3}");
	assert_int_equal(recorded_read(&p, t.root, &err), -EBADMSG);
	assert_int_equal(p.n, 9);
	tree_remove(&t);
}
