/* announce_test.c - the controller's messages to agents about the cluster and other nodes, and to
 * consoles about links. */

#include <string.h>

#include "base/tests/test.h"
#include "controller/tests/player.h"

/* A new process emulates the cluster that the operator described, not the cluster with corrections
 * from measurements. */
TEST(corrected_times_are_not_emulated)
{
	const char *options[] = {
		"--eval-every", "0",    "--emulate", "regions", "--time-scale", "1",
		"--wire",       "fp32", NULL
	};
	struct world *w = world_new(options);
	struct player *p = &w->players[4];
	float first[PLAYERS];

	WORLD_UNTIL(w, world_all_live(w));
	memcpy(first, p->emulates.delay_s, sizeof(first));
	assert_true(first[0] > 0 && first[8] > 0);
	player_reports_delays(p, 50);
	player_reports_delays(p, 50);
	WORLD_UNTIL(w, strstr(w->console.journal, "links take 50"));
	player_replace(p);
	WORLD_UNTIL(w, p->welcomes == 2);
	assert_memory_equal(p->emulates.delay_s, first, sizeof(first));
	world_free(w);
}

/* Sets sums_s to the emulated times in which player 4 sends a stage's gradient to each player.
 * These are the times that player 4 has received from the controller. */
static void receive_sums(const char *sum_wire, float *sums_s)
{
	const char *options[] = { "--eval-every", "0", "--emulate", "regions", "--time-scale", "1",
				  "--sum-wire", sum_wire, NULL };
	struct world *w = world_new(options);

	WORLD_UNTIL(w, world_all_live(w));
	memcpy(sums_s, w->players[4].emulates.sum_s, sizeof(w->players[4].emulates.sum_s));
	world_free(w);
}

/* An agent multiplies every received transfer time by the ratio of its format's size to the size
 * of fp32. This multiplication would also shorten the latency, which does not depend on the
 * format. The controller therefore divides latencies by this ratio before it sends them. */
TEST(agents_receive_the_times_of_gradients_in_fp32)
{
	float fp32_s[PLAYERS], q6_s[PLAYERS];

	receive_sums("fp32", fp32_s);
	receive_sums("q6", q6_s);
	for (int i = 0; i < PLAYERS; i++) {
		assert_true((i == 4) == (fp32_s[i] == 0));
		assert_true(q6_s[i] >= fp32_s[i] && q6_s[i] - fp32_s[i] < 1);
	}
}

/* One node is believed dead while another node joins. When the first node is heard again, it
 * receives the key of the node that joined. */
TEST(a_returning_node_receives_the_keys_of_joiners)
{
	const char *options[] = { "--eval-every", "0", NULL };
	struct world *w = world_new(options);
	struct player *sleeper = &w->players[4], *new = &w->players[8];
	uint32_t before;

	WORLD_UNTIL(w, world_all_live(w) && sleeper->announced[new->node] > 0);
	before = sleeper->announced[new->node];
	sleeper->asleep = true;
	WORLD_UNTIL(w, w->states[sleeper->node] == NODE_DEAD);
	player_replace(new);
	WORLD_UNTIL(w, new->welcomes == 2 && w->states[new->node] == NODE_LIVE);
	sleeper->asleep = false;
	WORLD_UNTIL(w, sleeper->announced[new->node] > before);
	WORLD_UNTIL(w, world_all_live(w));
	world_free(w);
}

static bool all_others_have_key(const struct world *w, const struct player *p, bool know)
{
	for (int i = 0; i < PLAYERS; i++)
		if (&w->players[i] != p && !w->players[i].asleep &&
		    w->players[i].knows[p->node].key != know)
			return false;
	return true;
}

/* Nodes that count as dead when a key is expelled forget the key when they return. A restarted
 * controller also withdraws the keys of nodes that did not return, and announces that these nodes
 * are away. */
TEST(all_nodes_forget_the_key_of_an_expelled_node)
{
	const char *options[] = { "--eval-every", "0", NULL };
	const char *again[] = { "--silence-ms", "3000", "--overdue-s", "1", NULL };
	struct world *w = world_new(options);
	struct player *expelled = &w->players[8], *sleeper = &w->players[4], *gone = &w->players[7];
	uint32_t before;

	WORLD_UNTIL(w, world_all_live(w) && all_others_have_key(w, expelled, true) &&
			       all_others_have_key(w, gone, true));
	sleeper->asleep = true;
	WORLD_UNTIL(w, w->states[sleeper->node] == NODE_DEAD);
	assert_int_equal(keys_list_expel(w->door->list, "agent8", NULL), 0);
	WORLD_UNTIL(w, all_others_have_key(w, expelled, false));
	assert_int_equal(w->players[0].knows[expelled->node].absence, PEER_EXPELLED);
	assert_true(sleeper->knows[expelled->node].key);
	sleeper->asleep = false;
	WORLD_UNTIL(w, all_others_have_key(w, expelled, false));
	assert_true(all_others_have_key(w, gone, true));
	gone->asleep = expelled->asleep = true;
	WORLD_UNTIL(w, w->states[gone->node] == NODE_DEAD);
	/* makes the players of stage 1 sleep, so that the run cannot continue */
	for (int i = 0; i < PLAYERS; i++)
		w->players[i].asleep = w->players[i].asleep || w->players[i].stage == 1;
	door_restart(w->door, again);
	WORLD_UNTIL(w, all_others_have_key(w, gone, false));
	assert_int_equal(w->players[0].knows[gone->node].absence, PEER_AWAY);
	assert_int_equal(w->players[0].knows[expelled->node].absence, PEER_EXPELLED);
	before = w->players[0].announced[gone->node];
	for (int i = 0; i < 1000; i++)
		world_turn(w);
	assert_int_equal(w->players[0].announced[gone->node], before);
	for (int i = 0; i < PLAYERS; i++)
		w->players[i].asleep = &w->players[i] == expelled;
	WORLD_UNTIL(w, all_others_have_key(w, gone, true));
	world_free(w);
}

static bool all_links_shown(const struct world *w)
{
	for (int i = 0; i < PLAYERS; i++)
		for (int k = 0; k < PLAYERS; k++)
			if (i != k && w->links[i][k].planned_delay_s == 0)
				return false;
	return true;
}

static void tell_link(struct player *p, uint16_t to, float latency_s, float took_s)
{
	struct msg_link link = {
		.from = p->node, .to = to, .latency_s = latency_s, .measured_delay_s = took_s
	};
	struct msg m = { .type = MSG_LINKS, .u.links = { 1, &link, p->wire, 0, 0 } };

	visitor_send(&p->v, &m, POST_RELIABLE);
}

/* Consoles receive the steps of the startup in order, and the measured links. A link that could not
 * be made is shown as missing. */
TEST(consoles_see_the_measured_links)
{
	const char *options[] = { "--eval-every", "0", "--wire", "fp32", NULL };
	struct world *w = world_new(options);
	int before;

	w->no_link = 1 << 5;
	WORLD_UNTIL(w, w->planned > 0 && world_all_live(w) && all_links_shown(w));
	assert_false(w->emulated);
	assert_int_equal(w->steps, (1 << (GATHER_BUILD + 1)) - 1);
	assert_int_equal(w->step, GATHER_BUILD);
	assert_int_equal(w->steps_back, 0);
	assert_true(w->links[0][5].latency_s < 0 && w->links[0][5].planned_delay_s < 0);
	for (int i = 0; i < PLAYERS; i++)
		for (int k = 0; k < PLAYERS; k++)
			if (i != k && !(i == 0 && k == 5)) {
				assert_true(w->links[i][k].latency_s > 0 &&
					    w->links[i][k].planned_delay_s > 0);
				assert_true(w->links[i][k].spread_s > 0);
				assert_true(w->links[i][k].bandwidth_bytes_per_s > 0);
			}
	/* A later report covers only the last second, and must not erase earlier measurements. */
	tell_link(&w->players[1], 2, 0.0001f, 0.004f);
	WORLD_UNTIL(w, w->links[1][2].measured_delay_s > 0);
	tell_link(&w->players[1], 2, 0.0003f, 0);
	tell_link(&w->players[0], 5, 0, 0);
	WORLD_UNTIL(w, w->links[1][2].latency_s > 0.0002f);
	assert_true(w->links[1][2].measured_delay_s > 0.003f);
	assert_true(w->links[0][5].latency_s < 0 && w->links[0][5].planned_delay_s < 0);
	/* The other links are unchanged, so nothing is sent about them. */
	before = w->link_messages;
	tell_link(&w->players[1], 2, 0.0009f, 0);
	WORLD_UNTIL(w, w->links[1][2].latency_s > 0.0008f);
	assert_true(w->link_messages - before < PLAYERS);
	world_free(w);
}

TEST(an_emulated_run_is_announced_as_emulated)
{
	const char *options[] = { "--eval-every", "0", "--emulate", "regions",
				  "--time-scale", "1", NULL };
	struct world *w = world_new(options);

	WORLD_UNTIL(w, w->planned > 0 && world_all_live(w));
	assert_true(w->emulated);
	assert_int_equal(w->steps, 1 << GATHER_COMING | 1 << GATHER_COMPUTE | 1 << GATHER_BUILD);
	assert_int_equal(w->steps_back, 0);
	world_free(w);
}

/* In an emulated run, agents report latencies of connections on this machine. Consoles receive the
 * published figures instead: Australia to Belgium has 129 ms and 0.00982666015625 GiB/s. A
 * restarted controller sends the same figures. */
TEST(consoles_see_the_figures_of_the_emulated_network)
{
	const char *options[] = {
		"--eval-every", "0",    "--emulate", "regions", "--time-scale", "1",
		"--wire",       "fp32", NULL
	};
	const char *again[] = { NULL };
	struct world *w = world_new(options);
	const struct msg_link *link = &w->links[0][1];
	uint64_t before;

	WORLD_UNTIL(w, w->planned > 0 && world_all_live(w));
	tell_link(&w->players[0], 1, 0.0001f, 0.7f);
	WORLD_UNTIL(w, link->measured_delay_s > 0);
	assert_float_equal(link->latency_s, 0.129, 1e-6);
	assert_float_equal(link->bandwidth_bytes_per_s, 0.00982666015625 * (1 << 30), 10);
	assert_float_equal(link->spread_s, 0, 0);
	before = w->console.committed;
	door_restart(w->door, again);
	w->links[0][1] = (struct msg_link){ .to = 1 };
	WORLD_UNTIL(w, w->console.committed > before && world_all_live(w));
	tell_link(&w->players[0], 1, 0.0001f, 0.7f);
	WORLD_UNTIL(w, link->measured_delay_s > 0);
	assert_float_equal(link->latency_s, 0.129, 1e-6);
	assert_float_equal(link->bandwidth_bytes_per_s, 0.00982666015625 * (1 << 30), 10);
	world_free(w);
}
