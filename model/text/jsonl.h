/* jsonl.h - reads JSON lines. Each line of a corpus is an object whose "text" is a document. */
#ifndef MODEL_JSONL_H
#define MODEL_JSONL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"

struct jsonl; /* opaque: a line that was parsed */

/* Returns true if the ending of the file's name means JSON lines: .jsonl, .ndjson or .json, in any
 * case. */
bool jsonl_is_name(const char *path);

/* Parses a line to a value that the caller releases. All numbers become reals. Returns 1 if the
 * line is blank. -EINVAL: it is not UTF-8 or not JSON; the error names path, line and byte, both
 * from 1. A byte order mark before line 1 and a CR at the end are ignored. */
int jsonl_parse(json_t **out, const char *line, size_t size, const char *path, uint64_t number,
		struct error *err);

/* Kinds of lines without a document. Lines whose "text" is missing or is no text are errors
 * instead. */
enum jsonl_line { JSONL_BLANK = 1, JSONL_NULL, JSONL_EMPTY };

/* Parses a line of a corpus, and gives *out to the caller. Returns an enum jsonl_line if the line
 * has no document: it is blank, or its "text" is null or "". -EINVAL: as for jsonl_parse, or "text"
 * is no text. */
int jsonl_read(struct jsonl **out, const char *line, size_t size, const char *path, uint64_t number,
	       struct error *err);
void jsonl_free(struct jsonl *j); /* NULL is allowed */

/* Returns the text, valid until jsonl_free, and its number of bytes in *size. */
const char *jsonl_text(const struct jsonl *j, size_t *size);

#endif
