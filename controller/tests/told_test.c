/* What a new process of a node is told to emulate: the cluster as given, whatever has been measured since. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "controller/tests/player.h"

static void what_is_believed_is_not_emulated(void **state)
{
	const char *options[] = { "--eval-every", "0", "--time-scale", "1", NULL };
	struct world *w = world_new(options);
	struct player *p = &w->players[4];
	float first[PLAYERS];

	(void)state;
	WORLD_UNTIL(w, world_all_live(w));
	memcpy(first, p->emulates_s, sizeof(first));
	assert_true(first[0] > 0 && first[8] > 0);
	player_tells_ways(p, 50);
	player_tells_ways(p, 50);
	WORLD_UNTIL(w, strstr(w->console.journal, "links take 50"));
	player_replace(p);
	WORLD_UNTIL(w, p->welcomes == 2);
	assert_memory_equal(p->emulates_s, first, sizeof(first));
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_believed_is_not_emulated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
