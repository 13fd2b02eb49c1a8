/* Golden screens: every cell of what an operator sees, at a fixed instant of a made-up run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tui/tests/golden.h"
#include "tui/view.h"

static const int sizes[][2] = { { 80, 24 }, { 120, 36 }, { 160, 48 } };
enum { SIZES = 3 };

static void overview(void **unused)
{
	struct stream_options o;
	struct state *s;
	struct ui u;

	(void)unused;
	stream_defaults(&o);
	s = golden_state(&o, 1700000);
	golden_ui(&u, s, 1700000);
	u.selected = 6;
	for (int i = 0; i < SIZES; i++)
		golden_check(s, &u, "overview", sizes[i][0], sizes[i][1]);
	u.graph = GRAPH_ASCII;
	golden_check(s, &u, "overview-ascii", 80, 24);
	golden_check(s, &u, "overview-ascii", 160, 48);
	state_free(s);
}

static const struct CMUnitTest all[] = {
	cmocka_unit_test(overview),
};

int main(void)
{
	return cmocka_run_group_tests(all, NULL, NULL);
}
