/* json_file.h - reads and writes a file that contains one JSON object. */
#ifndef MODEL_JSON_FILE_H
#define MODEL_JSON_FILE_H

#include <stddef.h>

#include <jansson.h>

#include "base/error.h"

/* Reads the object, which the caller releases. A byte order mark before it is skipped. -EINVAL:
 * the file holds something else, or a key twice; the message has path and line. Other errors are
 * those of file_read. */
int json_file_read(json_t **out, const char *path, size_t most, struct error *err);
/* Writes the object and releases it. NULL counts as missing memory: -ENOMEM. */
int json_file_write(const char *path, json_t *object, struct error *err);

#endif
