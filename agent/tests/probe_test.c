/* Tests when an agent reports that a link loses large messages. The test replaces the post below
 * probe.c. There is one link, which is stuck from the beginning. */
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"

#define post_peer         played_peer
#define post_probe        played_probe
#define post_idle         played_idle
#define peers_dial played_dial
#define peers_redial played_redial
#define peers_expected_us played_expected_us
#include "agent/tests/lone_agent.h"

static struct {
	bool passes_small, passes_large, waits;
	/* True: the first connection is stuck and later connections are not, as if TCP waited
	 * after losses. */
	bool only_first_is_stuck;
	int64_t expected_us, now_us;
	struct post_peer_info info;
} wire;

int played_peer(const struct post *p, post_peer_id id, struct post_peer_info *out)
{
	(void)p;
	(void)id;
	*out = wire.info;
	return 0;
}

int played_probe(struct post *p, post_peer_id id, bool large, int64_t now_us)
{
	(void)p;
	if (!large && wire.passes_small)
		wire.info.heard_us = now_us;
	if (large && (wire.passes_large || (wire.only_first_is_stuck && id > 1)))
		wire.info.large_passed_us = now_us;
	return 0;
}

bool played_idle(const struct post *p, post_peer_id id)
{
	(void)p;
	(void)id;
	return !wire.waits;
}

bool played_dial(struct peers *peers, uint16_t node)
{
	return peers->list[node].dial != 0;
}

void played_redial(struct peers *peers, uint16_t node)
{
	peers->list[node].dial++;
	wire.info.heard_us = wire.info.large_passed_us = 0;
}

int64_t played_expected_us(const struct peers *peers, uint16_t to)
{
	(void)peers;
	(void)to;
	return wire.expected_us;
}

#include "agent/network/probe.c"

enum { SECOND = 1000000, BEAT_US = 100000 };

static struct agent *begin(int64_t expected_us)
{
	struct agent *a = lone_agent_new(0, 1);

	a->peers.list[0].known = true;
	a->peers.list[0].dial = 1;
	memset(&wire, 0, sizeof(wire));
	wire.expected_us = expected_us;
	wire.now_us = SECOND;
	wire.info.up = true;
	wire.info.stalled_us = SECOND;
	wire.passes_small = true;
	return a;
}

static void end(struct agent *a)
{
	lone_agent_free(a);
}

/* Lets `us` microseconds of heartbeats pass. Returns true if the last heartbeat reports that the
 * link loses large messages. */
static bool beats(struct agent *a, int64_t us)
{
	struct msg_stuck stuck[MSG_STUCK];
	uint32_t n = 0;

	for (int64_t until_us = wire.now_us + us; wire.now_us < until_us;) {
		wire.now_us += BEAT_US;
		n = probe_links(&a->peers, stuck, wire.now_us);
	}
	return n == 1 && stuck[0].large_lost && stuck[0].small_passes;
}

/* The first connection proves nothing, because TCP may be waiting after losses. The second
 * connection is judged after two seconds or after three times the expected time, whichever is
 * longer. */
TEST(a_network_that_loses_large_messages_is_reported)
{
	struct agent *a = begin(SECOND / 4);

	assert_false(beats(a, 6 * SECOND));
	assert_true(beats(a, SECOND));
	assert_true(beats(a, 20 * SECOND));
	wire.passes_large = true;
	wire.info.stalled_us = 0;
	assert_false(beats(a, SECOND));
	assert_false(a->peers.list[0].doubted || a->peers.list[0].trial.loses_large);
	end(a);
	a = begin(2 * SECOND);
	assert_false(beats(a, 11 * SECOND));
	assert_true(beats(a, 4 * SECOND));
	end(a);
}

/* The agent has already replaced the first connection, because the controller ordered this. The
 * second connection is judged by the shorter limit. */
TEST(a_forgotten_link_is_tried_sooner)
{
	struct agent *a = begin(SECOND / 4);

	assert_false(beats(a, SECOND));
	played_redial(&a->peers, 0);
	assert_false(beats(a, 2 * SECOND));
	assert_true(beats(a, SECOND));
	end(a);
}

/* The waiting message is never dropped, so the first connection stays and is judged by the longer
 * limit. */
TEST(a_link_whose_message_still_waits_needs_longer)
{
	struct agent *a = begin(SECOND / 4);

	wire.waits = true;
	assert_false(beats(a, 20 * SECOND));
	assert_true(beats(a, SECOND));
	assert_int_equal(a->peers.list[0].dial, 1);
	end(a);
}

/* Only the first connection is stuck. The new connection answers large probes, which ends the
 * doubt. */
TEST(a_connection_that_backs_off_is_not_reported)
{
	struct agent *a = begin(SECOND / 4);

	wire.only_first_is_stuck = true;
	for (int i = 0; i < 200; i++) {
		assert_false(beats(a, BEAT_US));
		assert_false(a->peers.list[0].trial.loses_large);
	}
	assert_true(a->peers.list[0].dial > 1);
	end(a);
}

TEST(a_link_that_passes_nothing_is_not_reported)
{
	struct agent *a = begin(SECOND / 4);

	wire.passes_small = false;
	assert_false(beats(a, 60 * SECOND));
	assert_false(a->peers.list[0].trial.loses_large);
	end(a);
}
