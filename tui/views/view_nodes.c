/* View 2: a row for each node, and details of the selected node below.
 *
 * Each column of the table has a function that writes its cell, and an element in the array
 * `columns`. This array has the order of the columns on the screen.
 */
#include <stdio.h>
#include <string.h>

#include "tui/screen/table.h"
#include "tui/views/view.h"

/* The data from which the functions of the columns write their cells. */
struct node_row {
	const struct state *s;
	const struct ui *u;
	const struct state_node *n;
	const struct msg_see_node *m; /* points to n->see */
	struct node_glyph glyph;
	int digits; /* number of digits of a node's number */
};

enum { CELL = 160, HINT = 38 /* HINT: columns of the hint next to the title */ };

/* If an iteration without the node would be longer by more than this share, the added time is shown
 * as a warning. */
#define MUCH 0.2f

/* Writes how much longer an iteration would take without the node. Returns the style of the
 * text. */
static unsigned cost_of_loss_text(const struct state *s, const struct msg_see_node *m, char *out,
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

/* ---- cells: each function writes the text and returns the style ---- */

static unsigned write_absent(char text[CELL])
{
	snprintf(text, CELL, "-");
	return STYLE_FAINT;
}

static unsigned write_number(const struct node_row *r, char text[CELL])
{
	snprintf(text, CELL, "%cn%0*u", r->m->node == r->u->selection.node ? '>' : ' ', r->digits,
		 (unsigned)r->m->node);
	return STYLE_TEXT;
}

static unsigned write_stage(const struct node_row *r, char text[CELL])
{
	if (state_has_no_stages(r->s))
		return write_absent(text);
	snprintf(text, CELL, "S%u", (unsigned)r->m->stage);
	return STYLE_TEXT;
}

static unsigned write_layers(const struct node_row *r, char text[CELL])
{
	if (state_has_no_stages(r->s))
		return write_absent(text);
	snprintf(text, CELL, "%u", (unsigned)r->m->layers);
	return STYLE_TEXT;
}

static unsigned write_state(const struct node_row *r, char text[CELL])
{
	enum node_state state = r->m->state;

	snprintf(text, CELL, "%s", node_state_shown(state));
	switch (node_presence(state)) {
	case NODE_TAKES_PART:
		return state == NODE_LIVE ? STYLE_TEXT : STYLE_SLOW;
	case NODE_COMES:
		return STYLE_JOINING;
	default:
		return STYLE_FAILED;
	}
}

static unsigned write_work(const struct node_row *r, char text[CELL])
{
	snprintf(text, CELL, "%c%s", r->glyph.glyph, r->glyph.word);
	return r->glyph.style;
}

static unsigned write_slots(const struct node_row *r, char text[CELL])
{
	snprintf(text, CELL, "%u/%u", (unsigned)r->n->slots, (unsigned)r->m->memory);
	return r->n->slots >= r->m->memory && r->m->memory ? STYLE_WARNING : STYLE_TEXT;
}

static unsigned write_queue(const struct node_row *r, char text[CELL])
{
	snprintf(text, CELL, "%u", r->n->n_queue + r->n->queue_overflow);
	return r->n->n_queue ? STYLE_BLOCKED : STYLE_FAINT;
}

/* Writes the time since the node's last heartbeat. A live node sends heartbeats all the time, so
 * its cell always says "<0.5s". */
static unsigned write_heard(const struct node_row *r, char text[CELL])
{
	if (r->m->state == NODE_LIVE) {
		snprintf(text, CELL, "<0.5s");
		return STYLE_FAINT;
	}
	if (r->m->heard_us)
		glyphs_age((double)(r->u->clock.now_us - r->m->heard_us) / 1e6, text);
	else
		snprintf(text, CELL, "never");
	return STYLE_WARNING;
}

static bool is_here(const struct msg_see_node *m)
{
	enum node_presence presence = node_presence(m->state);

	return presence == NODE_TAKES_PART || presence == NODE_COMES;
}

/* Writes the share of the newest iteration that the device spent in a state. The longest kind of
 * wait is highlighted. */
static unsigned write_share(const struct node_row *r, enum device_state state, char text[CELL])
{
	unsigned percent[DEVICE_STATES];

	if (!is_here(r->m) || !device_time_percent(&r->m->spent, percent))
		return write_absent(text);
	snprintf(text, CELL, "%u%%", percent[state]);
	for (int i = DEVICE_BUSY + 1; state != DEVICE_BUSY && i < DEVICE_STATES; i++)
		if (percent[i] > percent[state])
			return STYLE_FAINT;
	return STYLE_TEXT;
}

static unsigned write_busy(const struct node_row *r, char text[CELL])
{
	return write_share(r, DEVICE_BUSY, text);
}

static unsigned write_host(const struct node_row *r, char text[CELL])
{
	return write_share(r, DEVICE_HOST, text);
}

static unsigned write_network(const struct node_row *r, char text[CELL])
{
	return write_share(r, DEVICE_NETWORK, text);
}

static unsigned write_others(const struct node_row *r, char text[CELL])
{
	return write_share(r, DEVICE_OTHERS, text);
}

static unsigned write_cost_of_loss(const struct node_row *r, char text[CELL])
{
	return cost_of_loss_text(r->s, r->m, text, CELL);
}

static unsigned write_place(const struct node_row *r, char text[CELL])
{
	snprintf(text, CELL, "%s", r->m->location);
	return STYLE_TEXT;
}

static unsigned write_forward(const struct node_row *r, char text[CELL])
{
	snprintf(text, CELL, "%.2f", (double)r->m->forward_s);
	return STYLE_TEXT;
}

static unsigned write_backward(const struct node_row *r, char text[CELL])
{
	snprintf(text, CELL, "%.2f", (double)r->m->backward_s);
	return STYLE_TEXT;
}

static unsigned write_own_times(const struct node_row *r, char text[CELL])
{
	snprintf(text, CELL, "%.1f/%.1f", (double)r->m->measured_forward_s * 1e3,
		 (double)r->m->measured_backward_s * 1e3);
	return STYLE_FAINT;
}

static unsigned write_sent(const struct node_row *r, char text[CELL])
{
	glyphs_count((double)r->m->sent_bytes, text);
	return STYLE_TEXT;
}

static unsigned write_resent(const struct node_row *r, char text[CELL])
{
	snprintf(text, CELL, "%llu", (unsigned long long)r->m->resent);
	return r->m->resent ? STYLE_WARNING : STYLE_FAINT;
}

static unsigned write_memory(const struct node_row *r, char text[CELL])
{
	if (r->m->rss_bytes == 0) { /* a replay does not know the size */
		snprintf(text, CELL, "-");
		return STYLE_FAINT;
	}
	glyphs_count((double)r->m->rss_bytes, text);
	return STYLE_TEXT;
}

static unsigned write_hash(const struct node_row *r, char text[CELL])
{
	bool agrees = r->m->hash_agrees || !r->m->hash;

	snprintf(text, CELL, "%08llx%s", (unsigned long long)(r->m->hash & 0xffffffff),
		 agrees ? "" : "!!");
	return agrees ? STYLE_FAINT : STYLE_ALERT;
}

static unsigned write_device(const struct node_row *r, char text[CELL])
{
	snprintf(text, CELL, "%.*s", (int)strcspn(r->m->device, " "), r->m->device);
	return STYLE_FAINT;
}

/* Returns the figures of the node's GPU; all are unknown if the node is not in the run. */
static struct gpu_figures gpu_of(const struct msg_see_node *m)
{
	return is_here(m) ? m->gpu : (struct gpu_figures){ 0 };
}

static unsigned write_gpu(const struct node_row *r, char text[CELL])
{
	struct gpu_figures g = gpu_of(r->m);

	if (!(g.known & GPU_UTILISATION))
		return write_absent(text);
	snprintf(text, CELL, "%u%%", g.utilisation);
	return STYLE_TEXT;
}

static unsigned write_temperature(const struct node_row *r, char text[CELL])
{
	struct gpu_figures g = gpu_of(r->m);

	if (!(g.known & GPU_TEMPERATURE))
		return write_absent(text);
	snprintf(text, CELL, "%u", g.temperature_c);
	return g.throttling & GPU_HEAT ? STYLE_WARNING : STYLE_TEXT;
}

static unsigned write_throttling(const struct node_row *r, char text[CELL])
{
	struct gpu_figures g = gpu_of(r->m);
	char why[GPU_THROTTLING_TEXT];

	if (!(g.known & GPU_THROTTLING))
		return write_absent(text);
	snprintf(text, CELL, "%s", g.throttling ? gpu_throttling_text(g.throttling, why) : "no");
	return g.throttling & GPU_THROTTLING_FAULTS ? STYLE_WARNING : STYLE_FAINT;
}

static unsigned write_gpu_memory(const struct node_row *r, char text[CELL])
{
	struct gpu_figures g = gpu_of(r->m);

	if (!(g.known & GPU_MEMORY))
		return write_absent(text);
	snprintf(text, CELL, "%.*f/%.0fG", g.memory_used_mib < 10 << 10 ? 1 : 0,
		 g.memory_used_mib / 1024.0, g.memory_mib / 1024.0);
	return STYLE_TEXT;
}

static unsigned write_power(const struct node_row *r, char text[CELL])
{
	struct gpu_figures g = gpu_of(r->m);

	if (!(g.known & GPU_POWER))
		return write_absent(text);
	if (g.known & GPU_POWER_LIMIT)
		snprintf(text, CELL, "%.0f/%.0f", g.power_mw / 1e3, g.power_limit_mw / 1e3);
	else
		snprintf(text, CELL, "%.0f", g.power_mw / 1e3);
	return STYLE_TEXT;
}

static unsigned write_why(const struct node_row *r, char text[CELL])
{
	snprintf(text, CELL, "%s", r->m->why);
	return STYLE_WARNING;
}

static const struct {
	struct table_column column; /* heading, width, rank, alignment */
	unsigned (*write)(const struct node_row *r, char text[CELL]);
	bool of_gpu; /* the column is hidden unless a node reports figures of a GPU */
} columns[] = {
	{ { "node", 5, 9, false }, write_number, false },
	{ { "S", 3, 9, false }, write_stage, false },
	{ { "layers", 6, 3, true }, write_layers, false },
	{ { "state", 8, 9, false }, write_state, false },
	{ { "task", 7, 8, false }, write_work, false },
	{ { "slots", 5, 7, true }, write_slots, false },
	{ { "wait", 4, 7, true }, write_queue, false },
	{ { "heard", 5, 7, true }, write_heard, false },
	{ { "busy", 4, 5, true }, write_busy, false },
	{ { "host", 4, 5, true }, write_host, false },
	{ { "net", 4, 5, true }, write_network, false },
	{ { "others", 6, 5, true }, write_others, false },
	{ { "if lost", 7, 6, true }, write_cost_of_loss, false },
	{ { "place", 10, 6, false }, write_place, false },
	{ { "F s", 5, 4, true }, write_forward, false },
	{ { "B s", 5, 4, true }, write_backward, false },
	{ { "F/B ms", 11, 2, true }, write_own_times, false },
	{ { "sent", 6, 3, true }, write_sent, false },
	{ { "resent", 6, 1, true }, write_resent, false },
	{ { "rss", 6, 2, true }, write_memory, false },
	{ { "weights", 10, 5, false }, write_hash, false },
	{ { "device", 8, 3, false }, write_device, false },
	{ { "gpu", 4, 7, true }, write_gpu, true },
	{ { "C", 3, 7, true }, write_temperature, true },
	{ { "gpu mem", 8, 5, true }, write_gpu_memory, true },
	{ { "gpu W", 7, 4, true }, write_power, true },
	{ { "throttled", 11, 7, false }, write_throttling, true },
	{ { "why", 12, 8, false }, write_why, false },
};

enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };
_Static_assert((int)COLUMNS <= (int)TABLE_COLUMNS, "table.h has room for every column");

static void draw_node(const struct table *t, struct screen *out, int row, const struct state *s,
		      const struct ui *u, const struct state_node *n, int digits)
{
	struct node_row r = { .s = s, .u = u, .n = n, .m = &n->see, .digits = digits };
	unsigned mark = n->see.node == u->selection.node ? STYLE_REVERSE : 0;

	glyphs_node(&r.glyph, s, n);
	table_row(t, out, row, STYLE_TEXT | mark);
	for (int i = 0; i < COLUMNS; i++) {
		char text[CELL] = "";
		unsigned style = columns[i].write(&r, text);

		table_cell(t, out, row, i, style | mark, "%s", text);
	}
}

/* Draws what the run would cost without the node's machine, under the plan that was made for this
 * case. */
static void draw_savings(struct screen *out, struct rect at, const struct state *s,
			 const struct ui *u, const struct msg_see_node *m)
{
	double now_s = (double)s->plan.see.iteration_s;
	struct cost now = costs_of(&u->prices, s, -1, 1);
	struct cost then =
		costs_of(&u->prices, s, m->node, now_s > 0 ? (double)m->lost_s / now_s : 1);

	int x = screen_print(out, at.x, at.y, at.w, STYLE_TEXT,
			     "without its machine: $%.2f -> $%.2f an hour", now.per_hour,
			     then.per_hour);

	if (now.per_mtoken > 0)
		screen_print(out, at.x + x, at.y, at.w - x, STYLE_TEXT,
			     ", $%.2f -> $%.2f a million tokens", now.per_mtoken, then.per_mtoken);
}

/* Returns true if a node reports figures of a GPU. */
static bool has_gpus(const struct state *s)
{
	for (uint32_t i = 0; i < s->n_nodes; i++)
		if (s->nodes[i].known && s->nodes[i].see.gpu.known)
			return true;
	return false;
}

/* Draws the figures of the node's GPU; "-" stands for a missing one. */
static void draw_gpu(struct screen *out, struct rect at, const struct msg_see_node *m)
{
	struct node_row r = { .m = m };
	char used[CELL], memory[CELL], power[CELL], heat[CELL], why[CELL];
	bool is_faulty = write_throttling(&r, why) == STYLE_WARNING;

	write_gpu(&r, used);
	write_gpu_memory(&r, memory);
	write_power(&r, power);
	write_temperature(&r, heat);
	screen_print(out, at.x, at.y, at.w, is_faulty ? STYLE_WARNING : STYLE_TEXT,
		     "GPU %s busy, memory %s, %s W, %s C, throttled: %s", used, memory, power, heat,
		     why);
}

/* Writes a device's times as shares: "busy 26%, host 4%, net 30%, others 40%". Returns false if
 * nothing was measured. */
static bool shares_text(const struct device_time *t, char text[CELL])
{
	unsigned p[DEVICE_STATES];

	if (!device_time_percent(t, p))
		return false;
	snprintf(text, CELL, "busy %u%%, host %u%%, net %u%%, others %u%%", p[DEVICE_BUSY],
		 p[DEVICE_HOST], p[DEVICE_NETWORK], p[DEVICE_OTHERS]);
	return true;
}

/* Returns the sum of the times of all devices. */
static struct device_time time_of_all(const struct state *s)
{
	struct device_time sum = { { 0 } };

	for (uint32_t i = 0; i < s->n_nodes; i++)
		for (int k = 0; s->nodes[i].known && is_here(&s->nodes[i].see) && k < DEVICE_STATES;
		     k++)
			sum.us[k] += s->nodes[i].see.spent.us[k];
	return sum;
}

/* Draws the share of the newest iteration in which the node's device was busy, and what the
 * device waited for in the rest of the time. Returns false if nothing was measured. */
static bool draw_device_time(struct screen *out, struct rect at, const struct state *s,
			     const struct msg_see_node *m)
{
	double real_s = (double)device_time_total_us(&m->spent) * 1e-6;
	double plan_s = s->run.time_scale > 0 ? real_s / s->run.time_scale : real_s;
	char shares[CELL];

	if (!is_here(m) || !shares_text(&m->spent, shares))
		return false;
	screen_print(out, at.x, at.y, at.w, STYLE_TEXT, "newest iteration %.*f s: device %s",
		     plan_s < 10 ? 2 : 1, plan_s, shares);
	return true;
}

/* Draws details of the selected node that have no room in its row. */
static void draw_detail(struct screen *out, struct rect at, const struct state *s,
			const struct ui *u)
{
	const struct state_node *n = &s->nodes[u->selection.node];
	const struct msg_see_node *m = &n->see;
	char title[64], since[16], sent[16], received[16], costs[16], waits[40] = "";
	int x, y = at.y + 1;

	if (at.h < 3 || !n->known)
		return;
	glyphs_age((double)(u->clock.now_us - m->since_us) / 1e6, since);
	glyphs_count((double)m->sent_bytes, sent);
	glyphs_count((double)m->received_bytes, received);
	screen_print(out, at.x, y++, at.w, STYLE_TEXT, "%s%s%s for %s  %s  %s pid %lld on %s  %s",
		     m->name, m->name[0] ? " " : "", node_state_shown(m->state), since, m->location,
		     m->device, (long long)m->pid, m->host, m->why);
	if (m->waits_percent > 0)
		snprintf(waits, sizeof(waits), "waits %u%% for a processor; ",
			 (unsigned)m->waits_percent);
	if (draw_device_time(out, (struct rect){ at.x, y, at.w, 1 }, s, m))
		y++;
	screen_print(out, at.x, y++, at.w, m->waits_percent > 0 ? STYLE_WARNING : STYLE_TEXT,
		     "planned F %.3f B %.3f L %.3f s; measured F %.1f B %.1f ms; %s"
		     "sent %sB received %sB resent %llu; weights of iteration %llu",
		     (double)m->forward_s, (double)m->backward_s, (double)m->loss_s,
		     (double)m->measured_forward_s * 1e3, (double)m->measured_backward_s * 1e3,
		     waits, sent, received, (unsigned long long)m->resent,
		     (unsigned long long)m->committed);
	if (has_gpus(s))
		draw_gpu(out, (struct rect){ at.x, y++, at.w, 1 }, m);
	if (y < at.y + at.h) {
		x = screen_text(out, at.x, y, at.w, STYLE_FAINT,
				n->n_queue ? "waiting:" : "no task waits here");
		for (uint32_t i = 0; i < n->n_queue; i++)
			x += screen_print(out, at.x + x, y, at.w - x, STYLE_BLOCKED,
					  " %c m%02u", glyphs_task_letter(n->queue[i].kind),
					  n->queue[i].microbatch);
		if (m->lost_s > 0 &&
		    cost_of_loss_text(s, m, costs, sizeof(costs)) != STYLE_FAINT)
			screen_print(out, at.x + x, y, at.w - x, STYLE_TEXT,
				     "; if it is lost: %.1f s an iteration (%s), plan is ready",
				     (double)m->lost_s, costs);
		if (m->lost_s > 0 && u->prices.are_known)
			draw_savings(out, (struct rect){ at.x, y + 1, at.w, 1 }, s, u, m);
	}
	snprintf(title, sizeof(title), state_has_no_stages(s) ? "n%02u" : "n%02u of S%u",
		 (unsigned)m->node, (unsigned)m->stage);
	screen_rule(out, at, title, NULL);
}

void view_nodes(struct screen *out, struct rect at, const struct state *s, const struct ui *u,
		const struct roster *r)
{
	struct rect list = at, detail = at;
	int first, rows;
	struct table_column shown[COLUMNS];
	struct table t;
	char title[128 + CELL], shares[CELL];
	struct device_time all = time_of_all(s);

	for (int i = 0; i < COLUMNS; i++) {
		shown[i] = columns[i].column;
		if (columns[i].of_gpu && !has_gpus(s))
			shown[i].width = 0;
	}
	detail.h = at.h >= 12 ? 4 + u->prices.are_known + has_gpus(s) +
					(device_time_total_us(&all) > 0)
			      : 0;
	detail.y = at.y + at.h - detail.h;
	list.h -= detail.h;
	snprintf(title, sizeof(title), "Nodes: %u of %u%s%s", r->n, s->run.n_nodes,
		 *u->selection.filter ? " match " : "", u->selection.filter);
	if (s->history.n_iterations)
		snprintf(title + strlen(title), sizeof(title) - strlen(title), ", goodput %.0f%%",
			 costs_goodput(s) * 100);
	if (shares_text(&all, shares))
		snprintf(title + strlen(title), sizeof(title) - strlen(title), ", %s", shares);
	screen_rule(out, at, title,
		    at.w >= (int)strlen(title) + HINT && panel_offers(s, u, ACTION_FAIL)
			    ? "F R I act on the selected node"
			    : NULL);
	list.y++;
	list.h--;
	table_open(&t, out, list, shown, COLUMNS);
	rows = list.h - 1;
	first = table_first((int)r->n, rows, roster_find(r, u->selection.node));
	for (int i = 0; i < rows && first + i < (int)r->n; i++)
		draw_node(&t, out, i, s, u, &s->nodes[r->nodes[first + i]], r->digits);
	draw_detail(out, detail, s, u);
}
