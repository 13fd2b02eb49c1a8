/* Reads command lines and writes helps from a table of options, so that names, limits, defaults and
 * texts of an option are in one place and cannot differ. */
#include "base/process/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { FIRST = 256, TEXT_COLUMN = 24, COLUMNS = 88, LETTERS = 32 };

static bool has_value(const struct options_row *r)
{
	return r->kind > OPTIONS_HELP && (r->kind != OPTIONS_PASSED || r->value);
}

/* Returns true if the row is an option of the verb that is being read. */
static bool is_own(const struct options_table *t, const struct options_row *r)
{
	return t->part == 0 || r->mark == 0 || (r->mark & t->part) != 0;
}

/* ---- reading ---- */

/* Converts a row's limit, which is a double, to a whole number. A limit of 2^63 or more becomes
 * INT64_MAX. */
static int64_t whole_limit(double limit)
{
	return limit >= 0x1p63 ? INT64_MAX : (int64_t)limit;
}

/* Returns true if a text of digits is at most the row's limit. Compares integers, because a double
 * cannot hold all digits of a U64. */
static bool fits_u64(const struct options_row *r, const char *text)
{
	unsigned long long v;

	if (text[strspn(text, "0123456789")])
		return true; /* parse_number checks a text such as 1e6 as a double */
	errno = 0;
	v = strtoull(text, NULL, 10);
	return errno == 0 && v <= (unsigned long long)whole_limit(r->most);
}

static int parse_number(const struct options_row *r, const char *text, double *out,
			struct error *err)
{
	bool is_whole = r->kind <= OPTIONS_U64;
	char *end;
	double v = strtod(text, &end);

	if (end != text && !*end && isfinite(v) && v >= r->least && v <= r->most &&
	    (!is_whole || v == floor(v)) && (r->kind != OPTIONS_U64 || fits_u64(r, text))) {
		*out = v;
		return 0;
	}
	if (is_whole)
		return error_set(err, -EINVAL,
				 "--%s: expected a whole number from %" PRIi64 " to %" PRIi64
				 ", got \"%s\"",
				 r->name, whole_limit(r->least), whole_limit(r->most), text);
	return error_set(err, -EINVAL, "--%s: expected a number from %g to %g, got \"%s\"",
			 r->name, r->least, r->most, text);
}

/* Finds the word among the row's words. The error lists them as "a, b or c". */
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

/* Stores a number in its field. text: the number as it was given, because a double cannot hold all
 * digits of a U64. */
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
	case OPTIONS_FLOAT:
		*(float *)to = (float)v;
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
	case OPTIONS_PASSED:
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

int options_parse_range(const char *option, const char *text, uint32_t least, uint32_t most,
			uint32_t *from, uint32_t *to, struct error *err)
{
	const char *dots = strstr(text, ".."), *last = dots ? dots + 2 : text;
	size_t n_first = dots ? (size_t)(dots - text) : 0, n_last = strlen(last);
	unsigned long first = strtoul(text, NULL, 10), end = strtoul(last, NULL, 10);
	bool are_numbers = n_last > 0 && strspn(last, "0123456789") == n_last &&
			   (!dots || (n_first > 0 && strspn(text, "0123456789") == n_first));

	if (!are_numbers || first < least || first > end || end > most)
		return error_set(err, -EINVAL,
				 "--%s: expected a whole number from %" PRIu32 " to %" PRIu32
				 ", or MIN..MAX, got \"%s\"",
				 option, least, most, text);
	*from = dots ? (uint32_t)first : 0;
	*to = (uint32_t)end;
	return 0;
}

static int take_given(const struct options_table *t, const struct options_row *r, void *options,
		      int argc, char **argv, struct error *err)
{
	int rc = r->kind == OPTIONS_PASSED ? t->pass(options, r, optarg, err)
					   : options_take(r, options, optarg, err);

	while (rc == 0 && r->many && optind < argc && argv[optind][0] != '-')
		rc = r->kind == OPTIONS_PASSED ? t->pass(options, r, argv[optind++], err)
					       : options_take(r, options, argv[optind++], err);
	if (rc == 0 && r->given)
		*(bool *)((char *)options + r->given) = true;
	return rc;
}

static int take_defaults(const struct options_table *t, void *options, struct error *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < t->n; i++)
		if (t->rows[i].fallback && is_own(t, &t->rows[i]))
			rc = options_take(&t->rows[i], options, t->rows[i].fallback, err);
	return rc;
}

/* Fills the tables for getopt_long: the long options, ended by zeros, and the letters; -h is
 * --help. The verb's own rows come first, because getopt_long takes the first of two equal
 * names. */
static struct option *list_options(const struct options_table *t, char letters[LETTERS])
{
	struct option *list = alloc_array(t->n + 1, sizeof(*list));
	int n = 0, n_letters = snprintf(letters, LETTERS, ":h");

	for (size_t i = 0; i < 2 * t->n; i++) {
		const struct options_row *r = &t->rows[i % t->n];

		if (!r->name || is_own(t, r) != (i < t->n))
			continue;
		if (r->letter && is_own(t, r))
			n_letters += snprintf(letters + n_letters, (size_t)(LETTERS - n_letters),
					      "%c%s", r->letter, has_value(r) ? ":" : "");
		list[n++] = (struct option){ r->name, has_value(r), NULL,
					     FIRST + (int)(i % t->n) };
	}
	return list;
}

/* Refuses an abbreviated option, and an option of another verb, which would have no effect. */
static int check_name(const struct options_table *t, const struct options_row *r, char **argv,
		      struct error *err)
{
	bool apart = optarg && optarg == argv[optind - 1];
	const char *word = argv[optind - (apart ? 2 : 1)];

	if (strcspn(word, "=") != strlen("--") + strlen(r->name))
		return error_set(err, -EINVAL, "%.*s: no such option; is --%s meant?",
				 (int)strcspn(word, "="), word, r->name);
	if (is_own(t, r))
		return 0;
	if (t->hint)
		return error_set(err, -EINVAL, "--%s is no option of %s (%s)", r->name, t->verb,
				 t->hint);
	return error_set(err, -EINVAL, "--%s is no option of %s (skippipe help %s)", r->name,
			 t->verb, t->verb);
}

/* Returns the index of the row that getopt_long has found by its name or by its letter. */
static int find_row(const struct options_table *t, int option)
{
	int i = 0;

	if (option >= FIRST)
		return option - FIRST;
	while (t->rows[i].letter != option || !is_own(t, &t->rows[i]))
		i++;
	return i;
}

static int take_only_word(const struct options_table *t, void *options, const char *word,
			  struct error *err)
{
	const char **to = (const char **)((char *)options + t->only_word);

	if (!t->only_word_expected)
		return error_set(err, -EINVAL, "%s: unexpected (see --help)", word);
	if (*to)
		return error_set(err, -EINVAL, "%s: expected %s (see --help)", word,
				 t->only_word_expected);
	*to = word;
	return 0;
}

static int take_arguments(const struct options_table *t, void *options, int argc, char **argv,
			  bool *given, struct error *err)
{
	char letters[LETTERS];
	struct option *list = list_options(t, letters);
	int option, row, rc = 0;

	optind = 0; /* resets getopt_long */
	opterr = 0;
	while (rc == 0 && (option = getopt_long(argc, argv, letters, list, NULL)) != -1) {
		if (option == ':' || option == '?') {
			/* The message does not show the value, because it may be a secret. */
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
		if (option >= FIRST)
			rc = check_name(t, &t->rows[row], argv, err);
		if (rc == 0)
			rc = take_given(t, &t->rows[row], options, argc, argv, err);
		if (given)
			given[row] = true;
	}
	free(list);
	for (; rc == 0 && optind < argc; optind++)
		rc = t->word ? t->word(options, argv[optind], err)
			     : take_only_word(t, options, argv[optind], err);
	return rc;
}

void options_variable(const char *prefix, const char *option, char out[OPTIONS_VARIABLE_SIZE])
{
	snprintf(out, OPTIONS_VARIABLE_SIZE, "%s%s", prefix, option);
	for (char *c = out; *c; c++)
		*c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
}

/* Takes an option's values from its variable of the environment. */
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

/* Takes the options that the command line does not give from their variables. */
static int take_environment(const struct options_table *t, void *options, const bool *given,
			    struct error *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && t->environment && i < t->n; i++) {
		const struct options_row *r = &t->rows[i];
		char name[OPTIONS_VARIABLE_SIZE], *value;

		if (!r->name || !has_value(r) || given[i] || !is_own(t, r))
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

/* Writes a word behind column x, or on a new line if it does not fit. gap: columns before the word.
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

/* Writes the option's name, its help from TEXT_COLUMN on, and the default in brackets. Two spaces
 * separate the help from the default. */
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
		if (!is_own(t, &t->rows[i]))
			continue;
		if (!t->rows[i].name)
			fprintf(to, "\n%s\n", t->rows[i].help);
		else if (t->rows[i].help)
			write_row(&t->rows[i], to);
	}
	if (t->end)
		fputs(t->end, to);
}
