/* How long the console takes: per message applied and per picture drawn, over a recorded
 * stream.
 *
 *     STREAM_KEEP=run.rec STREAM_NODES=1000 build/tui/tests/view_test
 *     build/bench/tui run.rec [COLUMNS ROWS]
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tui/record.h"
#include "tui/view.h"

enum { MOST = 100000, FRAME_US = 100000 };

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double draw(struct screen *screen, const struct state *s, struct ui *u, int64_t at_us,
		   int view)
{
	int64_t start = clock_monotonic_us();

	u->view = (enum view)view;
	ui_tick(u, s, at_us, at_us);
	u->heard_us = at_us;
	view_draw(screen, s, u);
	return (double)(clock_monotonic_us() - start) / 1e3;
}

int main(int argc, char **argv)
{
	static double frames[MOST];
	struct record_reader *r;
	struct error err = { "" };
	struct screen *screen;
	struct state *s;
	struct ui u;
	struct msg m;
	const void *data;
	size_t size, messages = 0, events = 0;
	int64_t at, next = 0, apply_us = 0, start;
	int n = 0, w = argc > 3 ? atoi(argv[2]) : 160, h = argc > 3 ? atoi(argv[3]) : 48;

	if (argc < 2 || record_open(&r, argv[1], &err) != 0 || state_new(&s) != 0 ||
	    screen_new(&screen, w, h, false) != 0) {
		fprintf(stderr, "usage: tui FILE [COLUMNS ROWS] %s\n", err.text);
		return 2;
	}
	ui_init(&u, GRAPH_BRAILLE);
	ui_link_is(&u, UI_LIVE, "");
	while (record_next(r, &at, &data, &size) == 0) {
		start = clock_monotonic_us();
		if (msg_decode(&m, data, size) != 0)
			continue;
		state_apply(s, &m);
		messages++;
		events += m.type == MSG_SEE_TASKS ? m.u.see_tasks.n_events : 0;
		msg_clear(&m);
		apply_us += clock_monotonic_us() - start;
		if (s->synced && at >= next && n < MOST) {
			frames[n] =
				draw(screen, s, &u, at, n % 4 ? VIEW_OVERVIEW : 1 + n / 4 % 8);
			n++;
			next = at + FRAME_US;
		}
	}
	if (n == 0)
		return 1;
	qsort(frames, (size_t)n, sizeof(*frames), compare);
	printf("%zu messages, %zu events: %.2f us an event\n", messages, events,
	       events ? (double)apply_us / (double)events : 0);
	printf("%d pictures of %dx%d, %u nodes: p50 %.2f ms, p99 %.2f ms, most %.2f ms\n", n, w,
	       h, s->n_nodes, frames[n / 2], frames[n * 99 / 100], frames[n - 1]);
	screen_free(screen);
	state_free(s);
	record_close(r);
	return 0;
}
