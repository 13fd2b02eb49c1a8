/* json.h - strict reading of JSON objects. Duplicate keys and text after the object are refused.
 * Every error names the key and what was expected. `where` is the place of the object, for example
 * "nodes[3]", or "" for the whole text. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"

/* Parses an object, which the caller releases. -EINVAL: the message has line and column. */
int json_parse_object(const char *text, size_t size, json_t **out, struct error *err);
/* Parses the object in a file of at most `most` bytes. A byte order mark before the object is
 * skipped. The message begins with the path. Other errors are those of file_read. */
int json_read_object(const char *path, size_t most, json_t **out, struct error *err);
/* Parses an object as json_parse_object does. The value of its "format" must equal `format`, and
 * all its keys must be among keys (NULL-terminated). */
int json_parse(const char *text, size_t size, const char *format, const char *const *keys,
	       json_t **out, struct error *err);
/* Checks the "format" and the keys of a parsed object as json_parse does. */
int json_check(const json_t *root, const char *format, const char *const *keys, struct error *err);

/* Refuses a key that is not among keys (NULL-terminated), by name. */
int json_known_keys(const json_t *object, const char *where, const char *const *keys,
		    struct error *err);

/* Returns -EINVAL with the message "where.key: expected ..., found ...". */
int json_expected(const json_t *found, const char *where, const char *key, const char *what,
		  struct error *err);

/* Each function reads one key. fallback: the value if the key is missing; NULL: the key is
 * required.
 */
int json_number(const json_t *object, const char *where, const char *key, double least,
		const double *fallback, double *out, struct error *err);
int json_int(const json_t *object, const char *where, const char *key, int least, int most,
	     const int *fallback, int *out, struct error *err);
int json_u64(const json_t *object, const char *where, const char *key, uint64_t *out,
	     struct error *err);
/* Reads true or false. */
int json_bool(const json_t *object, const char *where, const char *key, bool fallback, bool *out,
	      struct error *err);
/* Copies a text to *out, which the caller frees. If an optional text is missing, *out is NULL. */
int json_text(const json_t *object, const char *where, const char *key, bool required, char **out,
	      struct error *err);
/* Reads an array of `size` members (size < 0: any number). */
int json_list(const json_t *object, const char *where, const char *key, int size,
	      const json_t **out, struct error *err);

#endif
