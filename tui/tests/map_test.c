/* Tests the points of the map, which are made from a run's nodes and links. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "tui/run/map.h"
#include "tui/tests/golden.h"

static struct state *make_state(uint32_t nodes)
{
	struct stream_options o;

	stream_defaults(&o);
	o.nodes = nodes;
	o.waves = 1;
	o.live = 1;
	return golden_state(&o, 0);
}

static float between(const struct map *m, uint16_t a, uint16_t b)
{
	const struct point *p = &m->nodes[map_index(m, a)], *q = &m->nodes[map_index(m, b)];

	return hypotf(p->x - q->x, p->y - q->y);
}

/* Applies a message with one link, which has new measurements. */
static void send_link(struct state *s, struct msg_link link)
{
	struct msg m = { .type = MSG_SEE_LINKS, .sequence = s->stream.sequence + 1 };

	m.u.see_links = (struct msg_see_links){ 1, &link };
	state_apply(s, &m);
}

TEST(near_nodes_are_near)
{
	struct state *s = make_state(20);
	struct map m = { 0 };

	map_update(&m, s, 5000000);
	assert_true(m.measured);
	assert_int_equal(m.n_nodes, 20);
	assert_int_equal(m.n_regions, 12);
	/* n00 and n12 are in Australia, n06 and n18 in LA, n03 and n15 in Germany. */
	assert_string_equal(map_region_name(&m, s, m.region[map_index(&m, 12)]), "Australia");
	assert_true(between(&m, 0, 12) < between(&m, 0, 3) / 4);
	assert_true(between(&m, 0, 3) < between(&m, 0, 6));
	assert_int_equal(map_index(&m, 20), -1);
	state_free(s);
}

/* Known latencies are the distances. An emulated network that is described only by delays has no
 * latencies; its map is made from planned transfer times. */
TEST(latencies_count_if_they_are_known)
{
	for (int emulated = 0; emulated < 2; emulated++) {
		struct state *s = make_state(20);
		struct map by_latency = { 0 }, by_delay = { 0 };

		s->run.emulated = (uint8_t)emulated;
		for (size_t i = 0; i < s->n_links; i++)
			s->links[i].latency_s =
				s->links[i].from % 2 == s->links[i].to % 2 ? 0.001f : 0.1f;
		map_update(&by_latency, s, 5000000);
		assert_false(by_latency.by_transfers);
		/* n00 and n06 are near, because both numbers are even. n03 is far from them,
		 * because its number is odd. */
		assert_true(between(&by_latency, 0, 6) < between(&by_latency, 0, 3) / 4);
		for (size_t i = 0; i < s->n_links; i++)
			s->links[i].latency_s = 0;
		map_update(&by_delay, s, 5000000);
		assert_int_equal(by_delay.measured, emulated);
		assert_int_equal(by_delay.by_transfers, emulated);
		if (emulated)
			assert_true(between(&by_delay, 0, 12) < between(&by_delay, 0, 6) / 4);
		state_free(s);
	}
}

TEST(a_correction_moves_little)
{
	struct state *s = make_state(20);
	struct map m = { 0 }, before;
	struct msg_link link;

	map_update(&m, s, 5000000);
	before = m;
	link = *state_link(s, 0, 6);
	link.latency_s *= 3;
	send_link(s, link);
	map_update(&m, s, 5600000); /* less than two seconds after the last change of the map */
	assert_memory_equal(m.nodes, before.nodes, sizeof(m.nodes));
	map_update(&m, s, 9000000);
	assert_memory_not_equal(m.nodes, before.nodes, sizeof(m.nodes));
	assert_true(between(&m, 0, 6) > between(&before, 0, 6));
	for (int i = 1; i < 20; i++)
		assert_true(i == 6 || hypotf(m.nodes[i].x - before.nodes[i].x,
					     m.nodes[i].y - before.nodes[i].y) < 0.3f);
	state_free(s);
}

/* Links become known one after another. Each node must stay on its side of the map, although a new
 * map would be mirrored. */
TEST(a_growing_map_does_not_turn)
{
	struct state *s = make_state(20);
	size_t all = s->n_links;
	struct map m = { 0 }, first;

	s->n_links = all * 6 / 10;
	map_update(&m, s, 5000000);
	for (int i = 0; i < 20; i++)
		m.nodes[i].x *= -1;
	first = m;
	s->n_links = all;
	s->link_reports++;
	map_update(&m, s, 60000000);
	assert_true(m.n_placed > first.n_placed);
	for (int i = 0; i < 20; i++)
		if (fabsf(first.nodes[i].x) > 0.4f)
			assert_true(first.nodes[i].x * m.nodes[i].x > 0);
	state_free(s);
}

TEST(slow_and_cut_links_are_listed)
{
	struct state *s = make_state(20);
	struct msg_link link = *state_link(s, 3, 4);
	struct map m = { 0 };

	link.latency_s = -1;
	link.measured_delay_s = link.planned_delay_s * 90;
	send_link(s, link);
	link = *state_link(s, 4, 3);
	link.measured_delay_s = link.planned_delay_s * 5;
	send_link(s, link);
	map_update(&m, s, 5000000);
	assert_int_equal(m.n_cut, 1);
	assert_true(m.cut[0].from == 3 && m.cut[0].to == 4);
	assert_int_equal(m.n_slow, MAP_SLOW);
	assert_true(m.slow[0].from == 4 && m.slow[0].to == 3);
	assert_true(m.slow[1].from == 6 && m.slow[1].to == 12 && m.slow[1].times < 4.2f);
	assert_true(m.slow[2].times <= m.slow[1].times);
	state_free(s);
}

TEST(many_nodes_become_regions)
{
	struct state *s = make_state(MAP_NODES);
	struct map m = { 0 };
	float oceania, america;
	int i[3];

	map_update(&m, s, 5000000);
	assert_int_equal(m.n_nodes, MAP_NODES);
	assert_int_equal(m.n_regions, 12);
	for (int k = 0; k < 3; k++) /* nodes in Singapore, Taiwan and LA */
		i[k] = m.region[map_index(&m, (uint16_t[]){ 9, 2, 6 }[k])];
	oceania = hypotf(m.regions[i[0]].x - m.regions[i[1]].x,
			 m.regions[i[0]].y - m.regions[i[1]].y);
	america = hypotf(m.regions[i[0]].x - m.regions[i[2]].x,
			 m.regions[i[0]].y - m.regions[i[2]].y);
	assert_true(oceania > 0 && oceania < america / 3);
	state_free(s);
}

/* Every node has a location of its own, so there are more locations than a map has regions. The
 * last region must hold all remaining locations. No link is known. */
TEST(more_places_than_regions)
{
	struct state *s = make_state(300);
	struct map m = { 0 };

	s->n_links = 0;
	for (int i = 0; i < 300; i++)
		snprintf(s->nodes[i].see.location, sizeof(s->nodes[i].see.location), "place %d", i);
	map_update(&m, s, 5000000);
	assert_false(m.measured);
	assert_int_equal(m.n_regions, MAP_REGIONS);
	assert_int_equal(m.sizes[MAP_REGIONS - 1], 300 - (MAP_REGIONS - 1));
	assert_string_equal(map_region_name(&m, s, MAP_REGIONS - 1), "other places");
	for (int i = 0; i < MAP_REGIONS; i++)
		assert_true(isfinite(m.regions[i].x) && isfinite(m.regions[i].y));
	state_free(s);
}

/* A replay has no measured links, so the map is made from transfers. After a jump in time, which
 * begins another run of the same nodes, the map must stay as it was. */
TEST(a_replay_shows_its_transfers)
{
	struct map m = { 0 }, first;
	struct state *s;

	s = golden_default(NULL);
	s->n_links = 0;
	map_update(&m, s, 5000000);
	assert_true(m.measured);
	assert_true(between(&m, 0, 12) < between(&m, 0, 3) / 2);
	assert_true(between(&m, 0, 3) < between(&m, 0, 6));
	for (int i = 0; i < 20; i++)
		m.nodes[i].x *= -1;
	first = m;
	s->run.run++;
	s->n_flights = 0; /* no transfer is known right after the jump */
	map_update(&m, s, 5000001);
	assert_memory_equal(m.nodes, first.nodes, sizeof(m.nodes));
	state_free(s);
}

/* Messages may contain any numbers. */
TEST(absurd_figures_are_ignored)
{
	static const float figures[] = { INFINITY, -INFINITY, NAN, 1e30f, -1, 0, 1e-30f };
	struct state *s = make_state(20);
	struct map m = { 0 };

	for (size_t i = 0; i < s->n_links; i++) {
		s->links[i].planned_delay_s = figures[i % 7];
		s->links[i].measured_delay_s = figures[i % 5];
		s->links[i].latency_s = figures[i % 3];
	}
	map_update(&m, s, 5000000);
	for (int i = 0; i < 20; i++)
		assert_true(isfinite(m.nodes[i].x) && isfinite(m.nodes[i].y));
	for (uint32_t i = 0; i < m.n_slow; i++)
		assert_true(isfinite(m.slow[i].times));
	state_free(s);
}
