/* finding.c - keeps the list of findings and prints it, for people as a table and for scripts as
 * JSON. */
#include "doctor/finding.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

enum { NAME_WIDTH = 12, LINE_WIDTH = 100, INDENT = 22 };

static const char *const levels[] = { "ok", "warning", "error" };

/* Replaces control characters by '?'. A text may quote a file, an agent or a driver, and a control
 * character could change the terminal. */
static void make_plain(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

void finding_add(struct findings *f, const char *check, enum finding_level level,
		 const char *format, ...)
{
	struct finding *new = LIST_ADD(&f->all);
	va_list ap;

	*new = (struct finding){ .check = check, .level = level };
	va_start(ap, format);
	vsnprintf(new->found, sizeof(new->found), format, ap);
	va_end(ap);
	make_plain(new->found);
}

void finding_remedy(struct findings *f, const char *format, ...)
{
	struct finding *newest = &f->all.list[f->all.n - 1];
	va_list ap;

	va_start(ap, format);
	vsnprintf(newest->remedy, sizeof(newest->remedy), format, ap);
	va_end(ap);
	make_plain(newest->remedy);
}

void findings_free(struct findings *f)
{
	free(f->all.list);
	*f = (struct findings){ .all.n = 0 };
}

unsigned findings_count(const struct findings *f, enum finding_level level)
{
	unsigned n = 0;

	for (size_t i = 0; i < f->all.n; i++)
		n += f->all.list[i].level == level;
	return n;
}

enum finding_level findings_worst(const struct findings *f)
{
	enum finding_level worst = FINDING_OK;

	for (size_t i = 0; i < f->all.n; i++)
		if (f->all.list[i].level > worst)
			worst = f->all.list[i].level;
	return worst;
}

/* Prints the words of a text, in lines of at most LINE_WIDTH columns. The caller has printed the
 * first line up to column `at`; the other lines begin with INDENT blanks. */
static void print_words(const char *text, size_t at, FILE *to)
{
	bool first = true;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (!first && at + 1 + n > LINE_WIDTH) {
			fprintf(to, "\n%*s", INDENT, "");
			at = INDENT;
			first = true;
		}
		fprintf(to, "%s%.*s", first ? "" : " ", (int)n, text);
		at += n + !first;
		first = false;
		text += n + (text[n] == ' ');
	}
	putc('\n', to);
}

static void print_finding(const struct finding *g, FILE *to)
{
	fprintf(to, "%-8s %-*s ", levels[g->level], NAME_WIDTH, g->check);
	print_words(g->found, INDENT, to);
	if (!g->remedy[0])
		return;
	fprintf(to, "%*sremedy: ", INDENT, "");
	print_words(g->remedy, INDENT + 8, to);
}

static void print_names_of_ok(const struct findings *f, FILE *to)
{
	const char *last = "";
	bool any = false;

	for (size_t i = 0; i < f->all.n; i++) {
		const struct finding *g = &f->all.list[i];

		if (g->level != FINDING_OK || strcmp(g->check, last) == 0)
			continue;
		fprintf(to, "%s%s", any ? ", " : "ok       ", g->check);
		any = true;
		last = g->check;
	}
	if (any)
		putc('\n', to);
}

void findings_print(const struct findings *f, bool all, FILE *to)
{
	unsigned errors = findings_count(f, FINDING_ERROR),
		 warnings = findings_count(f, FINDING_WARNING);

	for (int level = FINDING_ERROR; level >= (all ? FINDING_OK : FINDING_WARNING); level--)
		for (size_t i = 0; i < f->all.n; i++)
			if ((int)f->all.list[i].level == level)
				print_finding(&f->all.list[i], to);
	if (!all)
		print_names_of_ok(f, to);
	fprintf(to, "%u error%s, %u warning%s\n", errors, errors == 1 ? "" : "s", warnings,
		warnings == 1 ? "" : "s");
}

int findings_print_json(const struct findings *f, FILE *to)
{
	json_t *list = json_array(), *root;
	int rc;

	for (size_t i = 0; i < f->all.n; i++) {
		const struct finding *g = &f->all.list[i];
		json_t *one = json_pack("{ss ss ss% ss%}", "check", g->check, "level",
					levels[g->level], "found", g->found, strlen(g->found),
					"remedy", g->remedy, strlen(g->remedy));

		if (!one) /* json_pack returns NULL if a text is not valid UTF-8 */
			one = json_pack("{ss ss ss ss}", "check", g->check, "level",
					levels[g->level], "found", "the text is not UTF-8",
					"remedy", "");
		json_array_append_new(list, one);
	}
	root = json_pack("{ss ss si si so}", "format", "skippipe.doctor/1", "version",
			 SKIPPIPE_VERSION, "errors", (int)findings_count(f, FINDING_ERROR),
			 "warnings", (int)findings_count(f, FINDING_WARNING), "findings", list);
	rc = json_dumpf(root, to, JSON_INDENT(1));
	putc('\n', to);
	json_decref(root);
	return rc;
}
