/* Reads and writes the JSON files beside weights, so that all errors in them are reported in the
 * same words. */
#include "model/files/json_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

int json_file_read(json_t **out, const char *path, size_t most, struct error *err)
{
	char *text;
	size_t size;
	json_error_t at;
	json_t *root;
	int rc = file_read_text(path, most, &text, &size, err);

	if (rc)
		return rc;
	root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &at);
	free(text);
	if (!root)
		return error_set(err, -EINVAL, "%s: line %d: %s", path, at.line, at.text);
	if (!json_is_object(root)) {
		json_decref(root);
		return error_set(err, -EINVAL, "%s: expected a JSON object", path);
	}
	*out = root;
	return 0;
}

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
