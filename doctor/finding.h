/* finding.h - the list of what the checks have found. Warnings and errors have a remedy. */
#ifndef DOCTOR_FINDING_H
#define DOCTOR_FINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/array.h"

enum finding_level {
	FINDING_OK,
	/* With this finding, a run would be slow or would not survive failures. */
	FINDING_WARNING,
	FINDING_ERROR    /* with this finding, a run could not start or would fail */
};

struct finding {
	const char *check; /* name of the check, such as "files"; a literal */
	enum finding_level level;
	char found[400];  /* one sentence that says what was found, with the figures */
	char remedy[500]; /* one sentence that says what the operator should do; "": nothing */
};

struct findings {
	LIST(struct finding) all;
};

/* Adds a finding without a remedy (see finding_remedy). Control characters in the text become
 * '?'. */
void finding_add(struct findings *f, const char *check, enum finding_level level,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Sets the remedy of the finding that was added last. */
void finding_remedy(struct findings *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void findings_free(struct findings *f);

unsigned findings_count(const struct findings *f, enum finding_level level);
/* Returns the worst level in the list, which is the exit status of the program. */
enum finding_level findings_worst(const struct findings *f);

/* Prints the findings as a table, errors first. If `all` is false, the checks that found no
 * problem share a single line. */
void findings_print(const struct findings *f, bool all, FILE *to);
/* Prints the findings as JSON (format skippipe.doctor/1). Returns 0, or -1 if writing failed. */
int findings_print_json(const struct findings *f, FILE *to);

#endif
