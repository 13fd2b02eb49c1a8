/* View 2: every node in a row, the selected one in full below. */
#include <stdio.h>
#include <string.h>

#include "tui/screen/table.h"
#include "tui/views/view.h"

enum column {
	ID,
	STAGE,
	STATE,
	WORK,
	SLOTS,
	QUEUE,
	HEARD,
	BUSY,
	LOST,
	PLACE,
	FORWARD,
	BACKWARD,
	OWN,
	SENT,
	RESENT,
	MEMORY,
	HASH,
	DEVICE,
	WHY,
	COLUMNS
};

static const struct table_column columns[COLUMNS] = {
	[ID] = { "node", 5, 9, false },       [STAGE] = { "S", 3, 9, false },
	[STATE] = { "state", 8, 9, false },   [WORK] = { "does", 7, 8, false },
	[SLOTS] = { "slots", 5, 7, true },    [QUEUE] = { "wait", 4, 7, true },
	[HEARD] = { "heard", 5, 7, true },    [BUSY] = { "busy", 4, 5, true },
	[LOST] = { "if lost", 7, 6, true },   [PLACE] = { "place", 10, 6, false },
	[FORWARD] = { "F s", 5, 4, true },    [BACKWARD] = { "B s", 5, 4, true },
	[OWN] = { "own ms", 11, 2, true },    [SENT] = { "sent", 6, 3, true },
	[RESENT] = { "again", 5, 1, true },   [MEMORY] = { "rss", 6, 2, true },
	[HASH] = { "weights", 10, 5, false }, [DEVICE] = { "device", 8, 3, false },
	[WHY] = { "why", 12, 8, false },
};

#define MUCH 0.2f /* of an iteration more */

/* What an iteration would take longer without it, in words; the style they have. */
static unsigned say_cost_of_loss(const struct state *s, const struct msg_see_node *m, char *out,
				 size_t room)
{
	float now_s = s->plan.known ? s->plan.see.iteration_s : 0;

	if (m->state != NODE_LIVE && m->state != NODE_SUSPECT) {
		out[0] = '\0';
	} else if (!dialog_stage_has_others(s, m->node)) {
		snprintf(out, room, "last");
		return STYLE_WARNING;
	} else if (m->lost_s < 0) {
		snprintf(out, room, "no plan");
		return STYLE_WARNING;
	} else if (m->lost_s > 0 && now_s > 0) {
		snprintf(out, room, "%+.1fs", (double)(m->lost_s - now_s));
		return m->lost_s - now_s > MUCH * now_s ? STYLE_WARNING : STYLE_TEXT;
	} else {
		snprintf(out, room, "-");
	}
	return STYLE_FAINT;
}

static void draw_node(const struct table *t, struct screen *out, int row, const struct state *s,
		      const struct ui *u, const struct state_node *n, int digits)
{
	const struct msg_see_node *m = &n->see;
	unsigned mark = m->node == u->selected ? STYLE_REVERSE : 0;
	bool away = m->state >= NODE_FAILED || m->state == NODE_ABSENT;
	struct node_glyph l;
	char text[16];
	unsigned style;

	glyphs_node(&l, s, n);
	table_row(t, out, row, STYLE_TEXT | mark);
	table_cell(t, out, row, ID, STYLE_TEXT | mark, "%cn%0*u", mark ? '>' : ' ', digits,
		   (unsigned)m->node);
	if (state_unplaced(s))
		table_cell(t, out, row, STAGE, STYLE_FAINT | mark, "-");
	else
		table_cell(t, out, row, STAGE, STYLE_TEXT | mark, "S%u", (unsigned)m->stage);
	table_cell(t, out, row, STATE,
		   (away                       ? STYLE_FAILED
		    : m->state == NODE_SUSPECT ? STYLE_SLOW
		    : m->state == NODE_LIVE    ? STYLE_TEXT
					       : STYLE_JOINING) |
			   mark,
		   "%s", state_node_name(m->state));
	table_cell(t, out, row, WORK, l.style | mark, "%c%s", l.glyph, l.word);
	table_cell(t, out, row, SLOTS,
		   (n->slots >= m->memory && m->memory ? STYLE_WARNING : STYLE_TEXT) | mark,
		   "%u/%u", (unsigned)n->slots, (unsigned)m->memory);
	table_cell(t, out, row, QUEUE, (n->n_queue ? STYLE_BLOCKED : STYLE_FAINT) | mark, "%u",
		   n->n_queue + n->queue_overflow);
	glyphs_age((double)(u->now_us - m->heard_us) / 1e6, text);
	/* A live node is one whose heartbeats come; when the last one did is told only of the
	 * others. */
	table_cell(t, out, row, HEARD,
		   (m->state == NODE_LIVE ? STYLE_FAINT : STYLE_WARNING) | mark, "%s",
		   m->state == NODE_LIVE ? "<0.5s"
		   : m->heard_us         ? text
					 : "never");
	table_cell(t, out, row, BUSY, STYLE_TEXT | mark, "%d%%",
		   view_busy_percent(n,
				     s->iteration_us ? s->iteration_us : s->last_iteration_us,
				     u->now_us));
	style = say_cost_of_loss(s, m, text, sizeof(text));
	table_cell(t, out, row, LOST, style | mark, "%s", text);
	table_cell(t, out, row, PLACE, STYLE_TEXT | mark, "%s", m->location);
	table_cell(t, out, row, FORWARD, STYLE_TEXT | mark, "%.2f", (double)m->forward_s);
	table_cell(t, out, row, BACKWARD, STYLE_TEXT | mark, "%.2f", (double)m->backward_s);
	table_cell(t, out, row, OWN, STYLE_FAINT | mark, "%.1f/%.1f",
		   (double)m->measured_forward_s * 1e3, (double)m->measured_backward_s * 1e3);
	glyphs_count((double)m->sent_bytes, text);
	table_cell(t, out, row, SENT, STYLE_TEXT | mark, "%s", text);
	table_cell(t, out, row, RESENT, (m->resent ? STYLE_WARNING : STYLE_FAINT) | mark,
		   "%llu", (unsigned long long)m->resent);
	glyphs_count((double)m->rss_bytes, text);
	table_cell(t, out, row, MEMORY, STYLE_TEXT | mark, "%s", text);
	table_cell(t, out, row, HASH,
		   (m->hash_agrees || !m->hash ? STYLE_FAINT : STYLE_ALERT) | mark, "%08llx%s",
		   (unsigned long long)(m->hash & 0xffffffff),
		   m->hash_agrees || !m->hash ? "" : "!!");
	table_cell(t, out, row, DEVICE, STYLE_FAINT | mark, "%.*s",
		   (int)strcspn(m->device, " "), m->device);
	table_cell(t, out, row, WHY, STYLE_WARNING | mark, "%s", m->why);
}

/* The selected node in words: what does not fit a row. */
static void draw_detail(struct screen *out, struct rect at, const struct state *s,
			const struct ui *u)
{
	const struct state_node *n = &s->nodes[u->selected];
	const struct msg_see_node *m = &n->see;
	char title[64], since[16], sent[16], received[16], costs[16];
	int x, y = at.y + 1;

	if (at.h < 3 || !n->known)
		return;
	glyphs_age((double)(u->now_us - m->since_us) / 1e6, since);
	glyphs_count((double)m->sent_bytes, sent);
	glyphs_count((double)m->received_bytes, received);
	screen_print(out, at.x, y++, at.w, STYLE_TEXT, "%s for %s  %s  %s pid %lld on %s  %s",
		     state_node_name(m->state), since, m->location, m->device,
		     (long long)m->pid, m->host, m->why);
	screen_print(out, at.x, y++, at.w, STYLE_TEXT,
		     "planned F %.3f B %.3f L %.3f s; its own F %.1f B %.1f ms; "
		     "sent %sB received %sB again %llu; holds iteration %llu",
		     (double)m->forward_s, (double)m->backward_s, (double)m->loss_s,
		     (double)m->measured_forward_s * 1e3, (double)m->measured_backward_s * 1e3,
		     sent, received, (unsigned long long)m->resent,
		     (unsigned long long)m->committed);
	if (y < at.y + at.h) {
		x = screen_text(out, at.x, y, at.w, STYLE_FAINT,
				n->n_queue ? "waiting:" : "nobody waits here");
		for (uint32_t i = 0; i < n->n_queue; i++)
			x += screen_print(out, at.x + x, y, at.w - x, STYLE_BLOCKED,
					  " %c m%02u", glyphs_task_letter(n->queue[i].kind),
					  n->queue[i].microbatch);
		if (m->lost_s > 0 &&
		    say_cost_of_loss(s, m, costs, sizeof(costs)) != STYLE_FAINT)
			screen_print(out, at.x + x, y, at.w - x, STYLE_TEXT,
				     "; if it were lost: %.1f s an iteration (%s), that plan "
				     "is ready",
				     (double)m->lost_s, costs);
	}
	snprintf(title, sizeof(title), state_unplaced(s) ? "n%02u" : "n%02u of S%u",
		 (unsigned)m->node, (unsigned)m->stage);
	screen_rule(out, at, title, NULL);
}

void view_nodes(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		const struct roster *r)
{
	struct rect list = at, detail = at;
	int first, rows;
	struct table t;
	char title[128];

	detail.h = at.h >= 12 ? 4 : 0;
	detail.y = at.y + at.h - detail.h;
	list.h -= detail.h;
	snprintf(title, sizeof(title), "Nodes: %u of %u%s%s", r->n, s->run.n_nodes,
		 *u->filter ? " match " : "", u->filter);
	screen_rule(out, at, title, at.w >= 60 ? "F R I act on the selected one" : NULL);
	list.y++;
	list.h--;
	table_open(&t, out, list, columns, COLUMNS);
	rows = list.h - 1;
	first = table_first((int)r->n, rows, roster_find(r, u->selected));
	for (int i = 0; i < rows && first + i < (int)r->n; i++)
		draw_node(&t, out, i, s, u, &s->nodes[r->nodes[first + i]], r->digits);
	draw_detail(out, detail, s, u);
}
