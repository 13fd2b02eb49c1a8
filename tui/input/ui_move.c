/* Moves the selection: over nodes and stages, or in some views over rows that are not nodes. */
#include "tui/input/ui.h"

#include "tui/run/notes.h"
#include "tui/run/roster.h"

void ui_select(struct ui *u, const struct state *s, uint16_t node)
{
	if (node < s->n_nodes && s->nodes[node].known)
		u->selection.node = node;
}

static void move_along(struct ui_selection *selection, const struct state *s, int by)
{
	struct roster r;
	int at;

	roster_make(&r, s, selection->filter);
	if (r.n == 0)
		return;
	at = roster_find(&r, selection->node);
	at = at < 0 ? 0 : ((at + by) % (int)r.n + (int)r.n) % (int)r.n;
	selection->node = r.nodes[at];
}

void ui_reselect(struct ui *u, const struct state *s)
{
	move_along(&u->selection, s, 0);
}

/* Moves the selection to the next or previous stage that has nodes. There it selects the node in
 * the same row or, if the stage has fewer rows, the last node. */
static void move_across(struct ui_selection *selection, const struct state *s, int by)
{
	struct roster r;
	uint32_t stage = 0, place;
	int at;

	roster_make(&r, s, selection->filter);
	at = roster_find(&r, selection->node);
	if (at < 0 || r.n_stages == 0) {
		move_along(selection, s, 0);
		return;
	}
	while (stage + 1 < r.n_stages && r.first[stage + 1] <= (uint32_t)at)
		stage++;
	place = (uint32_t)at - r.first[stage];
	for (uint32_t i = 0; i < r.n_stages; i++) {
		uint32_t n;

		stage = (stage + (by > 0 ? 1 : r.n_stages - 1)) % r.n_stages;
		n = r.first[stage + 1] - r.first[stage];
		if (n > 0) {
			selection->node = r.nodes[r.first[stage] + (place < n ? place : n - 1)];
			return;
		}
	}
}

static void move_to_end(struct ui_selection *selection, const struct state *s, bool last)
{
	struct roster r;

	roster_make(&r, s, selection->filter);
	if (r.n > 0)
		selection->node = r.nodes[last ? r.n - 1 : 0];
}

void ui_next_collision(struct ui *u, const struct state *s)
{
	struct roster r;
	int at;

	roster_make(&r, s, "");
	at = roster_find(&r, u->selection.node);
	for (uint32_t i = 1; i <= r.n; i++) {
		uint16_t node = r.nodes[((uint32_t)(at < 0 ? 0 : at) + i) % r.n];
		const struct state_node *n = &s->nodes[node];

		for (uint32_t q = 0; q < n->n_queue; q++) {
			if (n->queue[q].first)
				continue;
			u->selection.node = node;
			return;
		}
	}
	ui_say(u, STYLE_TEXT, "no microbatch waits");
}

static int rows_of(enum action a)
{
	return a == ACTION_UP || a == ACTION_PREVIOUS || a == ACTION_FIND_PREVIOUS ? -1
	       : a == ACTION_PAGE_UP                                               ? -10
	       : a == ACTION_PAGE_DOWN                                             ? 10
	       : a == ACTION_FIRST                                                 ? -1000000
	       : a == ACTION_LAST_ROW                                              ? 1000000
										   : 1;
}

/* Moves the selection in the journal. A selected entry stays selected while new entries arrive. The
 * id 0 means the newest entry, so the selection then moves with each new entry. */
static void move_note(struct ui_selection *selection, const struct state *s, int by)
{
	const struct msg_see_note *list[STATE_NOTES];
	int64_t n = (int64_t)notes_list(s, selection->filter, list);
	int64_t at = (int64_t)notes_place(list, (size_t)n, selection->note) + by;

	at = at >= n ? n - 1 : at;
	selection->note = at <= 0 ? 0 : list[at]->id;
}

struct curve_view ui_losses(const struct state *s, const struct ui *u)
{
	const struct state_history *h = &s->history;
	bool is_view = u->display.view == VIEW_LOSS;

	return (struct curve_view){ .own = { SERIES(h->iterations, h->n_iterations,
						    msg_see_iteration, loss, STYLE_TRAIN, true),
					     SERIES(h->validations, h->n_validations,
						    msg_see_validation, loss, STYLE_VALIDATION,
						    false) },
				    .others = is_view ? &u->others : NULL,
				    .axis = u->display.loss_axis,
				    .graph = u->display.graph,
				    .zoom = is_view ? u->display.loss_zoom : 0,
				    .cursor = u->display.loss_cursor,
				    .end_below_last = is_view };
}

/* Moves the cursor at which runs are compared by a 64th of the x axis. Returns false if the key
 * does not move this cursor, for example because no runs are compared. */
static bool move_loss_cursor(struct ui *u, const struct state *s, enum action a)
{
	struct curve_view view = ui_losses(s, u);
	uint64_t from, last, cursor, step;

	if (u->display.view != VIEW_LOSS || u->others.n == 0 ||
	    (a != ACTION_LEFT && a != ACTION_RIGHT && a != ACTION_FIRST && a != ACTION_LAST_ROW) ||
	    !curve_ends(s, &view, &from, &last, &cursor))
		return false;
	step = (last - from) / 64 + 1;
	if (a == ACTION_LAST_ROW) /* the cursor then follows the newest value */
		u->display.loss_cursor = 0;
	else if (a == ACTION_RIGHT)
		u->display.loss_cursor = last - cursor > step ? cursor + step : last;
	else
		u->display.loss_cursor =
			a == ACTION_LEFT && cursor - from > step ? cursor - step : from;
	return true;
}

/* Moves the selection in views whose rows are microbatches, candidates or journal entries. Returns
 * false in all other views. */
static bool move_rows(struct ui *u, const struct state *s, enum action a)
{
	int64_t at;
	int by = rows_of(a);

	if (u->display.view == VIEW_JOURNAL && a != ACTION_LEFT && a != ACTION_RIGHT) {
		move_note(&u->selection, s, by);
		return true;
	}
	if (u->display.view == VIEW_COMPARE && u->compare.n > 0) {
		u->compare.shown = (u->compare.shown + u->compare.n +
			      (a == ACTION_LEFT || by < 0 ? -1u : 1u)) %
			     u->compare.n;
		return true;
	}
	if ((u->display.view != VIEW_MICROBATCHES && u->display.view != VIEW_MAP) ||
	    a == ACTION_LEFT || a == ACTION_RIGHT)
		return false;
	if (u->display.view == VIEW_MAP && (a == ACTION_NEXT || a == ACTION_PREVIOUS))
		return false; /* in the map the selection moves over nodes too */
	at = (int64_t)u->selection.microbatch + by;
	at = at >= s->n_flights ? (int64_t)s->n_flights - 1 : at;
	u->selection.microbatch = (uint32_t)(at < 0 ? 0 : at);
	return true;
}

/* If the rows of the view are not nodes, moves over the rows. Otherwise moves over the nodes. */
void ui_move(struct ui *u, const struct state *s, enum action a)
{
	if (move_loss_cursor(u, s, a) || move_rows(u, s, a))
		return;
	switch (a) {
	case ACTION_NEXT:
	case ACTION_DOWN:
	case ACTION_FIND_NEXT:
		move_along(&u->selection, s, 1);
		break;
	case ACTION_PREVIOUS:
	case ACTION_UP:
	case ACTION_FIND_PREVIOUS:
		move_along(&u->selection, s, -1);
		break;
	case ACTION_LEFT:
		move_across(&u->selection, s, -1);
		break;
	case ACTION_RIGHT:
		move_across(&u->selection, s, 1);
		break;
	case ACTION_PAGE_UP:
		move_along(&u->selection, s, -10);
		break;
	case ACTION_PAGE_DOWN:
		move_along(&u->selection, s, 10);
		break;
	default:
		move_to_end(&u->selection, s, a == ACTION_LAST_ROW);
	}
}
