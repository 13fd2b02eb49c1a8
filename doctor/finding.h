/* finding.h - what the checks have found: a list of findings, each with its remedy, and how the
 * list is printed. */
#ifndef DOCTOR_FINDING_H
#define DOCTOR_FINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/array.h"

enum finding_level {
	FINDING_OK,
	FINDING_WARNING, /* a run would be slow or fragile */
	FINDING_ERROR    /* a run cannot start, or would fail */
};

struct finding {
	const char *check; /* name of the check, such as "files"; a literal */
	enum finding_level level;
	char found[400];  /* one sentence with the figures */
	char remedy[500]; /* one sentence; "": there is nothing to do */
};

struct findings {
	LIST(struct finding) all;
};

/* Adds a finding without a remedy. Control characters in the text become '?'. */
void finding_add(struct findings *f, const char *check, enum finding_level level,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Gives the newest finding its remedy. */
void finding_remedy(struct findings *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void findings_free(struct findings *f);

unsigned findings_count(const struct findings *f, enum finding_level level);
/* Returns the worst level: the exit status of the program. */
enum finding_level findings_worst(const struct findings *f);

/* Prints a table, errors first. The findings without a remedy are one line of names, unless all are
 * wanted. */
void findings_print(const struct findings *f, bool all, FILE *to);
/* Prints skippipe.doctor/1. Returns 0, or -1 if it could not be written. */
int findings_print_json(const struct findings *f, FILE *to);

#endif
