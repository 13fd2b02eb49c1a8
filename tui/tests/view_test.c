/* Golden screens: every cell of what an operator sees, at a fixed instant of a made-up run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "tui/record.h"
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

static void keep(void *context, int64_t at_us, const struct msg *m)
{
	size_t size = msg_size(m);
	void *data = malloc(size);

	assert_int_equal(msg_encode(m, data, size), (long)size);
	assert_int_equal(record_write(context, at_us, data, size), 0);
	free(data);
}

/* Through the codec and a recorded stream the picture is the same. STREAM_KEEP=FILE keeps the
 * stream for `skippipe-console --play FILE`, of STREAM_NODES nodes. */
static void recorded(void **unused)
{
	const char *path = getenv("STREAM_KEEP"), *nodes = getenv("STREAM_NODES");
	struct record_reader *r;
	struct stream_options o;
	struct state *s;
	struct ui u;
	struct msg m;
	FILE *f;
	char *data;
	const void *bytes;
	size_t size, n;
	int64_t at;

	(void)unused;
	stream_defaults(&o);
	if (path) {
		o.live = 60;
		o.nodes = nodes ? (uint32_t)atoi(nodes) : o.nodes;
		o.dead = 9;
		f = fopen(path, "w");
		assert_non_null(f);
		stream_run(&o, keep, f);
		fclose(f);
		return;
	}
	f = open_memstream(&data, &size);
	assert_true(stream_run(&o, keep, f) > 0);
	fclose(f);
	assert_int_equal(record_open_memory(&r, data, size), 0);
	assert_int_equal(state_new(&s), 0);
	while (record_next_at(r, &at) == 0 && at <= STREAM_START_US + 1700000) {
		assert_int_equal(record_next(r, &at, &bytes, &n), 0);
		assert_int_equal(msg_decode(&m, bytes, n), 0);
		assert_int_equal(state_apply(s, &m), 0);
		msg_clear(&m);
	}
	golden_ui(&u, s, 1700000);
	u.selected = 6;
	golden_check(s, &u, "overview", 80, 24);
	state_free(s);
	record_close(r);
	free(data);
}

static const struct CMUnitTest all[] = {
	cmocka_unit_test(overview), cmocka_unit_test(recorded),
};

int main(void)
{
	return cmocka_run_group_tests(all, NULL, NULL);
}
