/* The appearance of nodes, tasks, numbers and times. Also rows of words that fit a given width. */
#include "tui/screen/glyphs.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/timestamp.h"

/* The appearance of each kind of task. */
static const struct {
	char glyph, planned, letter;
	enum style style, bar;
} tasks[] = {
	[TASK_FORWARD] = { '=', '-', 'F', STYLE_FORWARD, STYLE_BAR_FORWARD },
	[TASK_LOSS] = { 'L', 'l', 'L', STYLE_LOSS, STYLE_BAR_LOSS },
	[TASK_BACKWARD] = { '#', ':', 'B', STYLE_BACKWARD, STYLE_BAR_BACKWARD },
	[TASK_EVALUATE] = { 'v', 'v', 'V', STYLE_EVALUATE, STYLE_BAR_EVALUATE },
};

static unsigned task_index(enum task_kind k)
{
	return (unsigned)k < sizeof(tasks) / sizeof(tasks[0]) ? (unsigned)k : TASK_EVALUATE;
}

char glyphs_task_glyph(enum task_kind k)
{
	return tasks[task_index(k)].glyph;
}

char glyphs_task_planned(enum task_kind k)
{
	return tasks[task_index(k)].planned;
}

char glyphs_task_letter(enum task_kind k)
{
	return tasks[task_index(k)].letter;
}

enum style glyphs_task_style(enum task_kind k)
{
	return tasks[task_index(k)].style;
}

enum style glyphs_bar_style(enum task_kind k)
{
	return tasks[task_index(k)].bar;
}

static bool look_away(struct node_glyph *l, const struct state_node *n)
{
	static const struct {
		char glyph;
		enum style style;
	} away[] = {
		[NODE_NOT_THERE] = { '-', STYLE_IDLE },
		[NODE_COMES] = { '^', STYLE_JOINING },
		[NODE_LOST] = { '!', STYLE_FAILED },
	};
	enum node_presence presence = node_presence(n->see.state);

	if (presence == NODE_TAKES_PART)
		return false;
	l->glyph = away[presence].glyph;
	l->style = away[presence].style;
	snprintf(l->word, sizeof(l->word), "%s", node_state_brief(n->see.state));
	return true;
}

void glyphs_node(struct node_glyph *l, const struct state *s, const struct state_node *n)
{
	const struct state_segment *g = state_newest(n);
	bool slow = state_is_slow(s, n);

	memset(l, 0, sizeof(*l));
	if (look_away(l, n))
		return;
	l->queued = n->n_queue + n->queue_overflow;
	if (n->running && g) {
		l->glyph = slow ? '~' : glyphs_task_glyph(g->kind);
		l->style = slow ? STYLE_SLOW : glyphs_task_style(g->kind);
		snprintf(l->word, sizeof(l->word), "m%02u", g->microbatch);
	} else if (n->n_queue > 0) {
		l->glyph = 'x';
		l->style = STYLE_BLOCKED;
		snprintf(l->word, sizeof(l->word), "m%02u", n->queue[0].microbatch);
		l->queued--;
	} else {
		l->glyph = slow ? '~' : '.';
		l->style = slow ? STYLE_SLOW : STYLE_IDLE;
		snprintf(l->word, sizeof(l->word), "%s",
			 n->see.state == NODE_SUSPECT ? "suspect"
			 : slow                       ? "slow"
						      : "idle");
	}
}

void glyphs_step(const struct state *s, char text[64])
{
	static const char *const format[] = {
		[GATHER_COMING] = "%u of %u have joined",
		[GATHER_LINKS] = "round %u of %u",
		[GATHER_COMPUTE] = "%u of %u",
		[GATHER_PLAN] = "%u of %u",
		[GATHER_BUILD] = "%u of %u ready",
	};
	const struct msg_see_status *t = &s->status;
	int n;

	text[0] = '\0';
	if (!t->parts || t->step > GATHER_BUILD)
		return;
	n = snprintf(text, 64, format[t->step], t->part, t->parts);
	if (t->left_s >= 1 && t->left_s < 1e6f)
		snprintf(text + n, 64 - (size_t)n, ", about %.0f s left", (double)t->left_s);
}

void glyphs_loss(float v, int decimals, char text[16])
{
	if (isnan(v))
		snprintf(text, 16, "-");
	else
		snprintf(text, 16, "%.*f", decimals, (double)v);
}

void glyphs_count(double v, char text[16])
{
	static const char units[] = " kMGTP";
	int u = 0;

	while (fabs(v) >= 999.5 && u < 5) {
		v /= 1000;
		u++;
	}
	if (u == 0)
		snprintf(text, 16, "%.0f", v);
	else
		snprintf(text, 16, "%.*f%c", fabs(v) < 99.95 ? 1 : 0, v, units[u]);
}

int glyphs_decimals(double s)
{
	return s < 0.095 ? 3 : s < 0.95 ? 2 : 1;
}

void glyphs_age(double s, char text[16])
{
	if (!(s >= 0))
		s = 0;
	if (s > 1e7)
		s = 1e7;
	if (s > 0 && s < 0.0995)
		snprintf(text, 16, "%.0fms", s * 1e3);
	else if (s < 9.95)
		snprintf(text, 16, "%.1fs", s);
	else if (s < 99.5)
		snprintf(text, 16, "%.0fs", s);
	else if (s < 3600)
		snprintf(text, 16, "%dm%02d", (int)s / 60, (int)s % 60);
	else
		snprintf(text, 16, "%dh%02d", (int)s / 3600, (int)s / 60 % 60);
}

void glyphs_change(double base, double now, char text[16])
{
	double change = base > 0 ? (now / base - 1) * 100 : 0;

	if (!(base > 0) || !isfinite(change))
		snprintf(text, 16, "?");
	else if (fabs(change) > 999)
		snprintf(text, 16, "%+.0fx", now / base);
	else
		snprintf(text, 16, "%+.0f%%", change == 0 ? 0.0 : change);
}

void glyphs_clock(int64_t wall_us, int64_t now_us, char text[16])
{
	char then[TIMESTAMP_SIZE], now[TIMESTAMP_SIZE];

	timestamp_text(wall_us, then);
	timestamp_text(now_us, now);
	then[10] = ' ';
	if (strncmp(then, now, 10) == 0)
		snprintf(text, 16, "%.8s", then + 11);
	else
		snprintf(text, 16, "%.14s", then + 5);
}

void chips_add(struct chips *c, int rank, unsigned style, const char *format, ...)
{
	struct chip *one;
	va_list args;

	if (c->n == (int)(sizeof(c->chip) / sizeof(c->chip[0])))
		return;
	one = &c->chip[c->n++];
	one->rank = rank;
	one->style = style;
	va_start(args, format);
	vsnprintf(one->text, sizeof(one->text), format, args);
	va_end(args);
}

static int chips_width(const struct chips *c, int gap)
{
	int w = 0;

	for (int i = 0; i < c->n; i++)
		if (c->chip[i].rank >= 0)
			w += screen_columns(c->chip[i].text) + (w ? gap : 0);
	return w;
}

int chips_draw(struct chips *c, struct screen *s, int x, int y, int w, const char *gap)
{
	int wide = screen_columns(gap), taken = 0;

	for (int rank = 0; rank < 9 && chips_width(c, wide) > w; rank++)
		for (int i = c->n - 1; i >= 0 && chips_width(c, wide) > w; i--)
			if (c->chip[i].rank == rank)
				c->chip[i].rank = -1;
	for (int i = 0; i < c->n; i++) {
		if (c->chip[i].rank < 0)
			continue;
		if (taken)
			taken += screen_text(s, x + taken, y, w - taken, STYLE_FAINT, gap);
		taken += screen_text(s, x + taken, y, w - taken, c->chip[i].style,
				     c->chip[i].text);
	}
	return taken;
}
