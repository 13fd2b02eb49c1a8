/* preparation_test.c - agents connect to one another before a plan takes effect. Each player checks
 * that it was ordered, in time, to connect to the nodes to which the plan makes it send
 * (check_connected). */

#include <string.h>

#include "base/tests/test.h"
#include "controller/tests/player.h"

static const char *const measured[] = { "--eval-every", "0", "--wire", "fp32", NULL };

/* Before a plan takes effect, each agent is ordered to connect to the nodes to which it sends in
 * this plan. This also holds for a plan that replaces another plan. */
TEST(agents_connect_before_a_plan)
{
	struct world *w = world_new(measured);
	uint64_t epoch;

	WORLD_UNTIL(w, w->committed >= 2);
	epoch = w->planned;
	player_replace(&w->players[4]);
	WORLD_UNTIL(w, w->planned > epoch && world_all_live(w));
	epoch = w->committed;
	WORLD_UNTIL(w, w->committed >= epoch + 2);
	for (int i = 0; i < PLAYERS; i++)
		assert_true(w->connects[i].id > 0 && !w->connects[i].came_too_late);
	world_free(w);
}

/* A link that cannot be opened delays the plan, but does not stop the run. */
TEST(a_plan_does_not_wait_for_ever)
{
	struct world *w = world_new(measured);

	w->never_connected = true;
	WORLD_UNTIL(w, w->committed >= 2);
	world_free(w);
}

/* In an emulated network nothing is prepared. */
TEST(an_emulated_network_needs_no_connections)
{
	const char *options[] = { "--eval-every", "0",    "--emulate", "regions", "--time-scale",
				  "0.01",	  "--wire", "fp32",	 NULL };
	struct world *w = world_new(options);

	WORLD_UNTIL(w, w->committed >= 2);
	for (int i = 0; i < PLAYERS; i++)
		assert_int_equal(w->connects[i].id, 0);
	world_free(w);
}
