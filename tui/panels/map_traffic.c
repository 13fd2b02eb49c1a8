/* Draws what moves on the map. Agents report only the beginning and the end of a transfer. In
 * between, the position of a microbatch is estimated from the transfer time of its link. */
#include "tui/panels/map_traffic.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/screen/colouring.h"
#include "tui/screen/glyphs.h"

/* The map shows numbers of travelling microbatches if it has LABEL_CELLS cells for each such
 * microbatch, and their tails if it has TAIL_CELLS cells for each. */
enum { LABEL_CELLS = 60, TAIL_CELLS = 4 };

/* ---- links ---- */

/* Draws slow and cut links: their lines or, if `labels` is true, their texts. Texts are drawn after
 * all lines. */
static void draw_links(struct chart *c, bool labels)
{
	char text[40];

	for (uint32_t i = 0; i < c->m->n_slow; i++) {
		const struct map_link *k = &c->m->slow[i];
		const struct msg_link *l = state_link(c->s, k->from, k->to);

		if (!l || !map_is_slow(l))
			continue;
		snprintf(text, sizeof(text), "n%02u>n%02u %.1fx", (unsigned)k->from,
			 (unsigned)k->to, (double)map_times(l));
		if (!labels)
			chart_connect(c, k->from, k->to, LINE_SLOW, 1);
		else if (i == 0)
			chart_label_link(c, k->from, k->to, STYLE_WARNING, text);
	}
	for (uint32_t i = 0; i < c->s->n_faults; i++) {
		const struct msg_see_fault *f = &c->s->faults[i];

		if (labels || f->kind != FAULT_SLOW_LINK || f->node < 0 || f->peer < 0 ||
		    f->node >= MSG_NODES || f->peer >= MSG_NODES)
			continue;
		chart_connect(c, (uint16_t)f->node, (uint16_t)f->peer, LINE_SLOW, 1);
	}
	for (uint32_t i = 0; i < c->m->n_cut; i++) {
		const struct map_link *k = &c->m->cut[i];

		if (!labels)
			chart_connect(c, k->from, k->to, LINE_CUT, 3);
		else
			chart_label_link(c, k->from, k->to, STYLE_FAILED, "X cut");
	}
}
/* ---- microbatches ---- */

/* Returns the measured or else the planned transfer time of a link, in plan seconds; 0: unknown. */
static double usual_s(const struct state *s, uint16_t from, uint16_t to)
{
	const struct msg_link *l = state_link(s, from, to);

	if (!l)
		l = state_link(s, to, from);
	return !l                        ? 0
	       : l->measured_delay_s > 0 ? (double)l->measured_delay_s
	       : l->planned_delay_s > 0  ? (double)l->planned_delay_s
					 : 0;
}

/* Returns the estimated progress of a microbatch's transfer, from 0.05 to 0.95. It is never 1,
 * because only a message says that the microbatch has arrived. */
static float progress_of(const struct chart *c, const struct state_flight *f)
{
	double usual = usual_s(c->s, state_chain_node(f, f->position),
			       state_chain_node(f, f->position + 1));
	double since = state_plan_s(c->s, c->u->clock.now_us - f->since_us);
	double part = usual > 0 ? since / usual : 0.5;

	return part < 0.05 ? 0.05f : part > 0.95 ? 0.95f : (float)part;
}

/* Draws a travelling microbatch: its tail or, if `label` is true, its number at the head of the
 * tail. */
static void draw_traveller(struct chart *c, const struct state_flight *f, float length, bool label)
{
	const struct rect *a = chart_marker(c, state_chain_node(f, f->position));
	const struct rect *b = chart_marker(c, state_chain_node(f, f->position + 1));
	uint32_t m = f->route.microbatch;
	unsigned style = colouring_text(c->u->display.colouring, c->s, m, STYLE_TRAVEL);
	struct spot p, q, head, tail;
	char text[16];
	float t, back;

	if (!a || !b || a == b)
		return;
	p = chart_middle(c, a);
	q = chart_middle(c, b);
	t = progress_of(c, f);
	back = fmaxf(t - length, 0);
	head = (struct spot){ p.x + (q.x - p.x) * t, p.y + (q.y - p.y) * t };
	tail = (struct spot){ p.x + (q.x - p.x) * back, p.y + (q.y - p.y) * back };
	if (!label) {
		chart_stroke(c, tail, head,
			     style >= STYLE_MICROBATCH_0
				     ? LINE_MICROBATCH + (style - STYLE_MICROBATCH_0)
				     : LINE_TRAVEL,
			     1);
		return;
	}
	snprintf(text, sizeof(text), "m%02u", m);
	if (m == c->u->selection.microbatch)
		style |= STYLE_REVERSE;
	chart_label(c, head, style | STYLE_BOLD, text);
}

static bool travels(const struct state_flight *f)
{
	return f->known && f->phase == FLIGHT_TRAVELLING;
}

/* Draws the tails of all travelling microbatches. If there are many, tails are short; if tails
 * would cover the map, none is drawn. */
static void draw_tails(struct chart *c)
{
	uint32_t n = 0, cells = (uint32_t)(c->at.w * c->at.h);

	for (uint32_t i = 0; i < c->s->n_flights; i++)
		n += travels(&c->s->flights[i]);
	c->numbered = cells >= LABEL_CELLS * n;
	for (uint32_t i = 0; cells >= TAIL_CELLS * n && i < c->s->n_flights; i++)
		if (travels(&c->s->flights[i]))
			draw_traveller(c, &c->s->flights[i], c->numbered ? 0.3f : 0.06f, false);
}

/* Writes the numbers of travelling microbatches where there is room, first the number of the
 * selected microbatch. */
static void draw_numbers(struct chart *c)
{
	const struct state_flight *chosen = chart_chosen(c);

	if (chosen && travels(chosen))
		draw_traveller(c, chosen, 0, true);
	for (uint32_t i = 0; c->numbered && i < c->s->n_flights; i++)
		if (travels(&c->s->flights[i]) && &c->s->flights[i] != chosen)
			draw_traveller(c, &c->s->flights[i], 0, true);
}

/* ---- the selected path ---- */

static void draw_path(struct chart *c)
{
	const struct state_flight *f = chart_chosen(c);

	for (uint32_t p = 0; f && p < f->route.n_hops; p++)
		chart_connect(c, state_chain_node(f, p), state_chain_node(f, p + 1), LINE_PATH, 1);
}

/* Appends the time of the transfer to chain position p, such as "1.2s"; "~1.2s" is the estimate for
 * a transfer that has not ended. */
static void add_transfer(const struct chart *c, const struct state_flight *f, uint32_t p,
			 char *text, size_t room)
{
	const struct state_hop *h = &f->chain[p];
	bool ended = h->arrived_us && h[-1].ended_us && h->arrived_us >= h[-1].ended_us;
	double s = ended ? state_plan_s(c->s, h->arrived_us - h[-1].ended_us)
			 : usual_s(c->s, state_chain_node(f, p - 1), state_chain_node(f, p));
	size_t n = strlen(text);
	char age[16];

	if (!ended && s <= 0)
		return;
	glyphs_age(s, age);
	snprintf(text + n, room - n, "%s%s%s", n ? " " : "", ended ? "" : "~", age);
}

/* Writes the transfer times next to the links of the selected path: forward, then back. */
void traffic_times(struct chart *c)
{
	const struct state_flight *f = chart_chosen(c);
	char text[64];

	for (uint32_t p = 1; f && p <= f->route.n_hops; p++) {
		uint32_t back = 2 * f->route.n_hops + 1 - p;

		text[0] = '\0';
		add_transfer(c, f, p, text, sizeof(text));
		add_transfer(c, f, back, text, sizeof(text));
		chart_label_link(c, state_chain_node(f, p - 1), state_chain_node(f, p),
				 STYLE_STRONG, text);
	}
}

/* Writes the selected microbatch's number next to the node where the microbatch is. If the
 * microbatch travels, or the node's marker names its task, the number is on the map already. */
static void label_chosen(struct chart *c)
{
	const struct state_flight *f = chart_chosen(c);
	const struct rect *r;
	struct spot at;
	char text[24];

	if (!f || (f->phase != FLIGHT_WAITING && (f->phase != FLIGHT_RUNNING || c->full)))
		return;
	r = chart_marker(c, state_chain_node(f, f->position));
	if (!r)
		return;
	snprintf(text, sizeof(text), "m%02u%s", f->route.microbatch,
		 f->phase == FLIGHT_WAITING ? " waits" : "");
	at = chart_middle(c, r);
	at.y -= 1;
	chart_label(c, at,
		    STYLE_BOLD | STYLE_REVERSE |
			    (f->phase == FLIGHT_WAITING ? STYLE_BLOCKED : STYLE_STRONG),
		    text);
}

void traffic_lines(struct chart *c)
{
	draw_tails(c);
	if (c->has_path)
		draw_path(c);
	draw_links(c, false);
}

void traffic_numbers(struct chart *c)
{
	label_chosen(c);
	draw_numbers(c);
	draw_links(c, true);
}
