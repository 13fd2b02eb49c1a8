/* Tests the console's history: how the past is shown again, how events are found, and the limit of
 * memory. */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/tests/test.h"
#include "tui/run/history.h"
#include "tui/tests/golden.h"

static void remember(void *context, int64_t at_us, const struct msg *m)
{
	size_t size = msg_size(m);
	void *data = malloc(size);

	assert_int_equal(msg_encode(m, data, size), (long)size);
	assert_int_equal(history_append(context, at_us, data, size), 0);
	free(data);
}

/* Seeking a time shows the same picture, whatever time was shown before. */
TEST(an_earlier_picture_is_shown_again)
{
	struct stream_options o;
	struct history *h;
	struct state *s;
	struct ui u;
	size_t applied = 0;
	int64_t status_at, event;

	stream_defaults(&o);
	o.dead = -1;
	h = history_new(4 << 20); /* small enough for several checkpoints before the picture */
	assert_true(stream_run(&o, remember, h) > 0);
	s = state_new();
	/* Seeks the time of the picture from an earlier time, from the end, and from shortly
	 * before. */
	for (int i = 0; i < 3; i++) {
		static const int64_t from_us[] = { 0, INT64_MAX, STREAM_START_US + 1200000 };

		history_seek(h, from_us[i], &s, &applied, &status_at);
		history_seek(h, STREAM_START_US + 1700000, &s, &applied, &status_at);
		golden_ui(&u, s, 1700000);
		u.selection.node = 6;
		golden_check(s, &u, "overview", 80, 24);
		if (i == 0) {
			u.clock.frozen = true;
			u.clock.frozen_us = u.clock.now_us;
			u.clock.behind_us = 4200000;
			u.clock.span_us = 9000000;
			golden_check(s, &u, "replay", 80, 24);
		}
	}
	assert_int_equal(history_nearest_event(h, INT64_MAX, -1),
			 -1); /* journal entries of the snapshot are not events */
	history_free(h);
	o.dead = 9;
	h = history_new(64 << 20);
	assert_true(stream_run(&o, remember, h) > 0);
	event = history_nearest_event(h, INT64_MAX, -1);
	assert_true(event > STREAM_START_US && event < history_last_us(h));
	assert_int_equal(history_nearest_event(h, event, -1), -1);
	assert_int_equal(history_nearest_event(h, STREAM_START_US, 1), event);
	history_free(h);
	state_free(s);
}

/* Checks that *s equals the state that the first n messages make, applied one after another. */
static void check_state(const struct history *h, const struct state *s, size_t n)
{
	struct state *want = state_new();

	for (size_t i = 0; i < n; i++)
		history_apply(h, i, want);
	assert_int_equal(s->n_nodes, want->n_nodes);
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		const struct state_node *a = &s->nodes[i], *b = &want->nodes[i];

		assert_memory_equal(a, b, offsetof(struct state_node, queue));
		assert_memory_equal(a->queue, b->queue, a->n_queue * sizeof(a->queue[0]));
	}
	assert_int_equal(s->n_flights, want->n_flights);
	for (uint32_t i = 0; i < s->n_flights; i++)
		assert_memory_equal(s->flights[i].chain, want->flights[i].chain,
				    (2 * s->flights[i].route.n_hops + 1) *
					    sizeof(s->flights[i].chain[0]));
	assert_int_equal(s->history.n_notes, want->history.n_notes);
	assert_int_equal(s->history.n_iterations, want->history.n_iterations);
	assert_int_equal(s->n_links, want->n_links);
	assert_int_equal(s->plan.n_tasks, want->plan.n_tasks);
	assert_int_equal(s->n_collisions, want->n_collisions);
	state_free(want);
}

/* A step back starts at a checkpoint, so that it need not apply all messages. The state must be the
 * same as if all were applied. */
TEST(a_step_back_costs_a_part_of_the_history)
{
	struct stream_options o;
	struct history *h;
	struct state *s = state_new();
	size_t applied = 0, all, most = 0;
	int64_t status_at, first, last;

	stream_defaults(&o);
	o.live = 12;
	h = history_new(8 << 20);
	stream_run(&o, remember, h);
	first = history_first_us(h);
	last = history_last_us(h);
	all = history_seek(h, last, &s, &applied, &status_at);
	assert_int_equal(applied, history_count(h));
	for (int64_t i = 39; i >= 0; i--) {
		size_t bytes = history_seek(h, first + (last - first) / 40 * i, &s, &applied,
					    &status_at);

		most = bytes > most ? bytes : most;
		check_state(h, s, applied);
	}
	assert_true(most > 0 && most < all / 3);
	history_free(h);
	state_free(s);
}

TEST(a_full_history_takes_nothing_more)
{
	struct history *h;
	char data[100] = "";

	h = history_new(1000);
	for (int i = 0; i < 10; i++)
		assert_int_equal(history_append(h, i, data, 100), 0);
	assert_int_equal(history_append(h, 10, data, 100), -ENOSPC);
	assert_int_equal(history_count(h), 10);
	history_clear(h);
	assert_int_equal(history_append(h, 10, data, 100), 0);
	history_free(h);
}
