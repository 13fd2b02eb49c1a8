/* json.h - strict reading of JSON objects for schedule's formats: every complaint names the key
 * and what was expected. `where` is the object's place ("nodes[3]"), "" for the whole. */
#ifndef SCHEDULE_JSON_H
#define SCHEDULE_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/error.h"

/* Parses text into an object whose "format" is exactly that and whose keys are all among keys
 * (NULL-terminated); refuses duplicate keys and anything after the object. */
int json_parse(const char *text, size_t size, const char *format, const char *const *keys,
	       json_t **out, struct error *err);

/* Refuses a key that is not among keys (NULL-terminated), by name. */
int json_known_keys(const json_t *object, const char *where, const char *const *keys,
		    struct error *err);

/* -EINVAL with "where.key: expected ..., found ...". */
int json_expected(const json_t *found, const char *where, const char *key, const char *what,
		  struct error *err);

/* Each reads one key. A missing key is an error unless fallback is given (NULL: required). */
int json_number(const json_t *object, const char *where, const char *key, double least,
		const double *fallback, double *out, struct error *err);
int json_int(const json_t *object, const char *where, const char *key, int least, int most,
	     const int *fallback, int *out, struct error *err);
/* true or false; fallback when the key is missing. */
int json_bool(const json_t *object, const char *where, const char *key, bool fallback,
	      bool *out, struct error *err);
/* A copy in *out (free it); an absent optional text gives NULL. */
int json_text(const json_t *object, const char *where, const char *key, bool required,
	      char **out, struct error *err);
/* An array of `size` members (any number when size < 0). */
int json_list(const json_t *object, const char *where, const char *key, int size,
	      const json_t **out, struct error *err);

#endif
