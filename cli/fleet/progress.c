/* Shows what each host is doing. Hosts answer in any order. Therefore, on a terminal, each host has
 * a line that the program rewrites in place. */
#include "cli/fleet/progress.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"

enum { TEXT = 400, NAME_MOST = 24 };

struct progress {
	FILE *to;
	const struct host *hosts; /* array of n, borrowed */
	size_t n;
	char (*texts)[TEXT]; /* array of n: text of each host's line */
	/* The output is a terminal with room for all lines; each line is rewritten in place. */
	bool in_place;
	bool is_drawn; /* the lines are on the screen, and the cursor is below the last one */
	int columns, name_width;
};

struct progress *progress_new(FILE *to, const struct host *hosts, size_t n)
{
	struct progress *p = alloc_new(sizeof(*p));
	const char *term = getenv("TERM");
	struct winsize size = { 0 };

	*p = (struct progress){ .to = to, .hosts = hosts, .n = n };
	p->texts = alloc_array(n + 1, sizeof(*p->texts));
	for (size_t i = 0; i < n; i++) {
		int width = (int)strlen(hosts[i].name);

		if (width > p->name_width)
			p->name_width = width < NAME_MOST ? width : NAME_MOST;
	}
	if (isatty(fileno(to)) && term && strcmp(term, "dumb") != 0 &&
	    ioctl(fileno(to), TIOCGWINSZ, &size) == 0)
		p->in_place = size.ws_row > n + 1 && size.ws_col > 40;
	p->columns = size.ws_col;
	return p;
}

static void write_line(const struct progress *p, size_t i)
{
	int room = p->columns - p->name_width - 3;

	fprintf(p->to, "%-*s  ", p->name_width, p->hosts[i].name);
	if (p->in_place)
		fprintf(p->to, "%.*s\033[K\n", room, p->texts[i]);
	else
		fprintf(p->to, "%s\n", p->texts[i]);
}

/* Draws the lines of all hosts over the previous ones. */
static void draw_all(struct progress *p)
{
	if (p->is_drawn && p->n > 0)
		fprintf(p->to, "\033[%zuA\r", p->n);
	for (size_t i = 0; i < p->n; i++)
		write_line(p, i);
	p->is_drawn = true;
	fflush(p->to);
}

void progress_set(struct progress *p, size_t host, const char *format, ...)
{
	char text[TEXT];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (strcmp(text, p->texts[host]) == 0)
		return;
	memcpy(p->texts[host], text, sizeof(text));
	if (p->in_place) {
		draw_all(p);
		return;
	}
	write_line(p, host);
	fflush(p->to);
}

void progress_print(struct progress *p, const char *format, ...)
{
	va_list ap;

	if (p->is_drawn)
		fprintf(p->to, "\033[%zuA\r\033[J", p->n);
	p->is_drawn = false;
	va_start(ap, format);
	vfprintf(p->to, format, ap);
	va_end(ap);
	fputc('\n', p->to);
	if (p->in_place)
		draw_all(p);
	fflush(p->to);
}

void progress_free(struct progress *p)
{
	if (!p)
		return;
	free(p->texts);
	free(p);
}
