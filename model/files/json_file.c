/* Writes the JSON files that belong to a model's weights. */
#include "model/files/json_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

int json_file_write(const char *path, json_t *object, struct error *err)
{
	char *text = object ? json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
	int rc;

	json_decref(object);
	if (!text)
		return error_set(err, -ENOMEM, "%s: no memory", path);
	rc = file_replace(path, text, strlen(text), FILE_RESULT, err);
	free(text);
	return rc;
}
