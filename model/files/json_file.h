/* json_file.h - writes a file that contains one JSON object. */
#ifndef MODEL_JSON_FILE_H
#define MODEL_JSON_FILE_H

#include <jansson.h>

#include "base/error.h"

/* Writes the object and releases it. NULL counts as missing memory: -ENOMEM. */
int json_file_write(const char *path, json_t *object, struct error *err);

#endif
