/* model_folder.c - finds the format of a model by the file that describes it, so that readers
 * and writers agree about what a folder holds. */
#include "model/files/model_folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

int model_folder_kind(enum model_kind *kind, const char *folder, struct error *err)
{
	bool checkpoint = file_exists(folder, "manifest.json");
	bool huggingface = file_exists(folder, "config.json");

	if (checkpoint && huggingface)
		return error_set(err, -EINVAL,
				 "%s holds two models, a checkpoint (manifest.json, stage-*) and a "
				 "Hugging Face model (config.json): move one of them to another "
				 "folder",
				 folder);
	*kind = checkpoint ? MODEL_CHECKPOINT : huggingface ? MODEL_HUGGINGFACE : MODEL_NONE;
	return 0;
}

int model_folder_find(enum model_kind *kind, const char *folder, struct error *err)
{
	enum model_kind found = MODEL_NONE;
	char inside[4096];
	int rc = model_folder_kind(&found, folder, err);

	if (rc)
		return rc;
	snprintf(inside, sizeof(inside), "%s/.", folder);
	if (access(inside, X_OK) != 0)
		return error_set(err, -errno, "%s: %s", folder, strerror(errno));
	if (found == MODEL_NONE)
		return error_set(err, -ENOENT,
				 "%s: neither a checkpoint (manifest.json) nor a Hugging Face "
				 "folder (config.json) is there",
				 folder);
	*kind = found;
	return 0;
}
