#include "tui/tests/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/tests/test.h"
#include "tui/views/view.h"

struct until {
	struct state *state;
	int64_t at_us;
};

static void take(void *context, int64_t at_us, const struct msg *m)
{
	struct until *u = context;

	if (at_us <= u->at_us)
		state_apply(u->state, m);
}

struct state *golden_state(const struct stream_options *o, int64_t until_us)
{
	struct until u = { .at_us = STREAM_START_US + until_us };

	u.state = state_new();
	assert_true(stream_run(o, take, &u) > 0);
	return u.state;
}

void golden_ui(struct ui *u, const struct state *s, int64_t until_us)
{
	int64_t local = 5000000 + until_us;

	ui_init(u, GRAPH_BRAILLE);
	ui_tick(u, s, local - (STREAM_START_US + until_us - s->status.now_us), 0);
	u->connection.last_message_us = local;
	ui_set_connection(u, UI_LIVE, "");
	ui_tick(u, s, local, STREAM_WALL_US + until_us);
}

struct state *golden_default(struct ui *u)
{
	const int64_t until_us = 1700000;
	struct stream_options o;
	struct state *s;

	stream_defaults(&o);
	s = golden_state(&o, until_us);
	if (u)
		golden_ui(u, s, until_us);
	return s;
}

struct state *golden_waves(struct ui *u, uint32_t nodes, uint32_t waves, int64_t until_us)
{
	struct stream_options o;
	struct state *s;

	stream_defaults(&o);
	o.nodes = nodes;
	o.waves = waves;
	o.live = 1;
	s = golden_state(&o, until_us);
	golden_ui(u, s, until_us);
	return s;
}

static void compare(const char *path, const char *picture)
{
	struct error err = { "" };
	size_t size;
	char *kept;

	if (getenv("GOLDEN_UPDATE")) {
		assert_int_equal(file_write(path, picture, strlen(picture), 0644, &err), 0);
		return;
	}
	if (file_read(path, 1 << 24, &kept, &size, &err) != 0)
		fail_msg("%s (GOLDEN_UPDATE=1 writes it)", err.text);
	if (strcmp(kept, picture) != 0) {
		print_error("%s differs; now it is:\n%s\n", path, picture);
		fail();
	}
	free(kept);
}

void golden_check(const struct state *s, const struct ui *u, const char *name, int w, int h)
{
	struct screen *screen;
	char path[256], *text;

	screen = screen_new(w, h, u->display.graph == GRAPH_ASCII);
	view_draw(screen, s, u);
	snprintf(path, sizeof(path), "tui/tests/golden/%s-%dx%d.txt", name, w, h);
	text = screen_dump(screen);
	assert_non_null(text);
	compare(path, text);
	free(text);
	snprintf(path, sizeof(path), "tui/tests/golden/%s-%dx%d.styles", name, w, h);
	text = screen_dump_styles(screen);
	assert_non_null(text);
	compare(path, text);
	free(text);
	screen_free(screen);
}
