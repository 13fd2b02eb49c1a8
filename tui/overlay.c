/* What lies above a view: the dialog, the help, the palette. */
#include "tui/view.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tui/command.h"

enum { WIDE = 62 };

struct lines {
	char text[16][96];
	unsigned style[16];
	int n;
};

static void add(struct lines *l, unsigned style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void add(struct lines *l, unsigned style, const char *format, ...)
{
	va_list args;

	if (l->n == 16)
		return;
	va_start(args, format);
	vsnprintf(l->text[l->n], sizeof(l->text[0]), format, args);
	va_end(args);
	l->style[l->n++] = style;
}

/* ---- what a preview says ---- */

static void add_preview(struct lines *l, const struct ui *u)
{
	const struct dialog *d = &u->dialog;
	const struct msg_see_preview *p = &d->preview;
	char change[16], age[16];

	if (d->preview_id == 0) {
		add(l, STYLE_FAINT, "no preview: the controller is not connected");
		return;
	}
	if (!d->have_preview) {
		look_age((double)(u->local_us - d->asked_us) / 1e6, age);
		add(l, STYLE_FAINT,
		    u->local_us - d->asked_us > 300000 ? "planning... STALE %s"
						       : "planning...%s",
		    u->local_us - d->asked_us > 300000 ? age : "");
		return;
	}
	if (!p->feasible) {
		add(l, STYLE_ALERT, "not possible: %.70s", p->text);
		return;
	}
	if (p->after_iteration_s <= 0) { /* nothing is planned anew by it */
		add(l, STYLE_TEXT, "%s", *p->text ? p->text : "no path changes by it");
		return;
	}
	look_change((double)p->before_iteration_s, (double)p->after_iteration_s, change);
	add(l, STYLE_STRONG, "iteration %6.1f -> %.1f s  %s  (+-%.0f%%, n=%u)",
	    (double)p->before_iteration_s, (double)p->after_iteration_s, change,
	    (double)p->median_error * 100, p->n_predictions);
	add(l, STYLE_TEXT, "blocked   %6.1f -> %.1f s", (double)p->before_wait_s,
	    (double)p->after_wait_s);
	add(l, p->after_peak_slots > p->memory ? STYLE_ALERT : STYLE_TEXT,
	    "peak slots %5u -> %u of %u", p->before_peak_slots, p->after_peak_slots, p->memory);
	add(l, p->after_least_visits < p->before_least_visits ? STYLE_WARNING : STYLE_TEXT,
	    "least-trained S%u: %u -> %u visits an iteration%s", p->least_stage,
	    p->before_least_visits, p->after_least_visits,
	    p->after_least_visits < p->before_least_visits ? "  WARN" : "");
	add(l, STYLE_TEXT, "%u paths change, from iteration %llu", p->paths_changed,
	    (unsigned long long)p->iteration);
	if (*p->text)
		add(l, STYLE_WARNING, "%.90s", p->text);
}

/* What stops or moves when the node is gone, counted here. */
static void add_blast(struct lines *l, const struct state *s, uint16_t node)
{
	uint32_t through = 0, left = 0, stage = s->nodes[node].see.stage;

	for (uint32_t i = 0; i < s->n_flights; i++) {
		const struct state_flight *f = &s->flights[i];

		for (uint32_t h = 0; f->known && h < f->n_hops; h++)
			through += f->nodes[h] == node;
	}
	for (uint32_t i = 0; i < s->n_nodes; i++)
		left += i != node && s->nodes[i].known && s->nodes[i].see.stage == stage &&
			(s->nodes[i].see.state == NODE_LIVE ||
			 s->nodes[i].see.state == NODE_SUSPECT);
	add(l, STYLE_TEXT, "%u of %u microbatches pass n%02u and must move", through,
	    s->plan.n_routes, (unsigned)node);
	if (left == 0)
		add(l, STYLE_ALERT, "S%u: THE LAST COPY", stage);
	else
		add(l, left == 1 ? STYLE_WARNING : STYLE_TEXT, "S%u keeps %u other cop%s",
		    stage, left, left == 1 ? "y" : "ies");
}

static void show_value(const struct dialog_field *f, const struct state *s, char text[48])
{
	switch (f->unit) {
	case FIELD_STAGES:
		snprintf(text, 48, "%lld of %u = %lld%%", (long long)f->value, s->run.n_stages,
			 s->run.n_stages ? (long long)f->value * 100 / s->run.n_stages : 0);
		break;
	case FIELD_NODE:
		if (f->value < 0)
			snprintf(text, 48, "all");
		else
			snprintf(text, 48, "n%02lld", (long long)f->value);
		break;
	case FIELD_SECONDS:
		look_age((double)f->value, text);
		break;
	case FIELD_TIMES:
		snprintf(text, 48, "x%lld", (long long)f->value);
		break;
	case FIELD_PERCENT:
		snprintf(text, 48, "%lld%%", (long long)f->value);
		break;
	default:
		snprintf(text, 48, "%lld", (long long)f->value);
	}
}

static const char *title_of(const struct state *s, const struct ui *u, char text[80])
{
	const struct dialog *d = &u->dialog;
	uint32_t now = s->status.n_stages - s->status.path_length;

	switch (d->kind) {
	case DIALOG_SKIP:
		snprintf(text, 80, "Skip %u/%u -> %lld/%u", now, s->run.n_stages,
			 (long long)d->fields[0].value, s->run.n_stages);
		break;
	case DIALOG_FAIL:
		snprintf(text, 80, "Mark n%02u failed", (unsigned)d->node);
		break;
	case DIALOG_RECOVER:
		snprintf(text, 80, "Recover n%02u", (unsigned)d->node);
		break;
	case DIALOG_FAULT:
		snprintf(text, 80, "Inject a failure at n%02u", (unsigned)d->node);
		break;
	case DIALOG_INJECT:
		snprintf(text, 80, "Inject: %s", state_fault_name(d->fault));
		break;
	case DIALOG_HEAL:
		return "Heal";
	case DIALOG_UNDO:
		return "Undo";
	default:
		return "Quit";
	}
	return text;
}

static void fill(struct lines *l, const struct state *s, const struct ui *u)
{
	const struct dialog *d = &u->dialog;

	switch (d->kind) {
	case DIALOG_SKIP:
		add_preview(l, u);
		add(l, STYLE_FAINT, "undo: :skip %u",
		    s->status.n_stages - s->status.path_length);
		break;
	case DIALOG_FAIL:
		add_blast(l, s, d->node);
		if (d->forbidden)
			add(l, STYLE_ALERT, "%s", d->why);
		else
			add_preview(l, u);
		add(l, STYLE_FAINT, "it keeps running, unused; undo: R");
		break;
	case DIALOG_RECOVER:
		add(l, STYLE_TEXT, "n%02u is %s %.60s", (unsigned)d->node,
		    state_node_name(s->nodes[d->node].see.state), s->nodes[d->node].see.why);
		add(l, STYLE_TEXT,
		    "it fetches S%u from a copy and enters at an iteration's end",
		    (unsigned)s->nodes[d->node].see.stage);
		break;
	case DIALOG_INJECT:
		add_blast(l, s, (uint16_t)d->fields[0].value);
		add(l, STYLE_FAINT, "heals by itself; X heals all at once");
		break;
	case DIALOG_UNDO:
		add(l, STYLE_STRONG, "%s", d->undo_text);
		add_preview(l, u);
		break;
	case DIALOG_QUIT:
		if (u->owner)
			add(l, STYLE_ALERT, "This ends the run; what is committed is kept.");
		else
			add(l, STYLE_TEXT, "The run goes on without this console.");
		if (s->n_faults > 0)
			add(l, STYLE_WARNING,
			    s->n_faults == 1
				    ? "%u injected failure is active and heals by itself."
				    : "%u injected failures are active and heal by themselves.",
			    s->n_faults);
		break;
	default:
		break;
	}
}

static void fill_list(struct lines *l, const struct state *s, const struct ui *u)
{
	static const char *const faults[] = { "kill       the agent's process dies",
					      "hang       it stops answering",
					      "slow-node  it computes more slowly",
					      "slow-link  what it sends takes longer",
					      "loss       what it sends is lost at times",
					      "partition  it cannot reach the others",
					      "corrupt    what it sends is not finite" };
	const struct dialog *d = &u->dialog;

	if (d->kind == DIALOG_FAULT) {
		for (uint32_t i = 0; i < 7; i++)
			add(l, i == d->choice ? STYLE_TEXT | STYLE_REVERSE : STYLE_TEXT,
			    "%c %s", i == d->choice ? '>' : ' ', faults[i]);
	} else {
		for (uint32_t i = 0; i < s->n_faults; i++)
			add(l, i == d->choice ? STYLE_TEXT | STYLE_REVERSE : STYLE_TEXT,
			    "%c #%u %s n%02d", i == d->choice ? '>' : ' ', s->faults[i].fault,
			    state_fault_name(s->faults[i].kind), s->faults[i].node);
	}
	add(l, STYLE_FAINT, "Enter takes the line, Esc closes");
}

static const char *apply_name(const struct ui *u)
{
	switch (u->dialog.kind) {
	case DIALOG_FAIL:
		return "Mark failed";
	case DIALOG_RECOVER:
		return "Recover";
	case DIALOG_INJECT:
		return "Inject";
	case DIALOG_UNDO:
		return "Undo";
	case DIALOG_QUIT:
		return u->owner ? "Stop the run" : "Leave";
	default:
		return "Apply";
	}
}

static void draw_fields(struct screen *out, struct rect at, const struct state *s,
			const struct ui *u)
{
	const struct dialog *d = &u->dialog;
	int y = at.y;

	for (uint32_t i = 0; i < d->n_fields; i++, y++) {
		unsigned mark = d->focus == i ? STYLE_REVERSE : 0;
		char value[48];
		int x;

		show_value(&d->fields[i], s, value);
		x = screen_print(out, at.x, y, at.w, STYLE_TEXT, "%-15s ", d->fields[i].label);
		screen_print(out, at.x + x, y, at.w - x, STYLE_STRONG | mark, "%c < %s >",
			     mark ? '>' : ' ', value);
	}
	if (d->want_typed)
		screen_print(out, at.x, y, at.w,
			     STYLE_WARNING | (d->focus == d->n_fields ? STYLE_REVERSE : 0),
			     "type the node's number to confirm: %s_", d->typed);
}

static void draw_buttons(struct screen *out, struct rect at, const struct ui *u)
{
	const struct dialog *d = &u->dialog;
	uint32_t cancel = d->n_fields + (d->want_typed ? 1 : 0);
	const char *name = d->kind == DIALOG_QUIT ? "Stay" : "Cancel";
	int x = at.x + 2;

	x += screen_print(out, x, at.y, at.x + at.w - x,
			  d->focus == cancel ? STYLE_TEXT | STYLE_REVERSE : STYLE_TEXT,
			  "%c[%s]", d->focus == cancel ? '>' : ' ', name) +
	     2;
	screen_print(out, x, at.y, at.x + at.w - x,
		     (d->forbidden ? STYLE_FAINT : STYLE_TEXT) |
			     (d->focus == cancel + 1 ? STYLE_REVERSE : 0),
		     "%c[%s]", d->focus == cancel + 1 ? '>' : ' ', apply_name(u));
}

void overlay_dialog(struct screen *out, const struct state *s, const struct ui *u)
{
	const struct dialog *d = &u->dialog;
	bool list = d->kind == DIALOG_FAULT || d->kind == DIALOG_HEAL;
	struct lines l = { .n = 0 };
	struct rect box, in;
	char title[80];
	int fields = (int)d->n_fields + (d->want_typed ? 1 : 0);

	if (list)
		fill_list(&l, s, u);
	else
		fill(&l, s, u);
	box.w = screen_width(out) < WIDE ? screen_width(out) : WIDE;
	box.h = l.n + fields + (list ? 2 : 4);
	if (box.h > screen_height(out))
		box.h = screen_height(out);
	box.x = (screen_width(out) - box.w) / 2;
	box.y = (screen_height(out) - box.h) / 2;
	screen_box(out, box, title_of(s, u, title));
	in = (struct rect){ box.x + 2, box.y + 1, box.w - 4, box.h - 2 };
	draw_fields(out, in, s, u);
	for (int i = 0; i < l.n && fields + i < in.h; i++)
		screen_text(out, in.x, in.y + fields + i, in.w, l.style[i], l.text[i]);
	if (!list)
		draw_buttons(out, (struct rect){ in.x, box.y + box.h - 2, in.w, 1 }, u);
}

/* ---- help ---- */

/* The whole help as numbered lines, of which [first, first + rows) are drawn; groups stay
 * together in neither, so that a page is always full. Returns how many lines there are. */
static int help_lines(struct screen *out, const struct ui *u, struct rect at, int first)
{
	static const enum keymap_group order[GROUPS] = {
		GROUP_ACT, GROUP_VIEWS, GROUP_TIME, GROUP_FIND, GROUP_CONSOLE, GROUP_MOVE
	};
	int line = 0;

	for (int i = 0; i < GROUPS; i++) {
		enum keymap_group g = order[i];
		int y = at.y + line++ - first;

		if (y >= at.y && y < at.y + at.h)
			screen_text(out, at.x, y, at.w, STYLE_TITLE, keymap_group_name(g));
		for (int a = 1; a < ACTIONS; a++) {
			const struct keymap_entry *e = keymap_find((enum action)a);
			char keys[40] = "", key[16];

			if (!e || e->group != g || u->map.keys[a][0] == 0)
				continue;
			for (int k = 0; k < 2 && u->map.keys[a][k]; k++) {
				keymap_show(u->map.keys[a][k], key);
				snprintf(keys + strlen(keys), sizeof(keys) - strlen(keys),
					 "%s%s", k ? " " : "", key);
			}
			y = at.y + line++ - first;
			if (y < at.y || y >= at.y + at.h)
				continue;
			screen_text(out, at.x + 1, y, 8, STYLE_KEY, keys);
			screen_text(out, at.x + 10, y, at.w - 10, STYLE_TEXT, e->help);
		}
	}
	return line;
}

static int help_pages(const struct screen *out, const struct ui *u)
{
	struct screen *scratch;
	int columns = screen_width(out) >= 150 ? 2 : 1, rows = screen_height(out) - 2, lines;

	if (rows < 1 || screen_new(&scratch, 1, 1, true) != 0)
		return 1;
	lines = help_lines(scratch, u, (struct rect){ 0, 0, 1, 1 }, 0);
	screen_free(scratch);
	return (lines + rows * columns - 1) / (rows * columns);
}

void overlay_help(struct screen *out, const struct ui *u)
{
	struct rect box = screen_whole(out);
	int columns = box.w >= 150 ? 2 : 1, pages = help_pages(out, u), page;
	char title[96];

	if (box.w > 160) {
		box.x = (box.w - 160) / 2;
		box.w = 160;
	}
	page = (u->help - 1) % pages;
	if (pages > 1)
		snprintf(title, sizeof(title),
			 "Help %d/%d: ? turns the page, any other key closes", page + 1, pages);
	else
		snprintf(title, sizeof(title), "Help: any key closes");
	screen_box(out, box, title);
	for (int k = 0; k < columns; k++) {
		struct rect at = { box.x + 2 + k * (box.w - 4) / columns, box.y + 1,
				   (box.w - 4) / columns - 1, box.h - 2 };

		help_lines(out, u, at, (page * columns + k) * at.h);
	}
}

/* ---- palette ---- */

void overlay_palette(struct screen *out, const struct ui *u)
{
	size_t found[10], n = command_match(u->typed, found, 10), chosen;
	int w = screen_width(out), bottom = screen_height(out) - 2;
	struct rect box;

	if (n == 0 || bottom < 4)
		return;
	if ((int)n + 2 > bottom)
		n = (size_t)(bottom - 2);
	chosen = u->palette < n ? u->palette : n - 1;
	box = (struct rect){ 0, bottom - (int)n - 2, w < 78 ? w : 78, (int)n + 2 };
	screen_box(out, box, "Commands: Tab completes, Enter runs");
	for (size_t i = 0; i < n; i++) {
		const struct command_entry *e = command_at(found[i]);
		unsigned mark = i == chosen ? STYLE_REVERSE : 0;
		int y = box.y + 1 + (int)i, x = box.x + 1;
		char key[16] = "";

		if (e->action != ACTION_NONE)
			keymap_show_action(&u->map, e->action, key);
		screen_fill(out, (struct rect){ x, y, box.w - 2, 1 }, ' ', STYLE_TEXT | mark);
		screen_print(out, x, y, box.w - 2, STYLE_STRONG | mark, "%c%-12s",
			     mark ? '>' : ' ', e->name);
		screen_text(out, x + 14, y, 4, STYLE_KEY | mark, key);
		screen_print(out, x + 19, y, box.w - 22, STYLE_TEXT | mark, "%s%s%s",
			     e->arguments, *e->arguments ? ": " : "", e->help);
	}
}
