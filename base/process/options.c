/* Reads command lines and writes helps from a table of options, so that names, limits, defaults and
 * texts of an option are in one place and cannot differ. */
#include "base/process/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { FIRST = 256, TEXT_COLUMN = 24, COLUMNS = 88, LETTERS = 32 };

static bool has_value(const struct options_row *r)
{
	return r->kind > OPTIONS_HELP;
}

/* ---- reading ---- */

static int parse_number(const struct options_row *r, const char *text, double *out,
			struct error *err)
{
	bool is_whole = r->kind <= OPTIONS_U64;
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !isfinite(v) || v < r->least || v > r->most ||
	    (is_whole && v != floor(v)))
		return error_set(err, -EINVAL,
				 "--%s: expected a %snumber from %g to %g, got \"%s\"", r->name,
				 is_whole ? "whole " : "", r->least, r->most, text);
	*out = v;
	return 0;
}

/* Lists the words as "a, b or c". */
static int parse_word(const struct options_row *r, const char *text, int *out, struct error *err)
{
	char list[160] = "";
	size_t n = 0;

	for (int i = 0; r->words[i]; i++) {
		if (strcmp(text, r->words[i]) == 0) {
			*out = i;
			return 0;
		}
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s",
				      i == 0            ? ""
				      : r->words[i + 1] ? ", "
							: " or ",
				      r->words[i]);
		if (n >= sizeof(list))
			break;
	}
	return error_set(err, -EINVAL, "--%s: expected %s, got \"%s\"", r->name, list, text);
}

/* text: the number as it was given, because a double cannot hold all digits of a U64. */
static void store_number(const struct options_row *r, void *to, const char *text, double v)
{
	switch (r->kind) {
	case OPTIONS_INT:
		*(int *)to = (int)v;
		break;
	case OPTIONS_U32:
		*(uint32_t *)to = (uint32_t)v;
		break;
	case OPTIONS_U64:
		*(uint64_t *)to =
			text[strspn(text, "0123456789")] ? (uint64_t)v : strtoull(text, NULL, 10);
		break;
	case OPTIONS_REAL:
		*(double *)to = v;
		break;
	case OPTIONS_SECONDS:
		*(int64_t *)to = (int64_t)(v * 1e6);
		break;
	default: /* OPTIONS_MILLISECONDS */
		*(int64_t *)to = (int64_t)(v * 1000);
	}
}

int options_take(const struct options_row *r, void *options, const char *text, struct error *err)
{
	void *to = (char *)options + r->at;
	double v = 0;
	int word = 0, rc = 0;

	switch (r->kind) {
	case OPTIONS_FLAG:
		*(bool *)to = true;
		break;
	case OPTIONS_NUMBER:
		memcpy(to, &r->number, sizeof(r->number));
		break;
	case OPTIONS_HELP:
		break;
	case OPTIONS_TEXT:
		*(const char **)to = text;
		break;
	case OPTIONS_CHOICE:
		rc = parse_word(r, text, &word, err);
		if (rc == 0)
			memcpy(to, &word, sizeof(word));
		break;
	case OPTIONS_SECOND:
		rc = parse_word(r, text, &word, err);
		if (rc == 0)
			*(bool *)to = word == 1;
		break;
	case OPTIONS_PARSED:
		rc = r->parse(options, text, err);
		break;
	default:
		rc = parse_number(r, text, &v, err);
		if (rc == 0)
			store_number(r, to, text, v);
	}
	return rc;
}

static int take_given(const struct options_row *r, void *options, int argc, char **argv,
		      struct error *err)
{
	int rc = options_take(r, options, optarg, err);

	while (rc == 0 && r->many && optind < argc && argv[optind][0] != '-')
		rc = options_take(r, options, argv[optind++], err);
	if (rc == 0 && r->given)
		*(bool *)((char *)options + r->given) = true;
	return rc;
}

static int take_defaults(const struct options_table *t, void *options, struct error *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < t->n; i++)
		if (t->rows[i].fallback)
			rc = options_take(&t->rows[i], options, t->rows[i].fallback, err);
	return rc;
}

/* Fills the table of getopt_long, which ends with zeros, and its list of letters. -h is --help. */
static struct option *list_options(const struct options_table *t, char letters[LETTERS])
{
	struct option *list = alloc_array(t->n + 1, sizeof(*list));
	int n = 0, n_letters = snprintf(letters, LETTERS, ":h");

	for (size_t i = 0; i < t->n; i++) {
		const struct options_row *r = &t->rows[i];

		if (r->letter)
			n_letters += snprintf(letters + n_letters, (size_t)(LETTERS - n_letters),
					      "%c%s", r->letter, has_value(r) ? ":" : "");
		if (r->name)
			list[n++] = (struct option){ r->name, has_value(r), NULL, FIRST + (int)i };
	}
	return list;
}

/* Returns the index of the row that getopt_long has found by its name or by its letter. */
static int find_row(const struct options_table *t, int option)
{
	int i = 0;

	if (option >= FIRST)
		return option - FIRST;
	while (t->rows[i].letter != option)
		i++;
	return i;
}

static int take_arguments(const struct options_table *t, void *options, int argc, char **argv,
			  bool *given, struct error *err)
{
	char letters[LETTERS];
	struct option *list = list_options(t, letters);
	int option, row, rc = 0;

	optind = 0; /* resets getopt */
	opterr = 0;
	while (rc == 0 && (option = getopt_long(argc, argv, letters, list, NULL)) != -1) {
		if (option == ':' || option == '?') {
			/* The value is not shown, because it may be a secret. */
			rc = error_set(err, -EINVAL, "%.*s: %s (see --help)",
				       (int)strcspn(argv[optind - 1], "="), argv[optind - 1],
				       option == '?' ? "unknown option" : "needs a value");
			break;
		}
		row = option == 'h' ? -1 : find_row(t, option);
		if (row < 0 || t->rows[row].kind == OPTIONS_HELP) {
			rc = 1;
			break;
		}
		rc = take_given(&t->rows[row], options, argc, argv, err);
		if (given)
			given[row] = true;
	}
	free(list);
	for (; rc == 0 && optind < argc; optind++)
		rc = t->word ? t->word(options, argv[optind], err)
			     : error_set(err, -EINVAL, "%s: unexpected (see --help)", argv[optind]);
	return rc;
}

void options_variable(const char *prefix, const char *option, char out[OPTIONS_VARIABLE_SIZE])
{
	snprintf(out, OPTIONS_VARIABLE_SIZE, "%s%s", prefix, option);
	for (char *c = out; *c; c++)
		*c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
}

/* Takes the values of a variable. */
static int take_variable(const struct options_row *r, void *options, char *value, struct error *err)
{
	char *copy, *rest = NULL;
	int rc = 0;

	if (!r->many)
		return options_take(r, options, value, err);
	copy = alloc_string(value);
	for (char *one = strtok_r(copy, ":", &rest); one && rc == 0;
	     one = strtok_r(NULL, ":", &rest))
		rc = options_take(r, options, one, err);
	free(copy);
	return rc;
}

/* Takes the variables of the options that the command line does not give. */
static int take_environment(const struct options_table *t, void *options, const bool *given,
			    struct error *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && t->environment && i < t->n; i++) {
		const struct options_row *r = &t->rows[i];
		char name[OPTIONS_VARIABLE_SIZE], *value;

		if (!r->name || !has_value(r) || given[i])
			continue;
		options_variable(t->environment, r->name, name);
		value = getenv(name);
		if (!value || !*value)
			continue;
		rc = take_variable(r, options, value, err);
		if (rc < 0)
			rc = error_prefix(err, rc, "%s", name);
		else if (r->given)
			*(bool *)((char *)options + r->given) = true;
	}
	return rc;
}

int options_read(const struct options_table *t, void *options, int argc, char **argv, bool *given,
		 struct error *err)
{
	bool *own = given ? NULL : alloc_array(t->n, sizeof(*own));
	int rc = take_defaults(t, options, err);

	if (rc == 0)
		rc = take_arguments(t, options, argc, argv, given ? given : own, err);
	if (rc == 0)
		rc = take_environment(t, options, given ? given : own, err);
	free(own);
	return rc;
}

/* ---- the help ---- */

/* Writes a word behind column x, or on a new line if it does not fit. gap: columns before it.
 * Returns the column after it. */
static int write_word(const char *word, int n, int gap, int x, FILE *to)
{
	if (x + gap + n > COLUMNS && x > TEXT_COLUMN) {
		fputc('\n', to);
		x = gap = 0;
	}
	if (x < TEXT_COLUMN)
		gap = TEXT_COLUMN - x;
	return x + fprintf(to, "%*s%.*s", gap, "", n, word);
}

/* Writes the option's name, then the words of its text from TEXT_COLUMN on. Brackets, which hold a
 * default, stand two columns apart. */
static void write_row(const struct options_row *r, FILE *to)
{
	const char letter[5] = { '-', r->letter, ',', ' ', '\0' };
	int x = fprintf(to, "  %s--%s%s%s", r->letter ? letter : "", r->name, r->value ? " " : "",
			r->value ? r->value : "");
	char fallback[80];
	int gap = 2, n;

	for (const char *at = r->help; *at; at += n, at += strspn(at, " ")) {
		n = (int)strcspn(at, " ");
		x = write_word(at, n, *at == '[' ? 2 : gap, x, to);
		gap = 1;
	}
	if (r->fallback) {
		n = snprintf(fallback, sizeof(fallback), "[%s]", r->fallback);
		write_word(fallback, n < (int)sizeof(fallback) ? n : (int)sizeof(fallback) - 1, 2,
			   x, to);
	}
	fputc('\n', to);
}

void options_help(const struct options_table *t, FILE *to)
{
	if (t->intro)
		fputs(t->intro, to);
	for (size_t i = 0; i < t->n; i++) {
		if (!t->rows[i].name)
			fprintf(to, "\n%s\n", t->rows[i].help);
		else if (t->rows[i].help)
			write_row(&t->rows[i], to);
	}
	if (t->end)
		fputs(t->end, to);
}
