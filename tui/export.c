/* Exports the run in formats that other programs read: the screen as SVG, the figures as JSON lines
 * or CSV, and the tasks as a trace for Perfetto. All exports are made from the console's state;
 * nothing is requested from the controller. */
#include "base/tensor_format.h"
#include "tui/export.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/timestamp.h"
#include "tui/screen/glyphs.h"

/* Opens a text that grows as it is written. Ends the program if memory runs out. */
static FILE *open_text(char **text, size_t *size)
{
	FILE *f;

	*text = NULL;
	f = open_memstream(text, size);
	if (!f)
		alloc_failed(1, BUFSIZ);
	return f;
}

static char *close_text(FILE *f, char **text, const size_t *size)
{
	bool bad = ferror(f) != 0;

	if (fclose(f) != 0 || bad)
		alloc_failed(1, *size);
	return *text;
}

/* ---- SVG ---- */

enum { CELL_W = 9, CELL_H = 18 };

/* Writes an SVG colour. The first sixteen colours are chosen so that they can be read on a dark and
 * on a light background. A negative `colour` gives the colour `otherwise`. */
static void colour_text(int colour, const char *otherwise, char out[8])
{
	static const char *const first[16] = { "#000000", "#cc3333", "#33aa33", "#aa8800",
					       "#3366cc", "#aa33aa", "#22aaaa", "#cccccc",
					       "#777777", "#ff5555", "#55ff55", "#ffff55",
					       "#6699ff", "#ff55ff", "#55ffff", "#ffffff" };

	if (colour >= 16)
		snprintf(out, 8, "#%06x", theme_rgb(colour) & 0xffffff);
	else
		snprintf(out, 8, "%s", colour < 0 ? otherwise : first[colour]);
}

static void write_glyph(FILE *f, uint32_t g)
{
	char utf8[5] = "";

	if (g == '<')
		fputs("&lt;", f);
	else if (g == '&')
		fputs("&amp;", f);
	else {
		utf8[utf8_put(utf8, g)] = '\0';
		fputs(utf8, f);
	}
}

/* Writes n neighbouring cells of one style: a rectangle in the background's colour, then the text,
 * stretched to the width of the cells. */
static void write_run(FILE *f, const struct cell *c, int x, int y, int n, const struct theme *t,
		      bool dark)
{
	const struct theme_style *s = &t->styles[(c->style & STYLE_MEANING) % STYLES];
	bool reverse = !!(s->attributes & THEME_REVERSE) != !!(c->style & STYLE_REVERSE);
	char fg[8], bg[8];
	int blanks = 0;

	colour_text(s->fg, dark ? "#dddddd" : "#222222", fg);
	colour_text(s->bg, dark ? "#101418" : "#ffffff", bg);
	if (s->bg >= 0 || reverse)
		fprintf(f, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n",
			x * CELL_W, y * CELL_H, n * CELL_W, CELL_H, reverse ? fg : bg);
	while (blanks < n && c[blanks].glyph == ' ')
		blanks++;
	if (blanks == n)
		return;
	fprintf(f,
		"<text x=\"%d\" y=\"%d\" textLength=\"%d\" fill=\"%s\"%s%s "
		"xml:space=\"preserve\">",
		x * CELL_W, y * CELL_H + 13, n * CELL_W, reverse ? bg : fg,
		(s->attributes & THEME_BOLD) || (c->style & STYLE_BOLD)
			? " font-weight=\"bold\""
			: "",
		s->attributes & THEME_DIM ? " opacity=\"0.6\"" : "");
	for (int i = 0; i < n; i++)
		write_glyph(f, c[i].glyph);
	fputs("</text>\n", f);
}

char *export_svg(const struct screen *s, const struct theme *t, bool dark)
{
	int w = screen_width(s), h = screen_height(s);
	char *text;
	size_t size;
	FILE *f = open_text(&text, &size);

	fprintf(f,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"font-family=\"monospace\" "
		"font-size=\"15\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"%s\"/>\n",
		w * CELL_W, h * CELL_H, dark ? "#101418" : "#ffffff");
	for (int y = 0; y < h; y++) {
		const struct cell *row = screen_cells(s) + y * w;

		for (int x = 0, n; x < w; x += n) {
			for (n = 1; x + n < w && row[x + n].style == row[x].style; n++)
				;
			write_run(f, row + x, x, y, n, t, dark);
		}
	}
	fputs("</svg>\n", f);
	return close_text(f, &text, &size);
}

/* ---- tables ---- */

static double plain_number(float v)
{
	return isfinite(v) ? (double)v : 0;
}

static void write_object(FILE *f, json_t *o)
{
	if (o && json_dumpf(o, f, JSON_COMPACT | JSON_REAL_PRECISION(7)) == 0)
		fputc('\n', f);
	json_decref(o);
}

/* Returns the time as a JSON string. */
static json_t *time_value(int64_t wall_us)
{
	char text[TIMESTAMP_SIZE];

	timestamp_text(wall_us, text);
	return json_string(text);
}

static json_t *iteration_object(const struct msg_see_iteration *it)
{
	return json_pack(
		"{s:s,s:o,s:I,s:o,s:f,s:f,s:i,s:f,s:f,s:i,s:i,s:i,s:f,s:f,s:f,s:s,s:s}", "event",
		"iteration", "time", time_value(it->wall_us), "n", (json_int_t)it->iteration,
		"loss", isfinite(it->loss) ? json_real((double)it->loss) : json_null(),
		"iteration_s", plain_number(it->iteration_s), "predicted_s",
		plain_number(it->predicted_s), "collisions", (int)it->collisions, "wait_s",
		plain_number(it->wait_s), "tokens_per_s", plain_number(it->tokens_per_s),
		"nodes_alive", (int)it->alive, "path_length", (int)it->path_length, "rerun",
		(int)it->rerun, "sync_s", plain_number(it->sync_s), "predicted_sync_s",
		plain_number(it->predicted_sync_s), "real_s", plain_number(it->real_s), "wire",
		tensor_format_name((enum tensor_format)it->wire), "sum_wire",
		tensor_format_name((enum tensor_format)it->sum_wire));
}

char *export_jsonl(const struct state *s)
{
	char *text;
	size_t size;
	FILE *f = open_text(&text, &size);

	write_object(f,
		     json_pack("{s:s,s:s%,s:s%,s:i,s:i,s:i,s:b,s:b}", "event", "run", "name",
			       s->run.name, strnlen(s->run.name, sizeof(s->run.name)), "model",
			       s->run.model, strnlen(s->run.model, sizeof(s->run.model)),
			       "nodes", (int)s->run.n_nodes, "stages", (int)s->run.n_stages,
			       "microbatches", (int)s->run.microbatches, "emulated",
			       (int)s->run.emulated, "rehearsal", s->run.rehearsal > 0));
	for (size_t i = 0; i < s->history.n_iterations; i++)
		write_object(f, iteration_object(&s->history.iterations[i]));
	for (size_t i = 0; i < s->history.n_validations; i++)
		write_object(f, json_pack("{s:s,s:I,s:f}", "event", "validation", "n",
					  (json_int_t)s->history.validations[i].iteration, "loss",
					  plain_number(s->history.validations[i].loss)));
	for (size_t i = 0; i < s->history.n_notes; i++) {
		const struct msg_see_note *n = &s->history.notes[i];

		/* json_pack returns NULL for a text that is not UTF-8; write_object then writes no
		 * line. */
		write_object(f, json_pack("{s:s,s:o,s:I,s:s,s:I,s:I,s:i,s:s}", "event", "note",
					  "time", time_value(n->wall_us), "id", (json_int_t)n->id,
					  "kind", note_name(n->kind), "n", (json_int_t)n->iteration,
					  "wall_us", (json_int_t)n->wall_us, "node", (int)n->node,
					  "text", n->text));
	}
	return close_text(f, &text, &size);
}

char *export_csv(const struct state *s)
{
	char *text;
	size_t size;
	FILE *f = open_text(&text, &size);

	fputs("iteration,epoch,loss,iteration_s,predicted_s,collisions,wait_s,idle_fraction,"
	      "tokens_per_s,"
	      "nodes_alive,path_length,rerun,sync_s,predicted_sync_s,real_s,wire,sum_wire\n",
	      f);
	for (size_t i = 0; i < s->history.n_iterations; i++) {
		const struct msg_see_iteration *it = &s->history.iterations[i];
		char loss[24] = "";

		if (isfinite(it->loss))
			snprintf(loss, sizeof(loss), "%.6g", (double)it->loss);
		fprintf(f,
			"%llu,%llu,%s,%.6g,%.6g,%u,%.6g,%.6g,%.6g,%u,%u,%u,%.6g,%.6g,%.6g,%s,%s\n",
			(unsigned long long)it->iteration, (unsigned long long)it->epoch,
			loss, plain_number(it->iteration_s), plain_number(it->predicted_s),
			it->collisions, plain_number(it->wait_s),
			plain_number(it->idle_fraction), plain_number(it->tokens_per_s),
			it->alive, it->path_length, it->rerun, plain_number(it->sync_s),
			plain_number(it->predicted_sync_s), plain_number(it->real_s),
			tensor_format_name((enum tensor_format)it->wire),
			tensor_format_name((enum tensor_format)it->sum_wire));
	}
	return close_text(f, &text, &size);
}

/* ---- trace ---- */

enum { TRACK_ACTUAL = 1, TRACK_PLANNED = 2 };

struct trace {
	FILE *f;
	bool first;
};

static void write_comma(struct trace *t)
{
	fputs(t->first ? "\n" : ",\n", t->f);
	t->first = false;
}

static void write_task(struct trace *t, int process, unsigned node,
		       const struct state_segment *g, int64_t offset_us)
{
	write_comma(t);
	fprintf(t->f,
		"{\"ph\":\"X\",\"pid\":%d,\"tid\":%u,\"ts\":%lld,\"dur\":%lld,\"name\":\"%c "
		"m%02u\",\"cat\":\"%c\","
		"\"args\":{\"microbatch\":%u,\"iteration\":%llu}}",
		process, node, (long long)(g->start_us + offset_us),
		(long long)(g->end_us - g->start_us), glyphs_task_letter(g->kind),
		g->microbatch, glyphs_task_letter(g->kind), g->microbatch,
		(unsigned long long)g->iteration);
}

static void write_name(struct trace *t, int process, unsigned node, const char *kind,
		       const char *name)
{
	write_comma(t);
	fprintf(t->f,
		"{\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"name\":\"%s\",\"args\":{\"name\":\"%s\"}"
		"}",
		process, node, kind, name);
}

/* Writes an arrow through all tasks of a microbatch, in their order. */
static void write_flow(struct trace *t, const struct state_flight *f)
{
	uint32_t last = 2 * f->route.n_hops;
	bool begun = false;

	for (uint32_t p = 0; f->route.n_hops > 0 && p <= last; p++) {
		if (!f->chain[p].started_us)
			continue;
		write_comma(t);
		fprintf(t->f,
			"{\"ph\":\"%s\",\"pid\":%d,\"tid\":%u,\"ts\":%lld,\"id\":%u,\"name\":"
			"\"m%02u\","
			"\"cat\":\"flow\",\"bp\":\"e\"}",
			!begun      ? "s"
			: p == last ? "f"
				    : "t",
			TRACK_ACTUAL, (unsigned)state_chain_node(f, p),
			(long long)f->chain[p].started_us, f->route.microbatch,
			f->route.microbatch);
		begun = true;
	}
}

static void write_node(struct trace *t, const struct state *s, uint32_t i)
{
	const struct state_node *n = &s->nodes[i];
	const struct state_segment *g;
	int64_t origin = s->current.start_us ? s->current.start_us : s->current.previous_start_us;
	char name[64];

	snprintf(name, sizeof(name), "n%02u S%u", (unsigned)i, (unsigned)n->see.stage);
	write_name(t, TRACK_ACTUAL, i, "thread_name", name);
	write_name(t, TRACK_PLANNED, i, "thread_name", name);
	for (uint64_t k = 0; (g = state_segment_back(n, k)) != NULL; k++)
		if (g->end_us != INT64_MAX)
			write_task(t, TRACK_ACTUAL, i, g, 0);
	for (uint32_t k = s->plan.first[i]; k < s->plan.first[i + 1]; k++)
		write_task(t, TRACK_PLANNED, i, &s->plan.tasks[k], origin);
}

char *export_trace(const struct state *s)
{
	struct trace t = { .first = true };
	char *text;
	size_t size;

	t.f = open_text(&text, &size);
	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", t.f);
	write_name(&t, TRACK_ACTUAL, 0, "process_name", "actual");
	write_name(&t, TRACK_PLANNED, 0, "process_name", "planned");
	for (uint32_t i = 0; i < s->n_nodes; i++)
		if (s->nodes[i].known)
			write_node(&t, s, i);
	for (uint32_t i = 0; i < s->n_flights; i++)
		write_flow(&t, &s->flights[i]);
	fputs("\n]}\n", t.f);
	return close_text(t.f, &text, &size);
}
