/* options.h - the command line of a program, as one table.
 *
 * A row of the table is an option: its name, the kind and limits of its value, its default, and its
 * text in the help. Reading, error messages, defaults and --help are made from the rows. Manual
 * pages and completion are made from --help (deploy/manual.sh). Every message names the option.
 */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum options_kind {
	OPTIONS_FLAG,   /* bool, set to true; the option has no value */
	OPTIONS_NUMBER, /* int, set to `number`; the option has no value */
	OPTIONS_HELP,   /* options_read returns 1; the option has no value */
	OPTIONS_TEXT,   /* const char *, borrowed from argv or from the environment */
	OPTIONS_CHOICE, /* int or enum: index of the value in `words` */
	OPTIONS_SECOND, /* bool, true if the value is the second of two words */
	OPTIONS_INT,
	OPTIONS_U32,
	OPTIONS_U64,          /* uint64_t below 2^63, as JSON files can hold it */
	OPTIONS_REAL,         /* double */
	OPTIONS_FLOAT,        /* float */
	OPTIONS_SECONDS,      /* int64_t in microseconds; the value is in seconds */
	OPTIONS_MILLISECONDS, /* int64_t in microseconds; the value is in milliseconds */
	OPTIONS_PARSED,       /* the value is read by `parse` */
	/* The option is passed to the table's `pass`, with NULL if it has no value. */
	OPTIONS_PASSED
};

struct options_row {
	/* Name of the option without "--"; NULL: the row is a heading of the help. */
	const char *name;
	enum options_kind kind;
	const char *value; /* name of the value in the help, such as FILE */
	const char *
		fallback; /* the default, read like a given value; NULL: the field stays as it is */
	/* The option's text in the help, which is broken into lines. If `fallback` does not hold
	 * the default, this text ends with the default in brackets. NULL: the help does not show
	 * the option. */
	const char *help;
	size_t at; /* offset of the field in the program's struct of options */
	/* Offset of a bool in the program's struct of options: true if the option was given. 0:
	 * there is no such bool. */
	size_t given;
	double least, most;       /* limits of a number */
	int number;               /* the number that OPTIONS_NUMBER sets */
	const char *const *words; /* the words of OPTIONS_CHOICE or OPTIONS_SECOND, ended by NULL */
	int (*parse)(void *options, const char *text, struct error *err);
	char letter;   /* short form of the option, such as 'o' for -o; 0: none */
	bool many;     /* words that follow the value are values of the option too */
	/* bits of the verbs that have the option (options_table.part), or the program's own mark */
	unsigned mark;
};

struct options_table {
	const struct options_row *rows; /* array of n: the options */
	size_t n;
	/* Texts before and after the rows in the help; NULL: no text. */
	const char *intro, *end;
	/* Prefix of the environment variables, such as "SKIPPIPE_"; NULL: none are read. Each
	 * option with a value may be set by a variable: the prefix and the option's name in
	 * capitals, with '_' for '-' (SKIPPIPE_RUN_DIR). In a variable, colons separate the values
	 * of an option with `many`, and `parse` must copy them. The command line wins over a
	 * variable. */
	const char *environment;
	/* A table may describe several verbs, one bit each. The bits of a row's `mark` are the
	 * verbs that have the option; 0: all verbs. `part` is the bit of the verb in use; 0: every
	 * row counts. An option of another verb is refused and missing in the help. Two verbs may
	 * have rows of the same name. */
	unsigned part;
	const char *verb; /* name of the verb, for the message that refuses another verb's option */
	/* The message that refuses another verb's option ends with this hint, in brackets. NULL:
	 * the message ends with the command that prints the help. */
	const char *hint;
	/* Takes an option of the kind OPTIONS_PASSED; value: NULL if the option has none. */
	int (*pass)(void *options, const struct options_row *r, const char *value,
		    struct error *err);
	/* Describes the one word of the command line that is neither an option nor a value, for
	 * messages such as "expected one RUN-DIR". only_word is the offset of the const char * that
	 * is set to the word, borrowed from argv. NULL: no such word is expected, or `word` takes
	 * all of them. */
	const char *only_word_expected;
	size_t only_word;
	/* Takes each word that is neither an option nor its value. NULL: such words are refused. */
	int (*word)(void *options, const char *word, struct error *err);
};

/* Sets the defaults, then each option in the order of argv. argv[0] is skipped. An abbreviation
 * of an option is refused, because another version may read it as another option. given: NULL, or
 * an array of n, in which the entries of the given rows are set to true. Returns 0; 1 if the help
 * is requested; -EINVAL, or the error of a `parse`. */
int options_read(const struct options_table *t, void *options, int argc, char **argv, bool *given,
		 struct error *err);
/* Gives the name of an option's environment variable. */
enum { OPTIONS_VARIABLE_SIZE = 64 };
void options_variable(const char *prefix, const char *option, char out[OPTIONS_VARIABLE_SIZE]);
/* Sets one option's field to a value. Returns 0, -EINVAL, or the error of `parse`. */
int options_take(const struct options_row *r, void *options, const char *text, struct error *err);
/* Reads "N", or "MIN..MAX". Each number is from `least` to `most`. Sets *from to MIN, or to 0 for
 * "N". Returns 0, or -EINVAL with an error that names the option. */
int options_parse_range(const char *option, const char *text, uint32_t least, uint32_t most,
			uint32_t *from, uint32_t *to, struct error *err);
/* Writes the help. */
void options_help(const struct options_table *t, FILE *to);

#endif
